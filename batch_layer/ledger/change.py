"""What a ledger is about: what readers were shown just before a publication, and just after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from batch_layer.ledger.correction import Cause
from batch_layer.speed_span import SpeedSpan

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from views.core.view import View


@dataclass(frozen=True)
class Side:
    """One of both: the published cells and, from the cut on, the rows of that generation."""

    cut: datetime
    manifest: Mapping[tuple[str, date], str]
    generation: int
    definitions: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """`is_rollback`: the events of both are the same, and something published earlier is shown again."""

    before: Side
    after: Side
    is_rollback: bool = False

    @property
    def until(self) -> datetime:
        """Both sides are compared by what was received before."""
        return max(self.before.cut, self.after.cut)

    def runs(self, view: str) -> tuple[dict[date, str], dict[date, str]]:
        """Day to run, before and after, of the days whose run is another one."""
        keys = {key for key in {*self.before.manifest, *self.after.manifest} if key[0] == view}
        other = [key for key in keys if self.before.manifest.get(key) != self.after.manifest.get(key)]
        sides = (self.before.manifest, self.after.manifest)
        first, second = ({key[1]: side[key] for key in other if key in side} for side in sides)
        return first, second

    def all_runs(self, view: str) -> tuple[dict[date, str], dict[date, str]]:
        """Day to run, before and after, of every day."""
        sides = (self.before.manifest, self.after.manifest)
        first, second = ({day: run for (name, day), run in side.items() if name == view} for side in sides)
        return first, second

    def spans(self, connect: "Callable[[], Session]", view: "View") -> tuple[SpeedSpan, SpeedSpan]:
        """The rows of speed that were and are shown of a view. Those with other definitions are of another generation.

        Else both are read of the newer generation: it has the rows of the one before, and has read further.
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
        """The one cause of all that changes in a view, if it does not depend on the events."""
        if self.is_rollback:
            return "rolled back"
        return "definition changed" if self.is_changed(view) and self.before.manifest else None
