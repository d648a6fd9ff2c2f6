"""How many events carry each flag, from day cells, also of receipts outside of opening hours."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from master_dataset.registry.stores import Store
from serving_layer.query.aggregate import OUTSIDE_OPENING_HOURS
from serving_layer.query.day_columns import Integers
from serving_layer.query.day_rows import DayRows
from serving_layer.query.resolve import StoreQuery
from views.core.day_cells import DAY_SECONDS, DAY_WINDOWS, RECEIPTS
from views.core.local_time import STEP, open_periods
from views.core.view import flags_counted


def event_flags(stores: Sequence[StoreQuery], rows: DayRows) -> Counter[str]:
    """How many events of a view carry each flag, over all stores. `stores`: those that `rows` number."""
    view, found = rows.days.view, Counter[str]()
    flags = flags_counted(view)
    names = list(view.columns)
    for flag, place in flags.items():
        found[flag] = int(rows.state(names[place]).values.sum())
    if flags and RECEIPTS in view.columns:
        found[OUTSIDE_OPENING_HOURS] = _closed_receipts(stores, rows)
    return +found


def days_of_schedules(stores: Sequence[StoreQuery]) -> int:
    """How many days of opening hours are gone through to find receipts outside of them: once for equal hours."""
    schedules = {(hours_of(of.store), of.timeline.start, of.timeline.end) for of in stores if of.store.opening_hours}
    return sum(end - start for _, start, end in schedules) // DAY_SECONDS


def _closed_receipts(stores: Sequence[StoreQuery], rows: DayRows) -> int:
    """How many receipts lie outside the opening hours of their store, where it has any."""
    by_hours: dict[tuple[Hours, int, int], list[int]] = {}
    for place, of in enumerate(stores):
        if of.store.opening_hours:
            key = (hours_of(of.store), of.timeline.start, of.timeline.end)
            by_hours.setdefault(key, []).append(place)
    if not by_hours:
        return 0
    schedule = np.full(len(stores), len(by_hours))
    for number, places in enumerate(by_hours.values()):
        schedule[places] = number
    at = list(rows.days.view.columns).index(RECEIPTS)
    closed, until = 0, rows.days.receipts[rows.stored]
    base = rows.days.starts[rows.stored] // DAY_SECONDS * DAY_SECONDS
    of_row = schedule[rows.store[: rows.stored_count]]
    in_order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[in_order], np.arange(len(by_hours) + 1)).tolist()
    intervals = [open_intervals(*key) for key in by_hours]
    for (opens, closes), first, end in zip(intervals, bounds[:-1], bounds[1:], strict=True):
        own = in_order[first:end]
        closed += int(until[own, -1].sum(dtype=np.int64)) - _receipts_between(until, own, base[own], opens, closes)
    for place, _, row in rows.speed:
        if schedule[place] < len(intervals):
            opens, closes = intervals[schedule[place]]
            last = int(np.searchsorted(opens, row.key.window, side="right")) - 1
            if last < 0 or closes[last] <= row.key.window:
                closed += int(row.states[at] or 0)
    return closed


def _receipts_between(
    until: npt.NDArray[np.int32], rows: Integers, base: Integers, opens: Integers, closes: Integers
) -> int:
    """The receipts within intervals that do not overlap.

    Args:
        until: per row and window of its day the receipts until its end.
        rows: those that count.
        base: where the UTC days of these rows start.
        opens: where the intervals start, in order.
        closes: where they end.
    """
    found, place = 0, np.searchsorted(closes, base, side="right")
    while True:
        reaches = place < len(opens)
        reaches[reaches] = opens[place[reaches]] < base[reaches] + DAY_SECONDS
        rows, base, place = rows[reaches], base[reaches], place[reaches]
        if not len(rows):
            return found
        for bounds, sign in ((opens, -1), (closes, 1)):
            window = np.clip((bounds[place] - base) // STEP, 0, DAY_WINDOWS)
            before = np.where(window > 0, until[rows, np.maximum(window - 1, 0)], 0)
            found += sign * int(before.sum(dtype=np.int64))
        place = place + 1


Hours = tuple[str, tuple[tuple[str, tuple[str, ...]], ...], tuple[date, ...]]
"""The time zone of a store, its opening hours by weekday, and the dates on which it is closed."""


def hours_of(store: Store) -> Hours:
    """When a store is open."""
    hours = tuple((day, tuple(periods)) for day, periods in sorted(store.opening_hours.items()))
    return store.timezone, hours, tuple(sorted(store.closed_on))


@lru_cache(maxsize=1024)
def open_intervals(hours: Hours, start: int, end: int) -> tuple[Integers, Integers]:
    """When a store with these hours opens and closes in [start, end), as intervals that do not overlap."""
    zone, weekdays, closed_on = hours
    store = Store(id="", timezone=zone, opening_hours=dict(weekdays), closed_on=closed_on)
    opens, closes = list[int](), list[int]()
    for first, last in sorted(open_periods(store, start, end)):
        if closes and first <= closes[-1]:
            closes[-1] = max(closes[-1], last)
        elif first < last:
            opens.append(first)
            closes.append(last)
    return np.array(opens, np.int64), np.array(closes, np.int64)
