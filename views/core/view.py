"""A view: one question, answered per store, 15-minute window and dimensions. Both layers run this one definition."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property, reduce
from typing import Any

from master_dataset.errors import DefinitionError
from master_dataset.source import Source
from master_dataset.visits.visit import VisitRules
from views.core.aggregates import Aggregate, Column, Count, Shown, State
from views.core.cells import WAITING, Shape, States
from views.core.sketch import LG_K

WINDOW = timedelta(minutes=15)
"""The length of a window. Windows are cut in UTC; days and hours of a store are made of them when read."""

VISIT_RULES = "@visit_rules"
"""Under which definitions say when sightings make a visit."""


@dataclass(frozen=True)
class Each:
    """The view counts the elements of an array column, each under the name `name`, not the events themselves."""

    name: str
    of: str


@dataclass(frozen=True)
class View:
    """Rows to cells, in Spark SQL over the columns of the source (`Source.columns`).

    Attributes:
        name: Lower-case identifier; also the name in REST, and of the Delta table of corrected cells.
        source: The source whose events the view counts.
        metrics: State name to aggregate.
        dimensions: Name to expression; a dimension's value is text, or null.
        where: Condition for the rows that count.
        each: Counts the elements of an array column instead of the events.
        at: The instant whose window a row belongs to. May be a field of the element of `each`: then an event adds to
            several windows.
        settles_after: How long after its end a window is over. Until then more events of it are still expected.
        reads_days: How many UTC days before and after the day of a window its events may lie.
        counts_visits: Rows are not the events but the visits made of them, see `master_dataset.visits`.
        question: The question in words; the docstring of the view's module if empty.
    """

    name: str
    source: Source[Any]
    metrics: Mapping[str, Aggregate]
    dimensions: Mapping[str, str] = field(default_factory=dict)
    where: str = "true"
    each: Each | None = None
    at: str = "happened_at"
    settles_after: timedelta = timedelta(0)
    reads_days: tuple[int, int] = (0, 0)
    counts_visits: bool = False
    question: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Reject an invalid definition at import. DefinitionError."""
        if not self.name.isidentifier() or self.name != self.name.lower():
            message = f"view `{self.name}`: a name is lower-case letters, digits and underscores"
            raise DefinitionError(message, do="rename the view")
        if self.name == WAITING.name:
            raise DefinitionError(
                f"`{self.name}` is reserved: speed writes waiting events under it", do="rename the view"
            )
        if not self.metrics:
            raise DefinitionError(f"view `{self.name}` has no metrics", do="give it at least one aggregate")
        if len(self.columns) < sum(len(aggregate.columns) for aggregate in self.metrics.values()):
            raise DefinitionError(f"view `{self.name}` has two states of one name", do="rename one of its metrics")

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Every state column by its full name (`net_sales`, or `wait_max` of a composite state), in order."""
        return {
            f"{name}_{suffix}" if suffix else name: column
            for name, aggregate in self.metrics.items()
            for suffix, column in aggregate.columns.items()
        }

    @cached_property
    def definition_hash(self) -> str:
        """Changes whenever an answer could: two hashes are never merged (R12)."""
        parts: list[str] = [self.name, self.source.topic, self.where, self.at, repr(self.each)]
        parts += [f"{name}={sql}" for name, sql in self.dimensions.items()]
        parts += [f"{name}={column.by}({column.of})" for name, column in self.columns.items()]
        parts += [f"reads {self.reads_days}"] if self.reads_days != (0, 0) else []
        parts += ["of visits"] if self.counts_visits else []
        parts += [f"sketches of {LG_K}"] if any(column.by == "union" for column in self.columns.values()) else []
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def is_defined_alike(self, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
        """Whether cells of these two definitions (`views.registry.current_definitions`) may be merged."""
        named = (self.name, VISIT_RULES) if self.counts_visits else (self.name,)
        return all(one.get(name) == other.get(name) for name in named)

    @property
    def waits_as(self) -> str:
        """The name under which late events wait for batch. Speed leaves more sightings to batch than events."""
        return self.name if self.counts_visits else self.source.topic

    @cached_property
    def is_spread(self) -> bool:
        """Whether an event adds to several windows: the window is that of an element, not of the event."""
        if self.each is None or self.each.name not in self.at:  # sqlglot is not imported for nothing
            return False
        return self.each.name in columns_in(self.at)

    @cached_property
    def columns_read(self) -> frozenset[str]:
        """The columns that the view's expressions read: of the source or, if it counts visits, of a visit."""
        expressions = [self.where, self.at, *self.dimensions.values(), *(column.of for column in self.columns.values())]
        read = frozenset().union(*map(columns_in, expressions))
        return (read - {self.each.name}) | columns_in(self.each.of) if self.each else read

    def days_read(self, days: Iterable[date]) -> set[date]:
        """Of which UTC days events are read to compute the windows of these days."""
        before, after = self.reads_days
        return {day + timedelta(days=shift) for day in days for shift in range(-before, after + 1)}

    def days_reached(self, days: Iterable[date]) -> set[date]:
        """Of which UTC days windows may change if events of these days come."""
        before, after = self.reads_days
        return {day - timedelta(days=shift) for day in days for shift in range(-before, after + 1)}

    def merge(self, left: States, right: States) -> States:
        """The states of one cell over two disjoint sets of events, as one."""
        return tuple(column.merge(a, b) for column, a, b in zip(self.columns.values(), left, right, strict=True))

    def merge_all(self, parts: Iterable[States]) -> States | None:
        """None means that no event ever reached this cell. It is not a zero."""
        found: Sequence[States] = tuple(parts)
        return reduce(self.merge, found) if found else None

    def by_metric(self, states: States) -> dict[str, State]:
        """The states taken apart: aggregate name to the values of its columns."""
        rest = iter(states)
        return {name: tuple(next(rest) for _ in metric.columns) for name, metric in self.metrics.items()}

    def present_states(self, states: States) -> dict[str, Shown]:
        """The states as the API shows them: a whole number, a sketch, or an object for a composite state."""
        return {name: self.metrics[name].shown(values) for name, values in self.by_metric(states).items()}


_FLAG = "flag_"


def flag_counts(source: Source[Any]) -> dict[str, Count]:
    """A metric for each flag of the source, for a view that counts each of its events once."""
    return {f"{_FLAG}{flag}": Count(f"array_contains(flags, '{flag}')") for flag in source.flags}


def flags_counted(shape: Shape) -> Mapping[str, int]:
    """Each flag that the view counts, with the position of its column among the states."""
    return {name.removeprefix(_FLAG): at for at, name in enumerate(shape.columns) if name.startswith(_FLAG)}


PART = "part"
AT = f"{PART}.at"
"""The start of the window, for `View.at`."""
MS = f"{PART}.ms"
"""Milliseconds of overlap with that window."""


def overlaps(start_us: str, end: str) -> Each:
    """The windows that an interval touches, each with its time in it: what lasts counts in every one of them.

    Args:
        start_us: SQL of the start, in microseconds since 1970.
        end: SQL of the end, an instant; exclusive.
    """
    length = WINDOW.total_seconds() * 1000
    start, until, window = f"({start_us} div 1000)", f"(unix_micros({end}) div 1000)", f"{length:.0f}L"
    inside = f"least({until}, (w + 1) * {window}) - greatest({start}, w * {window})"
    windows = f"sequence({start} div {window}, ({until} - 1) div {window})"
    parts = f"transform({windows}, w -> named_struct('at', timestamp_millis(w * {window}), 'ms', {inside}))"
    return Each(PART, of=f"if({until} > {start}, {parts}, null)")


def columns_in(expression: str) -> frozenset[str]:
    """The columns that a Spark SQL expression reads; of a field (`item.sku`) the column that has it.

    Raises:
        DefinitionError: The expression cannot be parsed.
    """
    from sqlglot import exp, parse_one  # noqa: PLC0415 - most processes only run the text
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - likewise

    try:
        parsed = parse_one(expression, dialect="spark")
    except SqlglotError as error:
        message = f"`{expression}` cannot be read as Spark SQL: {str(error).partition(chr(10))[0]}"
        raise DefinitionError(message, do="Correct the view.") from error
    return frozenset(column.parts[0].name for column in parsed.find_all(exp.Column))


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
    age, (least, greatest) = "unix_millis(received_at) - unix_millis(happened_at)", rules.fresh_ages
    return f"{age} between {least}L and {greatest}L"


def dimension_sql(expression: str) -> str:
    """A dimension as text, whatever its type."""
    return f"cast({expression} as string)"


def values_sql(shape: Shape) -> list[str]:
    """What a row contributes to each state column, in order."""
    return [column.row_sql for column in shape.columns.values()]
