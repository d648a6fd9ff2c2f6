"""A view: one question, answered per store, 15-minute window and dimensions. Both layers run this one definition."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property, reduce
from typing import Any

from master_dataset.errors import DefinitionError
from master_dataset.source import Source
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
    """Row expressions are Spark SQL text over the columns of the source (`Source.columns`).

    `dimensions`: name to expression, presented as text. `metrics`: state name to aggregate. `where`: rows that count.
    `reads_days`: how many UTC days before and after that of a window its events may lie.
    `each`: count array elements instead of events. `at`: the instant whose window the row belongs to.
    `settles_after`: how long after its end a window is over: until then events of it are only about to happen.
    `counts_visits`: rows are not the events but the visits made of them (see `master_dataset.visits`).
    `question`: filled from the module's docstring if empty.

    `at` may be a field of the element of `each`: then an event adds to several windows.
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
        """Refuse at import what could not work later."""
        if not self.name.isidentifier() or self.name != self.name.lower():
            message = f"view `{self.name}`: a name is lower-case letters, digits and underscores"
            raise DefinitionError(message, do="rename the view")
        if self.name == WAITING.name:
            raise DefinitionError(f"`{self.name}` is no view: speed writes what waits under it", do="rename the view")
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
        """Under which name events of it wait for batch: visits take less than their source does."""
        return self.name if self.counts_visits else self.source.topic

    @property
    def is_spread(self) -> bool:
        """Whether an event adds to several windows: the window is that of an element, not of the event."""
        return self.each is not None and re.search(rf"\b{self.each.name}\.", self.at) is not None

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


_PREFIX = "flag_"


def flag_counts(source: Source[Any]) -> dict[str, Count]:
    """A metric for each flag, for a view that counts every event of the source once."""
    return {f"{_PREFIX}{flag}": Count(f"array_contains(flags, '{flag}')") for flag in source.flags}


def flags_counted(shape: Shape) -> Mapping[str, int]:
    """Each flag that the view counts, with the place of its column among the states."""
    return {name.removeprefix(_PREFIX): place for place, name in enumerate(shape.columns) if name.startswith(_PREFIX)}
