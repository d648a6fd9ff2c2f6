"""When a receiver wants to be asked again, as it says in `Retry-After` (RFC 9110, 10.2.3)."""

from datetime import UTC
from email.utils import parsedate_to_datetime


def seconds_asked(said: str | None, now: float) -> float | None:
    """Seconds from now, which is in seconds since 1970; None where nothing is said that can be understood.

    However many: who waits has a bound of its own.
    """
    if said is None:
        return None
    if said.isascii() and said.isdecimal():
        return float(said[:9])
    try:
        at = parsedate_to_datetime(said)
    except (ValueError, TypeError, ArithmeticError, LookupError):  # what its numbers come to is up to a stranger
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)
