"""A view as Spark SQL over the rows of its source: the text that both layers run."""

from master_dataset.visits.visit import VisitRules
from views.core.cells import Shape
from views.core.view import WINDOW, Each


def quoted(text: str) -> str:
    """A SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def window_sql(at: str) -> str:
    """The start of the window that the instant `at` lies in, in seconds since 1970 (BIGINT)."""
    length = int(WINDOW.total_seconds())
    return f"unix_seconds({at}) - pmod(unix_seconds({at}), {length}L)"


def fresh_sql(rules: VisitRules) -> str:
    """Whether a delivery is fresh: then every repeat of a sighting lies within one gap of its first delivery."""
    age = "unix_millis(received_at) - unix_millis(happened_at)"
    return f"{age} between {-rules.ahead}L and {rules.gap - rules.ahead}L"


def dimension_sql(expression: str) -> str:
    """A dimension is text, whatever it was."""
    return f"cast({expression} as string)"


def values_sql(shape: Shape) -> list[str]:
    """What a row contributes to each state column, in order."""
    return [column.row_sql for column in shape.columns.values()]


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
