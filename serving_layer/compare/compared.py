"""What a series says of its comparison: which days, and how many hours, of both sides."""

from collections.abc import Sequence
from datetime import date

from master_dataset.registry.stores import Store
from serving_layer.query.local_time import written
from serving_layer.query.store_part import StorePart
from views.core.business_days import ONE_DAY
from views.core.local_time import STEP
from views.core.open_windows import open_windows

WINDOWS_OF_AN_HOUR = 3600 // STEP


def compared(part: StorePart, calendar: str) -> dict[str, object]:
    """`now` and `before`: local dates from (inclusive) to (exclusive), how many, and their hours, all and open.

    `before` is null if nothing has a counterpart. `until` is there if the period is unfinished.
    """
    of = part.asked
    windows = frozenset(range(of.timeline.start, part.until, STEP))
    own = [day for day, _ in of.at.days.touched(of.at.span._replace(end=part.until))]
    told: dict[str, object] = {"calendar": calendar, "now": _side(of.store, own, windows)}
    there = part.earlier
    told["before"] = _side(of.store, there.dates, there.windows) if there else None
    if part.is_partial:
        told |= {"partial": True, "until": written(part.until)}
    return told


def _side(store: Store, dates: Sequence[date], windows: frozenset[int]) -> dict[str, object] | None:
    if not windows:
        return None
    is_open = open_windows(store, min(windows), max(windows) + STEP)
    return {
        "from": dates[0],
        "to": dates[-1] + ONE_DAY,
        "days": len(dates),
        "hours": len(windows) / WINDOWS_OF_AN_HOUR,
        "open_hours": len(windows & is_open) / WINDOWS_OF_AN_HOUR,
    }
