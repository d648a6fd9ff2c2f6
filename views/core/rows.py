"""A view as Spark SQL over the rows of its source: the text that both layers run."""

from master_dataset.visits.visit import VisitRules
from views.core.shape import Shape
from views.core.view import WINDOW


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
