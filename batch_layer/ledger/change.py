"""What a ledger compares: what readers saw just before and just after a publication, and where the two differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from batch_layer.blocks import StoreDay
from batch_layer.run import Digest, read_digests
from batch_layer.speed_span import SpeedSpan
from views.control.recompute import Cause
from views.core.cut import month_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from views.core.view import View


@dataclass(frozen=True)
class PublishedState:
    """What readers saw: the published cells and, from the cut on, the rows of that generation."""

    cut: datetime
    manifest: Mapping[tuple[str, date], str]
    generation: int
    definitions: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """Two states of what readers see, whose difference a ledger explains.

    `is_rollback`: an earlier publication is restored; both states have the same events.
    """

    before: PublishedState
    after: PublishedState
    is_rollback: bool = False

    @property
    def until(self) -> datetime:
        """Only events received before this instant are compared."""
        return max(self.before.cut, self.after.cut)

    def runs(self, view: str) -> tuple[dict[date, str], dict[date, str]]:
        """For the days whose run changed: day to run, before and after."""
        keys = {key for key in {*self.before.manifest, *self.after.manifest} if key[0] == view}
        other = [key for key in keys if self.before.manifest.get(key) != self.after.manifest.get(key)]
        first, second = (
            {key[1]: state.manifest[key] for key in other if key in state.manifest}
            for state in (self.before, self.after)
        )
        return first, second

    def all_runs(self, view: str) -> tuple[dict[date, str], dict[date, str]]:
        """For every day: day to run, before and after."""
        first, second = (
            {day: run for (name, day), run in state.manifest.items() if name == view}
            for state in (self.before, self.after)
        )
        return first, second

    def spans(self, connect: "Callable[[], Session]", view: "View") -> tuple[SpeedSpan, SpeedSpan]:
        """The speed rows of a view that were shown, and those that are shown now.

        If its definition changed, the two are of different generations. Otherwise both are read from the newer
        generation, which has the rows of the one before and has read further.
        """
        of = self.before.generation if self.fixed_cause(view) == "definition changed" else self.after.generation
        return (
            SpeedSpan(connect, of, self.before.cut, self.until),
            SpeedSpan(connect, self.after.generation, self.after.cut, self.until),
        )

    def is_changed(self, view: "View") -> bool:
        """Whether the view was published with another definition, or not at all."""
        return not view.is_defined_alike(self.before.definitions, self.after.definitions)

    def fixed_cause(self, view: "View") -> Cause | None:
        """The cause of every change in a view, if it does not depend on the events."""
        if self.is_rollback:
            return "rolled back"
        return "definition changed" if self.is_changed(view) and self.before.manifest else None


UNITS = pa.schema(
    [
        ("store", pa.string()),
        ("month", pa.date32()),
        ("days", pa.list_(pa.date32())),
        ("received", pa.list_(pa.date32())),
    ]
)
"""A row per store and month: its days to compare, and on which days speed received what it shows of them."""
Days = Mapping[date, Mapping[str, Digest | None]]
"""By day and store."""


@dataclass(frozen=True)
class BlockDifferences:
    """`changed`: (store, day) pairs with different blocks; `new`: those with a block after and none before."""

    changed: set[StoreDay] = field(default_factory=set)
    new: dict[StoreDay, Digest] = field(default_factory=dict)


def differing(before: Days, after: Days) -> BlockDifferences:
    """For days written by another run: the blocks that differ."""
    found = BlockDifferences()
    for day in {*before, *after}:
        old, new = before.get(day, {}), after.get(day, {})
        for store in {*old, *new}:
            one, other = old.get(store), new.get(store)
            if store not in old and other is not None:
                found.new[store, day] = other
            elif one is None or other is None or one.text != other.text:
                found.changed.add((store, day))
    return found


def digests(session: "Session", view: str, runs: Mapping[date, str]) -> dict[date, dict[str, Digest | None]]:
    """Of these days, each from its run."""
    found: dict[date, dict[str, Digest | None]] = {}
    for run in set(runs.values()):
        found |= read_digests(session, run, view, {day for day, own in runs.items() if own == run})
    return found


def units(compared: Iterable[StoreDay], received: Mapping[StoreDay, Iterable[date]]) -> pa.Table:
    """The stores and days to compare, together with those that speed has rows of, as `UNITS`."""
    days: dict[tuple[str, date], set[date]] = {}
    seen: dict[tuple[str, date], set[date]] = {}
    for store, day in {*compared, *received}:
        key = (store, month_of(day))
        days.setdefault(key, set()).add(day)
        seen.setdefault(key, set()).update(received.get((store, day), ()))
    rows = [
        {"store": key[0], "month": key[1], "days": sorted(own), "received": sorted(seen[key])}
        for key, own in sorted(days.items())
    ]
    return pa.Table.from_pylist(rows, schema=UNITS)
