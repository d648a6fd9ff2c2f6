"""The demo's sensors are simulated, fit its real receipts, and stay a modest share of its load."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from lab.demo.journey import Journey, registry_entries
from lab.demo.sensors import SHOPS, SimulatedSensors, receipts, sensor_playback, with_sensors
from lab.demo.trading_day import TradingDay, trading_day
from lab.simulation.records import TimedRecord
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.fast.unit.simulation.reading import Read

NOW = datetime(2026, 11, 21, 12, 7, 3, tzinfo=UTC)
ENDS_AT = NOW + timedelta(minutes=4)
MOST = 150_000


@pytest.fixture(scope="module")
def journey() -> Journey:
    """One line a receipt; four days of 200 receipts, of them a tenth in each of the stores 0 to 9."""
    numbers = np.arange(800)
    wall = pd.Timestamp("2017-12-28 07:00") + pd.to_timedelta(numbers // 200 * 86_400 + numbers % 200 * 280, unit="s")
    receipts = pd.DataFrame(
        {
            "store": numbers % 10,
            "basket": 1000 + numbers,
            "wall": wall,
            "first": numbers,
            "count": 1,
        }
    )
    return Journey(receipts, 1 + numbers % 9, np.ones(800, dtype=np.int64), 100 + numbers, {1: "Milk"})


@pytest.fixture(scope="module")
def day(journey: Journey) -> TradingDay:
    return trading_day(journey, ENDS_AT)


@pytest.fixture(scope="module")
def sensors(journey: Journey) -> SimulatedSensors:
    return SimulatedSensors.of(journey, NOW)


@pytest.fixture(scope="module")
def sent(sensors: SimulatedSensors, day: TradingDay) -> list[TimedRecord]:
    return [*sensors.before(), *sensors.during(day, ENDS_AT)]


def test_some_stores_get_sensors_and_the_others_stay_as_they_are(journey: Journey) -> None:
    stores = registry_entries(journey)
    given = with_sensors(stores, journey)

    assert sum(bool(store.sensors) for store in given) == SHOPS
    assert [store for store in given if not store.sensors] == [store for store in stores if store in given]


def test_every_record_of_a_sensor_is_an_event_of_its_own(sensors: SimulatedSensors, sent: list[TimedRecord]) -> None:
    read = Read(sent, *sensors.stores)

    assert read.dead_letters == {}
    assert read.duplicates == 0
    assert len(read.events) == len(sent) <= MOST
    assert POS_TRANSACTIONS.topic not in {each.topic for each in sent}


def test_they_come_in_order_and_none_from_the_future(sent: list[TimedRecord]) -> None:
    days = [each.send_at for each in sent]

    assert max(days) <= ENDS_AT
    assert min(days) >= NOW - timedelta(days=3, minutes=15)


def test_visitors_suffice_for_the_receipts_of_every_store(
    sensors: SimulatedSensors, day: TradingDay, sent: list[TimedRecord]
) -> None:
    live = receipts(day)
    read = Read((each for each in sent if each.topic == "people_counts"), *sensors.stores)
    for store in sensors.stores:
        counts = [event for event in read.of("people_counts") if event.store == store.id]
        came = sum(event.payload.people_in for event in counts)
        first, last = counts[0].happened_at, counts[-1].happened_at + timedelta(minutes=15)
        late = [at for at in live[store.id] if at < sensors.begins]
        paid = [at for at in (*sensors.printed[store.id], *live[store.id]) if first <= at < last and at not in late]
        assert 0.2 <= len(paid) / came <= 0.6


def test_a_receipt_counts_once_however_often_it_is_delivered(day: TradingDay) -> None:
    printed = sum(len(each) for each in receipts(day).values())

    assert printed == sum(day.counts[kind] for kind in ("receipts", "late", "same_second"))


def test_the_play_of_the_sensors_ends_when_it_is_left(monkeypatch: pytest.MonkeyPatch, sent: list[TimedRecord]) -> None:
    given: list[TimedRecord] = []

    def send(deliveries: Iterable[TimedRecord], _: str) -> int:
        given.extend(deliveries)
        return len(given)

    monkeypatch.setattr("lab.simulation.output.send", send)
    with sensor_playback(sent[:100], KafkaConnection("nowhere:1"), 0.01) as play:
        assert play.result() == 100
    with sensor_playback(sent[:100], KafkaConnection("nowhere:1"), 3600):
        pass
    assert given[:100] == sent[:100]
    assert len(given) < 200
