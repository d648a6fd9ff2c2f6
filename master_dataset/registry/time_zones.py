"""Time zones by name, of the release of the tz database that is pinned: the package `tzdata`.

`zoneinfo` asks the files of the machine first. They may be of another release, and name more: `localtime` is whatever
the machine says, and `right/Europe/Bratislava` counts leap seconds. So this module turns them off for its process,
which every process that knows of stores imports; a program that imports only the client keeps its own.
"""

import zoneinfo
from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import structlog

zoneinfo.reset_tzpath(to=())  # not `ZoneInfo.from_file`: Spark pickles zones, and those of files cannot be pickled

TIME_ZONES = frozenset((files("tzdata") / "zones").read_text().split()) - {"Factory"}
"""The names of all time zones. `Factory` stands for "not set"."""
log = structlog.get_logger()
UNKNOWN_ZONE = "UTC"
"""Of a store that was registered with a name of its machine's files, which the package does not have."""
_VARIANTS = ("posix/", "right/")
"""Folders of such files, which repeat all time zones; the second with leap seconds."""


@cache
def zone_named(name: str) -> ZoneInfo:
    """The time zone of a name in `TIME_ZONES`. ZoneInfoNotFoundError or ValueError for others."""
    return ZoneInfo(name)


@cache
def known_name(name: str) -> str:
    """The name of a registered time zone, or the one that stands for it: a release before the list took any.

    Where none of that name is known, it is logged, once per process.
    """
    known = name
    for variant in _VARIANTS:
        known = known.removeprefix(variant)
    if known in TIME_ZONES:
        return known
    log.warning("stores.time_zone_unknown", name=name, read_as=UNKNOWN_ZONE)
    return UNKNOWN_ZONE


# A window is 15 minutes of UTC, so it is one of local time only where the offset is a multiple of that.

QUARTER = timedelta(minutes=15)
FIRST_CHECKED = date(2000, 1, 1)
"""For a store that does not say since when it is open."""
FIRST_EVENT = date(1970, 1, 1)
LAST_CHECKED = date(2041, 1, 1)
"""The rules known today repeat afterwards."""


def first_misaligned_offset(name: str, since: date) -> datetime | None:
    """Return the first noon (UTC) since then whose local offset is no multiple of 15 minutes; None if there is none.

    Days are enough: no zone ever had an offset for less.
    """
    days = _misaligned_days(name)
    place = bisect_left(days, max(since, FIRST_EVENT))
    return _noon(name, days[place]) if place < len(days) else None


@cache
def _misaligned_days(name: str) -> tuple[date, ...]:
    """Every day since the first event at whose noon the offset is no multiple of 15 minutes."""
    days = (FIRST_EVENT + timedelta(days=number) for number in range((LAST_CHECKED - FIRST_EVENT).days))
    return tuple(day for day in days if (_noon(name, day).utcoffset() or QUARTER) % QUARTER)


def _noon(name: str, day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC).astimezone(zone_named(name))
