"""What sensors say of time: intervals that they counted over, and how long something lasted."""

from master_dataset.fields import Whole
from master_dataset.parsing.dead_letter import Reason, Refused

WINDOW_MS = 900_000
"""15 minutes: the longest interval, and the length of a window."""
HOUR_MS = 3_600_000
INTERVAL = Whole(1, WINDOW_MS, about="Length of the interval, which lies in one 15-minute window of UTC.")
"""The length of a counting interval that begins at `happened_at`."""


def refuse_crossing(start_ms: int, interval_ms: int) -> None:
    """Raise Refused `interval_crosses_window` unless [start, start + interval) lies in one window of UTC."""
    if start_ms % WINDOW_MS + interval_ms > WINDOW_MS:
        why = "reaches beyond the 15-minute window of UTC that `happened_at` lies in"
        raise Refused(Reason.INTERVAL_CROSSES_WINDOW, why, "/interval_ms")


def lasted(start_ms: int, end_ms: int, most_ms: int, field: str) -> int:
    """Give end - start in ms. `field`: that of the start. Raises Refused `negative_duration`, `duration_too_long`."""
    if end_ms < start_ms:
        raise Refused(Reason.NEGATIVE_DURATION, "lies after the end", f"/{field}")
    if end_ms - start_ms > most_ms:
        raise Refused(
            Reason.DURATION_TOO_LONG, f"lies more than {most_ms // HOUR_MS} hours before the end", f"/{field}"
        )
    return end_ms - start_ms


def required(start_ms: int | None, field: str) -> int:
    """Give an instant that this kind of event has to carry. Raises Refused `missing_field`."""
    if start_ms is None:
        raise Refused(Reason.MISSING_FIELD, "is missing", f"/{field}")
    return start_ms


def flags(*named: tuple[str, bool]) -> list[str]:
    """Give the names of those that hold, sorted."""
    return sorted(name for name, holds in named if holds)
