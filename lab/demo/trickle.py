"""Receipts that keep arriving while the demo stays: real baskets at invented times, and sensors that match them.

A receipt of some store every second or two, so that pages that follow live have something to show. The stores with
sensors get every third of them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from operator import attrgetter
from random import Random
from zoneinfo import ZoneInfo

from deploy.console import print_message
from lab.demo.journey import EPOCH, QUARTER, Journey, busiest_day
from lab.demo.sensors import SEED
from lab.demo.shops import is_open
from lab.demo.trading_day import RIVAL_ID
from lab.simulation.output import PacedSending
from lab.simulation.records import TimedRecord
from lab.simulation.simulation import matching_records, sensor_topics
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

BETWEEN_SECONDS = 1.5
WITH_SENSORS_EVERY = 3
PERIOD = timedelta(hours=1)
FIRST_ID = 3 * RIVAL_ID
"""Above the numbers of all other receipts of the demo."""


def trickle(journey: Journey, shops: Sequence[Store], kafka: KafkaConnection) -> PacedSending:
    """Return receipts and sensor records that arrive in real time. `shops`: all stores, as they are registered."""
    periods = live_periods(journey, shops, datetime.now(UTC))
    return PacedSending(chain.from_iterable(periods), 1.0, kafka, _report)


def _report(error: BaseException) -> None:
    print_message(f"  simulated receipts no longer arrive: {error}")


def live_periods(journey: Journey, shops: Sequence[Store], begins: datetime) -> Iterator[list[TimedRecord]]:
    """Plan an hour after the other, without end.

    Sensors begin with the next quarter of an hour, and receipts of their stores with them.
    """
    chance, numbers = Random(SEED), count(FIRST_ID)  # noqa: S311 - nothing secret
    quarter = datetime.fromtimestamp(-(-begins.timestamp() // QUARTER.seconds) * QUARTER.seconds, UTC)
    later = list[TimedRecord]()  # a sensor may send long after the event
    while True:
        ends = quarter + PERIOD
        planned = _planned(journey, shops, (begins, quarter, ends), chance, numbers)
        records = sorted((*later, *planned), key=attrgetter("send_at"))
        later = [each for each in records if each.send_at >= ends]
        yield [each for each in records if each.send_at < ends]
        begins = quarter = ends


def _planned(
    journey: Journey,
    shops: Sequence[Store],
    times: tuple[datetime, datetime, datetime],
    chance: Random,
    numbers: "count[int]",
) -> list[TimedRecord]:
    """Records between the first and the last of the `times`, those of sensors from the second on."""
    begins, quarter, ends = times
    baskets, printed = busiest_day(journey), dict[str, list[datetime]]()
    sold = {str(store) for store in baskets["store"].unique()}
    known = [shop for shop in shops if shop.id in sold]
    records, at, later = list[TimedRecord](), begins, begins
    of_sensors, of_all = list[Store](), list[Store]()
    while at < ends:
        if at >= later:  # stores open and close on the hour
            of_all = [shop for shop in known if is_open(shop, at) and (at >= quarter or not shop.sensors)]
            of_sensors = [shop for shop in of_all if shop.sensors]
            later = at - (at - EPOCH) % QUARTER + QUARTER
        if of_all:
            of = of_sensors if of_sensors and len(records) % WITH_SENSORS_EVERY == 0 else of_all
            shop = chance.choice(of)
            basket = baskets.iloc[[chance.randrange(len(baskets))]].assign(store=int(shop.id), basket=next(numbers))
            local = at.astimezone(ZoneInfo(shop.timezone))
            [value] = journey.messages(basket, [local.isoformat(timespec="seconds")])
            records.append(TimedRecord(at, POS_TRANSACTIONS.topic, value))
            printed.setdefault(shop.id, []).append(at)
        at += timedelta(seconds=chance.uniform(0.5, 1.5) * BETWEEN_SECONDS)
    sensors = [
        matching_records(shop, (quarter, ends), printed.get(shop.id, ()), SEED, sensor_topics())
        for shop in shops
        if shop.sensors
    ]
    return [*records, *(each for some in sensors for each in some)]
