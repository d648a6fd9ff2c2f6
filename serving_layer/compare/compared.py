"""What a series says of its comparison: which days, and how many hours, of both sides."""

from collections.abc import Sequence
from datetime import date

from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.query.store_part import StorePart
from serving_layer.query.timeline import iso_epoch
from serving_layer.responses.metrics import Compared, PeriodCompared
from views.core.local_time import ONE_DAY, STEP, open_windows

WINDOWS_OF_AN_HOUR = 3600 // STEP


def compared(part: StorePart, calendar: str) -> Compared:
    """`now` and `before`: local dates from (inclusive) to (exclusive), how many, and their hours, all and open.

    `before` is null if nothing has a counterpart. `until` is there if the period is unfinished.
    """
    of = part.asked
    windows = frozenset(range(of.timeline.start, part.until, STEP))
    own = [day for day, _ in of.at.days.touched(of.at.span._replace(end=part.until))]
    there = part.earlier
    return Compared(
        calendar=calendar,
        now=_period(of.store, own, windows),
        before=_period(of.store, there.dates, there.windows) if there else None,
        partial=part.is_partial or UNSET,
        until=iso_epoch(part.until) if part.is_partial else UNSET,
    )


def _period(store: Store, dates: Sequence[date], windows: frozenset[int]) -> PeriodCompared | None:
    if not windows:
        return None
    is_open = open_windows(store, min(windows), max(windows) + STEP)
    return PeriodCompared(
        start=dates[0],
        end=dates[-1] + ONE_DAY,
        days=len(dates),
        hours=len(windows) / WINDOWS_OF_AN_HOUR,
        open_hours=len(windows & is_open) / WINDOWS_OF_AN_HOUR,
    )
