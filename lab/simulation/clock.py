"""Instants are whole milliseconds since 1970, written with three decimals and `Z`."""

from datetime import UTC, datetime

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
QUARTER_MS = 15 * MINUTE_MS
HOUR_MS = 60 * MINUTE_MS


def written(instant_ms: int) -> str:
    """Write an instant as a sensor does."""
    return f"{datetime.fromtimestamp(instant_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{instant_ms % 1000:03d}Z"


def milliseconds(at: datetime) -> int:
    """Count the milliseconds of an aware instant."""
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def quarter(instant_ms: int) -> int:
    """Give the start of the 15-minute window of UTC that the instant lies in."""
    return instant_ms - instant_ms % QUARTER_MS
