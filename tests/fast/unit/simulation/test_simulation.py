"""The same seed gives the same bytes, in order; and what was sent is what was counted."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.simulation.records import DEAD_LETTERS, DRIFTED, DUPLICATES, EVENTS, LATE, SILENCED, SentCounts, TimedRecord
from lab.simulation.simulation import Simulation
from lab.simulation.stores import equipped, invented_stores
from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources import registered_sources
from tests.fast.unit.simulation.reading import Read
from tests.support.examples import examples

DAY = date(2026, 3, 7)
ALL = registered_sources()


def simulation(*stores: Store, days: int = 1, seed: str = "1") -> Simulation:
    return Simulation(stores, DAY, DAY + timedelta(days=days - 1), seed, ALL)


ONE, OTHER = invented_stores(2)


@pytest.fixture(scope="module")
def three_days() -> tuple[SentCounts, list[TimedRecord]]:
    """What two stores send in three days."""
    made = simulation(OTHER, ONE, days=3)
    return made.counts, list(made.deliveries())


@given(st.integers(0, 1000).map(str))
@settings(max_examples=examples(10, least=1), deadline=None)
def test_sent_is_events_and_duplicates_and_dead_letters(seed: str) -> None:
    stores = invented_stores(2)
    made = simulation(*stores, seed=seed)
    read = Read(made.deliveries(), *stores)

    assert made.counts.sent == read.sent
    assert made.counts.of(EVENTS) == len(read.events)
    assert made.counts.of(DUPLICATES) == read.duplicates
    assert made.counts.of(DEAD_LETTERS) == read.dead_letters.total()
    assert made.counts.reasons == read.dead_letters


def test_every_kind_of_fault_happens_within_some_days(three_days: tuple[SentCounts, list[TimedRecord]]) -> None:
    counts, _ = three_days

    for kind in (DUPLICATES, LATE, DRIFTED, SILENCED):
        assert counts.of(kind) > 0
    assert counts.of(DEAD_LETTERS) < counts.sent / 100
    assert len(counts.reasons) == 17


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(store: Store) -> None:
    one, again, other = (list(simulation(store, seed=seed).deliveries()) for seed in ("1", "1", "2"))

    assert one == again != other


def test_neither_other_stores_nor_days_nor_sources_change_what_a_store_sends(
    three_days: tuple[SentCounts, list[TimedRecord]],
) -> None:
    alone = {(each.topic, each.value) for each in simulation(ONE).deliveries()}
    of_one = f'"operation_id":"{ONE.id}"'.encode()

    longer = [each for each in three_days[1] if of_one in each.value]
    counts = Simulation([ONE], DAY, DAY, "1", ["people_counts"]).deliveries()

    whole = {each for each in alone if of_one in each[1]}
    assert whole <= {(each.topic, each.value) for each in longer}
    assert {(each.topic, each.value) for each in counts} == {each for each in alone if each[0] == "people_counts"}


def test_deliveries_come_by_when_they_are_sent_also_across_days_and_stores(
    three_days: tuple[SentCounts, list[TimedRecord]],
) -> None:
    sent = [each.send_at for each in three_days[1]]

    assert sent == sorted(sent)


def test_nothing_is_sent_before_it_happened(store: Store) -> None:
    made = Simulation([store], DAY, DAY, "1", ALL, faults=False)

    for delivery in made.deliveries():
        (event,) = Read([delivery], store).events.values()
        assert event.happened_at <= delivery.send_at


def test_what_is_paid_is_what_a_receipt_adds_up_to_less_its_discounts(store: Store) -> None:
    made = Simulation([store], DAY, DAY, "1", ["pos_transactions"], faults=False)

    receipts = [receipt for _, receipt in Read(made.deliveries(), store).payloads("pos_transactions")]

    for each in receipts:
        due = each.gross_sales - each.returns_value
        assert abs(sum(paid.amount for paid in each.payments) - due) <= each.line_count  # a till rounds each line
        assert each.discount is not None
    assert {paid.type for each in receipts for paid in each.payments} == {"card", "cash", "voucher"}
    assert any(each.discount for each in receipts)


def test_a_sensor_of_somebody_is_left_alone() -> None:
    real = Sensor("cam-1", "people_counts", "door-A")
    shop = equipped(Store("1", "Europe/Bratislava", sensors=(real,)))

    assert shop.sensors[0] == real
    assert equipped(shop) == shop
    values = [each.value for each in simulation(shop).deliveries()]
    assert not [value for value in values if b'"cam-1"' in value]
