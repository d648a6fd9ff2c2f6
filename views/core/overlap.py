"""What lasts over several windows counts in each of them for the time that it overlaps."""

from views.core.view import WINDOW, Each

PART = "part"
AT = f"{PART}.at"
"""The start of the window, for `View.at`."""
MS = f"{PART}.ms"
"""Milliseconds of overlap with that window."""


def overlaps(start_us: str, end: str) -> Each:
    """The windows that [start, end) touches. `start_us`: SQL in microseconds since 1970, `end`: SQL of an instant."""
    length = WINDOW.total_seconds() * 1000
    start, until, window = f"({start_us} div 1000)", f"(unix_micros({end}) div 1000)", f"{length:.0f}L"
    inside = f"least({until}, (w + 1) * {window}) - greatest({start}, w * {window})"
    windows = f"sequence({start} div {window}, ({until} - 1) div {window})"
    parts = f"transform({windows}, w -> named_struct('at', timestamp_millis(w * {window}), 'ms', {inside}))"
    return Each(PART, of=f"if({until} > {start}, {parts}, null)")
