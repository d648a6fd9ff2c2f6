"""A trading day that is played live: the busiest real day, with everything mixed in that tills do wrong.

Each receipt keeps its time on the store's clock, today or yesterday, whichever was last, so that it is printed while
the store is open. What would be older than the speed layer counts is left out. Mixed in by position, so that every play
is the same: duplicates, receipts days late, several receipts in one second of one till, different content under a known
identity, and invalid records.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from types import TracebackType
from typing import Self
from zoneinfo import ZoneInfo

import orjson
import pandas as pd

from lab.demo.journey import Journey, before_this_quarter, busiest_day, zone_of
from lab.demo.shops import is_open
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.ingest import IngestResult, ingest
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

DUPLICATE_EVERY, LATE_EVERY, SAME_SECOND_EVERY, BROKEN_EVERY, CONFLICT_EVERY = 20, 25, 30, 100, 200
RIVAL_ID = 10**14
"""Added to the number of a receipt that is derived from another; baskets have smaller numbers."""
LATE_DAYS = 2, 20
PLAYED = timedelta(hours=22)
"""The speed layer counts receipts that are not older than 23 hours when they arrive."""
WATCHED_UNTIL = 0.4
"""The watched windows are complete by then, so that the second rebuild changes only their state."""


@dataclass(frozen=True)
class PlannedReceipt:
    """A receipt to send. `at`: from 0 (the start of the play) to 1."""

    at: float
    store: str
    value: bytes


@dataclass(frozen=True)
class TradingDay:
    """What is sent, in order, and counts of what was mixed in.

    `focus`: the watched store; `windows`: its busiest early windows; `late_window`: that of a receipt days late;
    all in seconds since 1970.
    """

    deliveries: Sequence[PlannedReceipt]
    counts: dict[str, int]
    focus: str
    windows: Sequence[int]
    late_window: int


def trading_day(journey: Journey, shops: Sequence[Store], loaded_at: datetime, ends_at: datetime) -> TradingDay:
    """Plan a play.

    Args:
        journey: The data.
        shops: The stores, as they are registered.
        loaded_at: When the history was loaded; receipts that come late are from days before.
        ends_at: When the play ends.
    """
    receipts, happened = _latest(busiest_day(journey), shops, before_this_quarter(ends_at))
    values = list(journey.messages(receipts, [at.isoformat() for at in happened]))
    stores = [str(store) for store in receipts["store"].tolist()]
    focus = featured_store(journey)
    deliveries = [PlannedReceipt(n / len(values), stores[n], value) for n, value in enumerate(values)]
    mixed = {
        "duplicates": [_later(each, each.value) for each in deliveries[::DUPLICATE_EVERY]],
        "late": late_receipts(journey, shops, loaded_at),
        "same_second": [_later(each, _rival(each.value)) for each in deliveries[3::SAME_SECOND_EVERY]],
        "conflicts": [_later(each, _another(each.value)) for each in deliveries[5:250:CONFLICT_EVERY]],
        "broken": [_later(each, _broken(each.value, nth)) for nth, each in enumerate(deliveries[7::BROKEN_EVERY])],
    }
    everything = sorted([*deliveries, *(each for kind in mixed.values() for each in kind)], key=lambda each: each.at)
    counts = {"receipts": len(deliveries), **{kind: len(each) for kind, each in mixed.items()}}
    soon = round(len(values) * WATCHED_UNTIL)
    early = [at for at, store in zip(happened[:soon], stores[:soon], strict=True) if store == focus]
    late = next(each for each in mixed["late"] if each.store == focus)
    return TradingDay(everything, counts, focus, _busiest_windows(early), _window(_instant(late.value)))


def _latest(receipts: pd.DataFrame, shops: Sequence[Store], ends: datetime) -> tuple[pd.DataFrame, Sequence[datetime]]:
    """Give each receipt the last instant with its local time by `ends`. Returns those that are played, and when."""
    known, found = {shop.id: shop for shop in shops}, list[tuple[datetime, int]]()
    for place, (store, wall) in enumerate(zip(receipts["store"].tolist(), receipts["wall"], strict=True)):
        shop = known[str(store)]
        today = ends.astimezone(ZoneInfo(shop.timezone)).date()
        at = _at(shop, today, wall.time())
        at = at if at <= ends else _at(shop, today - timedelta(days=1), wall.time())
        if ends - PLAYED < at <= ends and is_open(shop, at):
            found.append((at, place))
    found.sort()
    played = receipts.iloc[[place for _, place in found]]
    zones = [ZoneInfo(zone_of(store)) for store in played["store"].tolist()]
    return played, [at.astimezone(zone) for (at, _), zone in zip(found, zones, strict=True)]


def _at(shop: Store, day: date, wall: clock_time) -> datetime:
    """Return an instant in UTC: of two with this local time the first."""
    return datetime.combine(day, wall.replace(microsecond=0), ZoneInfo(shop.timezone)).astimezone(UTC)


def late_receipts(journey: Journey, shops: Sequence[Store], loaded_at: datetime) -> list[PlannedReceipt]:
    """Derive receipts that were printed days before, while their store was open, and arrive only in the play."""
    receipts, focus = busiest_day(journey), featured_store(journey)
    known, found = {shop.id: shop for shop in shops}, list[tuple[int, datetime]]()
    for number, (store, wall) in enumerate(zip(receipts["store"].tolist(), receipts["wall"], strict=True)):
        if number % LATE_EVERY == 0 or (str(store) == focus and number % 3 == 0):
            at = _days_before(known[str(store)], number, wall.time(), loaded_at)
            found += [] if at is None else [(number, at)]
    late = receipts.iloc[[number for number, _ in found]]
    values = journey.messages(late, [at.isoformat() for _, at in found])
    return [
        _later(PlannedReceipt(number / len(receipts), str(store), b""), _rival(value))
        for (number, _), store, value in zip(found, late["store"].tolist(), values, strict=True)
    ]


def _days_before(shop: Store, number: int, wall: clock_time, loaded_at: datetime) -> datetime | None:
    """Return an instant that many days before on which the store was open; None if it never was."""
    zone, span = ZoneInfo(shop.timezone), LATE_DAYS[1] - LATE_DAYS[0] + 1
    today = loaded_at.astimezone(zone).date()
    days = (LATE_DAYS[0] + (number + more) % span for more in range(span))
    instants = (_at(shop, today - timedelta(days=ago), wall) for ago in days)
    return next((at.astimezone(zone) for at in instants if is_open(shop, at)), None)


def featured_store(journey: Journey) -> str:
    """Return the busiest store of that day."""
    return str(busiest_day(journey)["store"].value_counts().idxmax())


def _busiest_windows(instants: Sequence[datetime]) -> list[int]:
    windows = pd.Series([_window(at) for at in instants]).value_counts(sort=True)
    return sorted(int(window) for window in windows.index[:4])


def _window(at: datetime) -> int:
    return int(at.timestamp()) // 900 * 900


def _instant(value: bytes) -> datetime:
    return datetime.fromisoformat(orjson.loads(value)["happened_at"])


def _later(delivery: PlannedReceipt, value: bytes) -> PlannedReceipt:
    return PlannedReceipt(min(delivery.at + 0.08, 0.999), delivery.store, value)


def _another(value: bytes) -> bytes:
    """Change the content under the same identity."""
    return value.replace(b'"title":"', b'"title":"Not ', 1)


def _rival(value: bytes) -> bytes:
    """Derive another receipt of the same till and second."""
    receipt = orjson.loads(value)
    receipt["transaction_id"] += RIVAL_ID
    return orjson.dumps(receipt)


def _broken(value: bytes, number: int) -> bytes:
    """Make a receipt invalid in one of five ways: truncated, naive time, no lines, a word as price, a day ahead."""
    receipt = orjson.loads(_rival(value))
    at = datetime.fromisoformat(receipt["happened_at"])
    match number % 5:
        case 0:
            return value[: len(value) // 2]
        case 1:
            receipt["happened_at"] = at.replace(tzinfo=None).isoformat()
        case 2:
            del receipt["transactions"]
        case 3:
            receipt["transactions"][0]["price"] = "much"
        case _:
            receipt["happened_at"] = (at + timedelta(days=2)).isoformat()
    return orjson.dumps(receipt)


TAIL_FROM = 0.9
"""The last tenth is sent only after `release`, so that events arrive before, during and after the second rebuild."""


class ReceiptPlayback:
    """Plays the day through the real ingest path in a thread. Leaving the context early ends the play."""

    def __init__(self, day: TradingDay, kafka: KafkaConnection, seconds: float) -> None:
        """`seconds`: how long the play takes if `release` is called in time."""
        self._day, self._kafka, self._seconds = day, kafka, seconds
        self._released, self._ended = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1, "play")
        self._playing: Future[IngestResult] | None = None
        self.sent = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._playing = self._pool.submit(lambda: ingest(POS_TRANSACTIONS, self._lines(), self._kafka, lambda _: None))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, played or not."""
        self._ended.set()
        self._released.set()
        self._pool.shutdown(wait=True)

    @property
    def total(self) -> int:
        """How many deliveries there are."""
        return len(self._day.deliveries)

    def has_reached(self, part: float) -> bool:
        """Whether this part of the day (0 to 1) has been sent."""
        return self.sent >= len([each for each in self._day.deliveries if each.at < part])

    def release(self) -> None:
        """Let the play end."""
        self._released.set()

    def is_over(self) -> bool:
        """Whether all was sent and acknowledged."""
        return self._playing is not None and self._playing.done()

    def result(self) -> IngestResult:
        """What became of it; raises what the ingest raised."""
        if self._playing is None:
            raise RuntimeError("the play has not begun")
        return self._playing.result()

    def _lines(self) -> Iterator[bytes]:
        began = time.monotonic()
        for delivery in self._day.deliveries:
            if delivery.at >= TAIL_FROM:
                self._released.wait()
            self._ended.wait(began + delivery.at * self._seconds - time.monotonic())
            if self._ended.is_set():
                return
            yield delivery.value
            self.sent += 1
