"""Verification of totals: answers by total and group equal recomputed cells, added up by a rule that knows no query.

The same law over 10,000 histories is `test_totals_hold_in_ten_thousand_histories`.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from batch_layer.verify.totals import (
    ComparedTotals,
    TotalsComparison,
    TotalsQuestion,
    TotalsRule,
    TotalsSnapshot,
    business_day,
    compared_metrics,
)
from master_dataset.errors import GalateaError
from master_dataset.registry.stores import GroupVersion, Sensor, Store
from serving_layer.query import groups
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.epoch_answers import EpochAnswers
from serving_layer.query.resolve import MetricRequest
from tests.support.chains import FIRST, LAST, Chain, Count, Sale, chains
from tests.support.examples import examples
from tests.support.layers import batch_cells
from tests.support.sensors import BEGIN
from tests.support.world import World
from tests.support.world_tables import WorldTables
from views.control.publication import Pointer
from views.core.cells import CellKey, States
from views.core.cut import UNIX_EPOCH, instant, seconds
from views.core.local_time import STEP, BusinessDays
from views.core.view import View
from views.metrics import registered_metrics
from views.registry import registered_views

FEW = settings(max_examples=examples(80, least=8), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
MANY = settings(FEW, max_examples=10_000)
END = datetime(2026, 4, 2, tzinfo=UTC)
CATALOGUE = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
METRICS = [
    metric
    for metric in compared_metrics(registered_metrics().values())
    if metric.id in {"net_sales", "total_transactions_count", "average_unit_retail", "traffic_in", "avg_group_size"}
]
VIEWS = [view for view in registered_views() if view.name in {"sales", "traffic"}]


def answers_of(world: World) -> Callable[[TotalsSnapshot, Sequence[TotalsQuestion]], Iterator[bytes | GalateaError]]:
    """As `deploy` gives them to a verification, over the World."""

    def answers(snapshot: TotalsSnapshot, questions: Sequence[TotalsQuestion]) -> Iterator[bytes | GalateaError]:
        with asyncio.Runner() as runner:
            readers = WorldTables(world).readers
            found = runner.run(EpochAnswers.at(readers, CATALOGUE, timedelta(days=7), world.pointer, snapshot.epoch))
            for metric, by, start, end, _ in questions:
                request = MetricRequest(metric, (), start, end, grain="day", by=(by,))
                try:
                    yield runner.run(found.ask(request, snapshot.stores))
                except GalateaError as error:
                    yield error

    return answers


def recomputed(view: View, world: World, epoch: datetime) -> Iterator[tuple[str, date, Mapping[CellKey, States]]]:
    for store in world.deliveries:
        cells = batch_cells(view, world.of(store), epoch, world.epoch)
        for day in sorted({instant(key.window).date() for key in cells}):
            yield store, day, {key: states for key, states in cells.items() if instant(key.window).date() == day}


def verified(
    world: World, of: World, stores: Mapping[str, Store], *, by_part: bool = False, epoch: datetime = END
) -> ComparedTotals:
    """The answers of a World compared with the recompute of another one, which is the same unless something differs."""
    found: list[ComparedTotals] = []
    for view in VIEWS:
        metrics = [metric for metric in METRICS if metric.view == view.name]
        rule = TotalsRule.of(view, metrics, of.stores, by_part=by_part)
        comparison = TotalsComparison(rule, metrics)
        for block in recomputed(view, of, epoch):
            comparison.add(block[1], rule.add_up([block]))
        pointer = replace(world.pointer, publication=1)  # what is known before the first publication is exact, too
        one = comparison.run(answers_of(world), TotalsSnapshot(pointer, epoch, stores))
        assert one is not None
        found.append(one)
    return ComparedTotals.of_all(found)


@FEW
@given(chain=chains(), by_part=st.booleans())
def test_answers_by_total_and_group_equal_the_recomputed_cells_added_up(chain: Chain, *, by_part: bool) -> None:
    world = chain.world()

    found = verified(world, world, world.stores, by_part=by_part)

    assert (found.differing, found.examples) == (0, [])
    assert found.totals > 0 or not (chain.sales or chain.counts)


def test_nothing_is_asked_before_the_first_publication() -> None:
    pointer = Pointer(0, UNIX_EPOCH, "", 1, {})
    view = VIEWS[0]
    comparison = TotalsComparison(TotalsRule.of(view, [], {}, by_part=False), [])

    def answers(snapshot: TotalsSnapshot, questions: Sequence[TotalsQuestion]) -> Iterator[bytes | GalateaError]:
        raise AssertionError(snapshot, questions)

    assert comparison.run(answers, TotalsSnapshot(pointer, END, {})) is None


@pytest.mark.parametrize("by_part", [False, True])
def test_unrequestable_days_are_never_requested(*, by_part: bool) -> None:
    """The clock of a till without a battery begins in 1970."""
    metric = next(each for each in compared_metrics(CATALOGUE.metrics.values()) if each.views == (VIEWS[0].name,))
    comparison = TotalsComparison(TotalsRule.of(VIEWS[0], [metric], {}, by_part=by_part), [metric])
    for day in (date(1970, 1, 1), date(1970, 12, 31), date(2026, 3, 27), date(2200, 12, 31)):
        comparison.add(day, None)

    asked = comparison.questions()

    assert {each.start[:4] for each in asked} | {each.end[:4] for each in asked} == {"2026"}


SALES = (Sale(0, 10, 199, 0), Sale(1, 20, 250, 0), Sale(0, 1500, 1000, 0))
WEST = GroupVersion(None, {"region": "West"})
PAIR = Chain((Store(id="0", timezone="UTC", groups=(WEST,)), Store(id="1", timezone="UTC")), SALES, (), 3000)


def test_a_verification_may_ask_for_more_points_than_an_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_POINTS_WRITTEN", 1)
    world = PAIR.world()

    async def asked() -> bytes:
        readers = WorldTables(world).readers
        found = await EpochAnswers.at(readers, CATALOGUE, timedelta(days=7), replace(world.pointer, publication=1), END)
        return await found.ask(MetricRequest("net_sales", (), "2026-03-27", "2026-03-29", grain="day"), world.stores)

    assert len(msgspec.json.decode(asyncio.run(asked()))["series"]) == len(world.stores)


def test_a_cent_that_was_not_recomputed_differs_in_the_total_and_its_groups() -> None:
    wrong = PAIR._replace(sales=(Sale(0, 10, 200, 0), *SALES[1:]))

    found = verified(wrong.world(), PAIR.world(), PAIR.world().stores)

    assert found.differing > 0
    assert any("net_sales by total EUR on 2026-03-27: answered 4.50, recomputed 449" in each for each in found.examples)
    assert any("net_sales by group:region West EUR" in each for each in found.examples)


def test_a_store_that_answers_put_into_another_group_differs_in_its_groups_alone() -> None:
    stores = PAIR.world().stores
    moved = stores | {"0": replace(stores["0"], groups=(WEST, GroupVersion(date(2026, 3, 28), {"region": "East"})))}

    found = verified(PAIR.world(), PAIR.world(), moved)

    assert found.differing > 0
    assert all("group:region" in each and "2026-03-28" in each for each in found.examples)


def test_a_published_day_that_is_gone_differs_and_says_so() -> None:
    world = PAIR.world()
    world.forget_days()  # so that totals are read from blocks
    world.blocks.pop(next(place for place in world.blocks if place[0] == "sales"))

    found = verified(world, PAIR.world(), PAIR.world().stores)

    assert found.differing > 0
    assert any("its cells of store `0` are not there" in each for each in found.examples)


def test_masked_values_are_counted_and_not_compared() -> None:
    shop = Store(id="0", timezone="UTC", sensors=(Sensor("s", "people_counts"),))
    world = Chain((shop,), SALES[:1], (Count(0, 0, 40),), 3000).world()  # the sensor worked for minutes of the day

    found = verified(world, world, world.stores)

    assert (found.differing, found.examples) == (0, [])
    assert found.masked > 0


def test_rows_of_later_epochs_do_not_count() -> None:
    world = PAIR._replace(cut=None).world()
    epoch = BEGIN + timedelta(minutes=30)

    found = verified(world, world, world.stores, epoch=epoch)

    assert (found.differing, found.examples) == (0, [])
    assert verified(world, world, world.stores).totals > found.totals > 0


@given(
    zone=st.sampled_from(["Africa/Cairo", "America/Havana", "Europe/Bratislava", "Australia/Lord_Howe"]),
    starts=st.sampled_from(["00:00", "02:30", "04:00", "23:45"]),
    quarter=st.integers(0, 366 * 96),
)
@example(zone="Europe/Bratislava", starts="02:30", quarter=(297 * 96) + 5)
def test_the_wall_clock_agrees_with_business_days(zone: str, starts: str, quarter: int) -> None:
    store = Store(id="1", timezone=zone, day_starts_at=starts)
    window = seconds(datetime(2026, 1, 1, tzinfo=UTC)) + quarter * STEP

    assert business_day(store, window) == BusinessDays.of(store, ZoneInfo(zone)).day_of(window)


@pytest.mark.nightly
@MANY
@given(chain=chains())
def test_totals_hold_in_ten_thousand_histories(chain: Chain) -> None:
    world = chain.world()

    found = verified(world, world, world.stores)

    assert (found.differing, found.examples) == (0, [])
    assert added_up(world, "store", "currency") == added_up(world, "total")


def added_up(world: World, *by: str) -> dict[tuple[str | None, str], Decimal]:
    """Net sales of all series of an answer, by currency and day."""
    found = asyncio.run(_ask(world, MetricRequest("net_sales", (), str(FIRST), str(LAST), grain="day", by=by)))
    sums: dict[tuple[str | None, str], Decimal] = {}
    for series in found["series"]:
        code = series["dimensions"].get("currency") or series.get("currency") or found.get("currency")
        for point in series["points"]:
            sums[code, point["date"]] = sums.get((code, point["date"]), Decimal(0)) + point["value"]
    return {key: value for key, value in sums.items() if value}


async def _ask(world: World, request: MetricRequest) -> Any:
    readers = WorldTables(world).readers
    found = await EpochAnswers.at(readers, CATALOGUE, timedelta(days=7), world.pointer, END)
    return msgspec.json.Decoder(float_hook=Decimal).decode(await found.ask(request, world.stores))
