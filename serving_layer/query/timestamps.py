"""An instant as every answer writes it."""

from datetime import UTC, datetime
from typing import overload


@overload
def stamp(at: datetime) -> str: ...
@overload
def stamp(at: None) -> None: ...
@overload
def stamp(at: datetime | None) -> str | None: ...
def stamp(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with `Z`; milliseconds where there are any."""
    if at is None:
        return None
    spec = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"
