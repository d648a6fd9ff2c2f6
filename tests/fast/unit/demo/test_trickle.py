"""What keeps arriving in a demo that stays, and its first chart."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import numpy as np
import orjson
import pandas as pd
import pytest

from lab.demo.chart import sparkline
from lab.demo.journey import DOLLARS, QUARTER, Journey
from lab.demo.sensors import with_sensors
from lab.demo.shops import is_open, registry_entries
from lab.demo.trickle import live_periods
from lab.simulation.records import TimedRecord
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import Store, Terms
from master_dataset.sources import source_named
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

NOW = datetime(2026, 11, 24, 16, 7, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def journey() -> Journey:
    """A day of forty receipts in ten stores."""
    numbers = np.arange(40)
    wall = pd.Timestamp("2017-12-31 09:00") + pd.to_timedelta(numbers * 600, unit="s")
    receipts = pd.DataFrame(
        {"store": numbers % 10, "basket": 1000 + numbers, "wall": wall, "first": numbers, "count": 1}
    )
    return Journey(receipts, 1 + numbers % 9, np.ones(40, dtype=np.int64), 100 + numbers, {1: "Milk"})


@pytest.fixture(scope="module")
def shops(journey: Journey) -> list[Store]:
    return with_sensors(registry_entries(journey, NOW), journey)


@pytest.fixture(scope="module")
def stores(shops: list[Store]) -> list[Store]:
    return [shop for shop in shops if shop.sensors]


@pytest.fixture(scope="module")
def sent(journey: Journey, shops: list[Store]) -> list[TimedRecord]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.demo.trickle.PERIOD", QUARTER)  # sensors of an hour are tens of thousands of records
        return [each for period in islice(live_periods(journey, shops, NOW), 2) for each in period]


def test_every_record_is_an_event_of_its_time_and_no_receipt_comes_twice(sent: list[TimedRecord]) -> None:
    events = []
    for each in sent:
        received = int(each.send_at.timestamp() * 1e6)
        found = parse(source_named(each.topic), each.value, lambda _: Terms(DOLLARS), received_us=received)
        assert isinstance(found, Event), each.value
        events.append(found)
    receipts = [event for event, each in zip(events, sent, strict=True) if each.topic == POS_TRANSACTIONS.topic]

    assert len({event.identity for event in receipts}) == len(receipts)
    assert [each.send_at for each in sent] == sorted(each.send_at for each in sent)
    assert NOW <= sent[0].send_at < NOW + timedelta(seconds=5)


def test_there_is_a_receipt_every_other_second_and_stores_with_sensors_have_visitors(
    sent: list[TimedRecord], stores: list[Store]
) -> None:
    receipts = [each for each in sent if each.topic == POS_TRANSACTIONS.topic]
    apart = [(later.send_at - earlier.send_at).total_seconds() for earlier, later in pairwise(receipts)]
    counted = {orjson.loads(each.value)["operation_id"] for each in sent if each.topic == "people_counts"}

    assert max(apart) <= 3
    assert counted == {store.id for store in stores}


def test_receipts_arrive_only_from_stores_that_are_open(journey: Journey, shops: list[Store]) -> None:
    night = datetime(2026, 11, 24, 9, 7, 30, tzinfo=UTC)  # 4 o'clock in New York
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.demo.trickle.PERIOD", QUARTER)
        for begins in (NOW, night):
            records = next(live_periods(journey, shops, begins))
            receipts = [orjson.loads(each.value) for each in records if each.topic == POS_TRANSACTIONS.topic]
            known = {shop.id: shop for shop in shops}
            closed = [
                each
                for each in receipts
                if not is_open(known[str(each["operation_id"])], datetime.fromisoformat(each["happened_at"]))
            ]
            assert closed == []
            assert bool(receipts) == any(is_open(shop, begins) for shop in shops)


def test_a_store_with_sensors_sells_nothing_before_its_visitors_are_counted(
    sent: list[TimedRecord], stores: list[Store]
) -> None:
    ids, begins = {store.id for store in stores}, NOW.replace(minute=15, second=0)
    early = [each for each in sent if each.topic == POS_TRANSACTIONS.topic and each.send_at < begins]

    assert early
    assert not [each for each in early if str(orjson.loads(each.value)["operation_id"]) in ids]


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([0, None, 1, 8], "  ▁█"),
        ([-1, 4.0, 8.0], " ▄█"),
        ([None, 0], "  "),
        ([], ""),
    ],
)
def test_a_bar_is_as_high_as_its_value(values: list[float | None], drawn: str) -> None:
    assert sparkline(values) == drawn
