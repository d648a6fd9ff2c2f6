"""One store on one business day: time units, seeded random streams, and the opening periods of the day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from math import exp
from random import Random
from zoneinfo import ZoneInfo

from master_dataset.registry.stores import WEEKDAYS, Store
from views.core.local_time import open_periods

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
QUARTER_MS = 15 * MINUTE_MS
HOUR_MS = 60 * MINUTE_MS


def format_instant(instant_ms: int) -> str:
    """Format an instant as sensors do: UTC with three decimals and `Z`."""
    return f"{datetime.fromtimestamp(instant_ms // 1000, UTC).isoformat()[:19]}.{instant_ms % 1000:03d}Z"


def to_milliseconds(at: datetime) -> int:
    """Convert an aware instant to milliseconds since 1970."""
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def window_start(instant_ms: int) -> int:
    """Return the start of the 15-minute UTC window around an instant."""
    return instant_ms - instant_ms % QUARTER_MS


def random_stream(*words: str) -> Random:
    """Return a generator seeded by these words. Each noun has its own, so the order of generation changes nothing."""
    return Random("\0".join(words))  # noqa: S311 - reproducible on purpose


def poisson(stream: Random, mean: float) -> int:
    """Draw from a Poisson distribution. For means below some hundreds."""
    limit, product, number = exp(-mean), stream.random(), 0
    while product > limit:
        product *= stream.random()
        number += 1
    return number


Span = tuple[int, int]
USUAL_HOURS = ("09:00-20:00",)
"""Of a store without opening hours."""
GRACE_MS = 30 * MINUTE_MS
"""Time after closing in which the staff leaves."""


@dataclass(frozen=True)
class StoreDay:
    """[begins, ends) in ms, on the 15-minute grid. `open`: opening periods. `name`: seeds its random generators.

    The days of a store follow each other without gap or overlap.
    """

    store: Store
    name: str
    seed: str
    begins: int
    ends: int
    open: tuple[Span, ...]

    def rng(self, noun: str) -> Random:
        """Return the random generator of one noun of this day."""
        return random_stream(self.seed, self.store.id, self.name, noun)

    def quarters(self) -> range:
        """Return the start of every window."""
        return range(self.begins, self.ends, QUARTER_MS)

    def period(self, instant_ms: int) -> Span:
        """Return the opening period around an instant, or the whole day if the store is closed then."""
        return next((span for span in self.open if span[0] <= instant_ms < span[1]), (self.begins, self.ends))

    def closing(self, instant_ms: int) -> int:
        """Return when everybody who is inside at that instant must have left."""
        return self.period(instant_ms)[1]

    def local(self, instant_ms: int) -> datetime:
        """Return the local time of the store."""
        return datetime.fromtimestamp(instant_ms // 1000, ZoneInfo(self.store.timezone))


def store_day(store: Store, day: date, seed: str) -> StoreDay:
    """Return a business day. It ends half an hour after the last closing if that is on the next day."""
    begins, ends = _boundary(store, day), _boundary(store, day + timedelta(days=1))
    spans = ((max(opens, begins), min(closes, ends)) for opens, closes in _periods(store, day))
    clear: list[Span] = []
    for opens, closes in sorted(spans):
        opens_clear = max(opens, clear[-1][1] + GRACE_MS) if clear else opens
        if opens_clear < closes:
            clear.append((opens_clear, closes))
    return StoreDay(store, day.isoformat(), seed, begins, ends, tuple(clear))


def open_spans(store: Store, begins: int, ends: int) -> tuple[Span, ...]:
    """Return when a store with opening hours is open in [begins, ends), in ms. Two periods without a gap are one."""
    found: list[Span] = []
    for opens, closes in open_periods(store, begins // 1000, ends // 1000):
        first, last = max(opens * 1000, begins), min(closes * 1000, ends)
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        elif first < last:
            found.append((first, last))
    return tuple(found)


def _boundary(store: Store, day: date) -> int:
    """Return the start of the business day, or when the last of the staff of the day before has left."""
    closings = (closes + GRACE_MS for _, closes in _periods(store, day - timedelta(days=1)))
    begins = _instant(store, day, store.day_starts_at)
    late = max(closings, default=begins)
    return late if begins < late <= begins + 12 * HOUR_MS else begins


def _periods(store: Store, day: date) -> list[Span]:
    if day in store.closed_on:
        return []
    hours = store.opening_hours.get(WEEKDAYS[day.weekday()], ()) if store.opening_hours else USUAL_HOURS
    found = []
    for opens, _, closes in (period.partition("-") for period in hours):
        closing_day = day + timedelta(days=closes <= opens)
        found.append((_instant(store, day, opens), _instant(store, closing_day, closes)))
    return found


def _instant(store: Store, day: date, clock: str) -> int:
    if clock == "24:00":
        day, clock = day + timedelta(days=1), "00:00"
    there = datetime.combine(day, time.fromisoformat(clock), ZoneInfo(store.timezone))
    return to_milliseconds(there.astimezone(UTC))
