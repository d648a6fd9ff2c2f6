"""Times as callers write them: time zones by name, bounds of a range, and instants in answers."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from serving_layer.errors import BadQuestion
from views.core.cut import seconds

FIRST_YEAR, LAST_YEAR = 1970, 2200
"""The years that an event may have (reliability 4.1)."""


@lru_cache(maxsize=1024)
def zone_named(name: str) -> ZoneInfo:
    """The time zone. BadQuestion if the time zone database has none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadQuestion(f"There is no time zone `{name}`.", do="Use a name such as `Europe/Bratislava`.") from error


def read_bound(text: str, start_of: Callable[[date], int], name: str) -> int:
    """A bound of a range: an instant with offset, or a date, which means `start_of` it. In seconds, not on the grid."""
    try:
        if len(text) == len("2026-11-21"):
            day = date.fromisoformat(text)
            _within_years(day, text, name)
            return start_of(day)
        at = datetime.fromisoformat(text.replace(" ", "+"))  # a `+` that a query string turned into a space
    except (ValueError, OverflowError) as error:
        message = f"`{name}` is neither a date nor a time: `{text}`."
        raise BadQuestion(message, do=f"Write `{name}=2026-11-21` or `{name}=2026-11-21T09:00:00Z`.") from error
    if at.tzinfo is None:
        raise BadQuestion(f"`{name}` has no offset: `{text}`.", do=f"Write `{name}={text}Z`, or a date alone.")
    _within_years(at.date(), text, name)
    return seconds(at)


def _within_years(day: date, text: str, name: str) -> None:
    if not FIRST_YEAR < day.year < LAST_YEAR:
        message = f"`{name}` is beyond the years that Galatea keeps: `{text}`."
        raise BadQuestion(message, do=f"Ask for a time between {FIRST_YEAR + 1} and {LAST_YEAR - 1}.")


def written(at: int) -> str:
    """ISO 8601 in UTC with `Z`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
