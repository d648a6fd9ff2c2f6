"""The demo's sensors are simulated, fit its real receipts, and stay a modest share of its load."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from lab.demo.journey import EPOCH, FIRST_DAYS, QUARTER, Journey, before_this_quarter
from lab.demo.sensors import COUNTED, SHOPS, SimulatedSensors, receipts, sensor_playback, with_sensors
from lab.demo.shops import is_open, registry_entries
from lab.demo.trading_day import TradingDay, trading_day
from lab.simulation.records import TimedRecord
from lab.simulation.simulation import sensor_topics
from lab.simulation.visitors import MOST_CONVERSION
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.fast.unit.simulation.reading import Read

NOW = datetime(2026, 11, 21, 12, 7, 3, tzinfo=UTC)
LOADED_AT = before_this_quarter(NOW)
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
def day(journey: Journey, sensors: SimulatedSensors) -> TradingDay:
    return trading_day(journey, sensors.shops, LOADED_AT, ENDS_AT)


@pytest.fixture(scope="module")
def sensors(journey: Journey) -> SimulatedSensors:
    return SimulatedSensors.of(journey, LOADED_AT, NOW)


@pytest.fixture(scope="module")
def sent(sensors: SimulatedSensors, day: TradingDay) -> list[TimedRecord]:
    return [*sensors.before(), *sensors.during(day, ENDS_AT)]


def test_some_stores_get_sensors_and_the_others_stay_as_they_are(journey: Journey) -> None:
    stores = registry_entries(journey, LOADED_AT)
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
    assert min(days) >= NOW - timedelta(days=FIRST_DAYS, minutes=15)


def counted(sensors: SimulatedSensors, sent: Iterable[TimedRecord]) -> Counter[tuple[str, datetime]]:
    """How many came in, by store and window."""
    came: Counter[tuple[str, datetime]] = Counter()
    for event in Read((each for each in sent if each.topic == "people_counts"), *sensors.stores).of("people_counts"):
        came[event.store, event.happened_at] += event.payload.people_in
    return came


def paid(sensors: SimulatedSensors, live: Mapping[str, Sequence[datetime]]) -> Counter[tuple[str, datetime]]:
    """How many receipts are sent, by store with sensors and window."""
    late_too = {store: {*times, *live.get(store, ())} for store, times in sensors.printed.items()}
    return Counter((store, at - (at - EPOCH) % QUARTER) for store, times in late_too.items() for at in times)


def test_in_every_window_more_come_in_than_pay(
    sensors: SimulatedSensors, day: TradingDay, sent: list[TimedRecord]
) -> None:
    came, sold = counted(sensors, sent), paid(sensors, receipts(day))

    assert len(sold) > 100
    assert {window: number for window, number in sold.items() if number > MOST_CONVERSION * came[window]} == {}


def test_the_conversion_of_weeks_is_what_a_shop_could_have(
    sensors: SimulatedSensors, day: TradingDay, sent: list[TimedRecord]
) -> None:
    came, sold = counted(sensors, sent), paid(sensors, receipts(day))

    first = min(at for _, at in sold)
    for store in sensors.stores:
        buyers = sum(number for (of, _), number in sold.items() if of == store.id)
        visitors = sum(number for (of, at), number in came.items() if of == store.id and at >= first)
        assert 0.2 <= buyers / visitors <= 0.6


def test_nobody_comes_in_while_a_store_is_closed(sensors: SimulatedSensors, sent: list[TimedRecord]) -> None:
    shops = {shop.id: shop for shop in sensors.stores}

    assert [
        key for key, number in counted(sensors, sent).items() if number and not is_open(shops[key[0]], key[1])
    ] == []


def test_the_same_receipts_give_the_same_bytes(journey: Journey, day: TradingDay, sent: list[TimedRecord]) -> None:
    again = SimulatedSensors.of(journey, LOADED_AT, NOW)

    assert [*again.before(), *again.during(day, ENDS_AT)] == sent


def test_a_demo_that_stays_sends_the_counts_of_the_year_and_all_others_of_the_day_before(
    sensors: SimulatedSensors, sent: list[TimedRecord]
) -> None:
    year = list(sensors.of_the_year())

    assert year[0].topic in COUNTED
    assert year[0].send_at < LOADED_AT - timedelta(days=365)
    others = [each for each in year if each.topic not in COUNTED]
    assert {each.topic for each in others} == {topic for topic in sensor_topics() if topic not in COUNTED}
    assert NOW - min(each.send_at for each in others) < timedelta(days=3)
    assert len({(each.topic, each.value) for each in (*sent, *year)}) == len(sent) + len(year)


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
