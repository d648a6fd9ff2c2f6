"""Clocks on walls: where a local day begins, whatever its time zone does that night.

Everything inside is whole seconds since 1970 on the grid of 15-minute windows; a time zone only cuts and labels.
"""

from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from views.core.cut import seconds
from views.core.view import WINDOW

STEP = int(WINDOW.total_seconds())


def clock(zone: ZoneInfo, at: int) -> datetime:
    """What the clock on the wall shows, without an offset."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def offset(zone: ZoneInfo, at: int) -> int:
    """Seconds east of UTC at that instant."""
    shift = datetime.fromtimestamp(at, zone).utcoffset()
    return int(shift.total_seconds()) if shift else 0


def first_instant(zone: ZoneInfo, day: date, at: time = time(0)) -> int:
    """The first window whose local clock, on that date, is at or past `at`.

    A repeated hour counts from its first pass; a skipped clock (Cairo 2026-04-24 has no 00:00) where it is skipped.
    """
    wanted = datetime.combine(day, at)
    start = round_up(seconds(wanted.replace(tzinfo=zone)))
    while clock(zone, start - STEP) >= wanted:
        start -= STEP
    return start


def round_down(at: int) -> int:
    """The window that the instant lies in."""
    return at - at % STEP


def round_up(at: int) -> int:
    """The first window that does not begin before the instant."""
    return at + -at % STEP
