"""A view: one question, answered per store, 15-minute window and dimensions. Said once; both layers run this text."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, reduce
from typing import Any

from master_dataset.errors import DefinitionError
from master_dataset.source import Source
from views.core.aggregates import Aggregate, Column, State, Value
from views.core.shape import WAITING

WINDOW = timedelta(minutes=15)
"""The length of a window. Windows are cut in UTC; days and hours of a store are made of them when read."""

States = tuple[Value, ...]
"""All state columns of one cell of a view, in the order of `View.columns`."""


@dataclass(frozen=True)
class Each:
    """The view counts the elements of an array column, each under the name `name`, not the events themselves."""

    name: str
    of: str


@dataclass(frozen=True)
class View:
    """Row expressions are Spark SQL text over the columns of the source (`Source.columns`).

    `dimensions`: name to expression, presented as text. `metrics`: state name to aggregate. `where`: rows that count.
    `each`: count array elements instead of events. `at`: the instant whose window the row belongs to.
    `settles_after`: how long after its end a window is over. `question`: filled from the module's docstring if empty.
    """

    name: str
    source: Source[Any]
    metrics: Mapping[str, Aggregate]
    dimensions: Mapping[str, str] = field(default_factory=dict)
    where: str = "true"
    each: Each | None = None
    at: str = "happened_at"
    settles_after: timedelta = timedelta(0)
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

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """Every state column by its full name (`net_sales`, or `wait_ms.sum` of a composite state), in order."""
        return {
            f"{name}.{suffix}" if suffix else name: column
            for name, aggregate in self.metrics.items()
            for suffix, column in aggregate.columns.items()
        }

    @cached_property
    def definition_hash(self) -> str:
        """Changes whenever an answer could: two hashes are never merged (R12)."""
        parts: list[str] = [self.name, self.source.topic, self.where, self.at, repr(self.each)]
        parts += [f"{name}={sql}" for name, sql in self.dimensions.items()]
        parts += [f"{name}={column.by}({column.of})" for name, column in self.columns.items()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

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

    def present_states(self, states: States) -> dict[str, Value | dict[str, Value]]:
        """The states as the API shows them: a whole number, or an object for a composite state."""
        shown: dict[str, Value | dict[str, Value]] = {}
        for name, values in self.by_metric(states).items():
            suffixes = tuple(self.metrics[name].columns)
            shown[name] = values[0] if suffixes == ("",) else dict(zip(suffixes, values, strict=True))
        return shown
