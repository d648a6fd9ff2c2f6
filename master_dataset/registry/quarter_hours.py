"""A window is 15 minutes of UTC, so it is a window of local time only where the offset is a multiple of 15 minutes."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

QUARTER = timedelta(minutes=15)
_NAMES = 1024  # names come with requests, and any text may be one
FIRST_CHECKED = date(2000, 1, 1)  # for a store that does not say since when it is open
FIRST_EVENT = date(1970, 1, 1)  # no event can be older
LAST_CHECKED = date(2041, 1, 1)  # the rules known today repeat after that


@lru_cache(_NAMES)
def zone(name: str) -> ZoneInfo | None:
    """Give the time zone of that name, if there is one."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones, a path, an empty name
        return None


@lru_cache(_NAMES)
def odd_moment(name: str, since: date) -> datetime | None:
    """Give the first noon (UTC) since then whose local offset is no multiple of 15 minutes; None if there is none.

    Days are enough: no zone ever had an offset for less.
    """
    there = ZoneInfo(name)
    day = max(since, FIRST_EVENT)
    while day < LAST_CHECKED:
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).astimezone(there)
        if (noon.utcoffset() or QUARTER) % QUARTER:
            return noon
        day += timedelta(days=1)
    return None
