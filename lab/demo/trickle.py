"""Receipts that keep arriving while the demo stays: real baskets at invented times, and sensors that match them.

A receipt of some store every second or two, so that pages that follow live have something to show. The stores with
sensors get every third of them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, count
from operator import attrgetter
from random import Random
from zoneinfo import ZoneInfo

from deploy.console import print_message
from lab.demo.journey import Journey, zone_of
from lab.demo.sensors import QUARTER, SEED
from lab.demo.trading_day import RIVAL_ID, busiest_day
from lab.simulation.output import PacedSending
from lab.simulation.records import TimedRecord
from lab.simulation.simulation import matching_records
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

BETWEEN_SECONDS = 1.5
WITH_SENSORS_EVERY = 3
PERIOD = timedelta(hours=1)
OPENS, CLOSES = 6, 23
"""Local hours in which stores are open, as in their registry."""
FIRST_ID = 3 * RIVAL_ID
"""Above the numbers of all other receipts of the demo."""


def trickle(journey: Journey, stores: Sequence[Store], kafka: KafkaConnection) -> PacedSending:
    """Return receipts and sensor records that arrive in real time. `stores`: those with sensors."""
    periods = live_periods(journey, stores, datetime.now(UTC))
    return PacedSending(chain.from_iterable(periods), 1.0, kafka, _report)


def _report(error: BaseException) -> None:
    print_message(f"  simulated receipts no longer arrive: {error}")


def live_periods(journey: Journey, stores: Sequence[Store], begins: datetime) -> Iterator[list[TimedRecord]]:
    """Plan an hour after the other, without end. Sensors begin with the next quarter of an hour."""
    chance, numbers = Random(SEED), count(FIRST_ID)  # noqa: S311 - nothing secret
    quarter = datetime.fromtimestamp(-(-begins.timestamp() // QUARTER.seconds) * QUARTER.seconds, UTC)
    later = list[TimedRecord]()  # a sensor may send long after what it has seen
    while True:
        ends = quarter + PERIOD
        planned = _planned(journey, stores, (begins, quarter, ends), chance, numbers)
        records = sorted((*later, *planned), key=attrgetter("send_at"))
        later = [each for each in records if each.send_at >= ends]
        yield [each for each in records if each.send_at < ends]
        begins = quarter = ends


def _planned(
    journey: Journey,
    stores: Sequence[Store],
    times: tuple[datetime, datetime, datetime],
    chance: Random,
    numbers: "count[int]",
) -> list[TimedRecord]:
    """Records between the first and the last of the `times`, those of sensors from the second on."""
    begins, quarter, ends = times
    baskets, printed = busiest_day(journey), dict[str, list[datetime]]()
    known = sorted(int(store) for store in baskets["store"].unique())
    chosen = [int(store.id) for store in stores]
    records, at = list[TimedRecord](), begins
    while at < ends:
        of = chosen if chosen and len(records) % WITH_SENSORS_EVERY == 0 else known
        is_open = partial(_is_open, at=at)
        store = chance.choice(list(filter(is_open, of)) or list(filter(is_open, known)) or of)
        basket = baskets.iloc[[chance.randrange(len(baskets))]].assign(store=store, basket=next(numbers))
        local = at.astimezone(ZoneInfo(zone_of(store)))
        [value] = journey.messages(basket, [local.isoformat(timespec="seconds")])
        records.append(TimedRecord(at, POS_TRANSACTIONS.topic, value))
        printed.setdefault(str(store), []).append(at)
        at += timedelta(seconds=chance.uniform(0.5, 1.5) * BETWEEN_SECONDS)
    sensors = [matching_records(store, quarter, ends, printed.get(store.id, ()), SEED) for store in stores]
    return [*records, *(each for some in sensors for each in some)]


def _is_open(store: int, at: datetime) -> bool:
    return OPENS <= at.astimezone(ZoneInfo(zone_of(store))).hour < CLOSES
