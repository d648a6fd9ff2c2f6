"""The end of the demo: every merged cell against the oracle, and every record that was sent accounted for.

Compared are all cells of all views over receipts, of all stores, as readers are shown them once both layers have read
everything: the published cells plus the speed rows since the cut. Left out on both sides are only events received since
the cut that are too old for the speed layer (R5): `waiting_for_batch` must count at least these, and at most these and
their repeats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from lab.demo.merged import EveryCell
from lab.demo.oracle import Deliveries, Difference, Oracle
from lab.demo.receipt_views import receipt_views
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables

if TYPE_CHECKING:
    from deploy.settings import Settings

Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Verdict:
    """`sent`: records that the broker acknowledged."""

    differences: Sequence[Difference]
    sent: int
    deliveries: Deliveries
    dead_letters: int
    waiting: int

    @property
    def cells(self) -> int:
        """How many cells were compared."""
        return sum(each.cells for each in self.differences)

    @property
    def differing(self) -> int:
        """How many differ."""
        return sum(each.differing for each in self.differences)

    @property
    def examples(self) -> list[str]:
        """The first of those that differ."""
        return [example for each in self.differences for example in each.examples]

    @property
    def is_conserved(self) -> bool:
        """Sent = events + duplicates + dead letters, of which a conflicting duplicate is one."""
        found = self.deliveries
        return self.sent == found.events + found.duplicates + found.conflicts + self.dead_letters

    @property
    def is_waiting_told(self) -> bool:
        """Whether `waiting_for_batch` tells what is left out: an upper bound, of repeats too."""
        return self.deliveries.old <= self.waiting <= self.deliveries.old_deliveries

    @property
    def is_right(self) -> bool:
        """Whether the demo may exit 0."""
        return bool(self.cells) and not self.differing and self.is_conserved and self.is_waiting_told


@dataclass(frozen=True)
class Judge:
    """Compares what is shown with what the oracle says."""

    settings: "Settings"
    oracle: Oracle
    shown: EveryCell

    def judge(self, sent: int, step: Step) -> Verdict:
        """Compare everything. Both layers must have read all that the topics hold, and nobody may send meanwhile."""
        tables, views = MasterTables(self.settings.master_uri), receipt_views()
        stores = len(self.shown.stores)
        total = (len(views) + 1) * stores
        step(0, total, "recomputing from raw bytes")
        moment = self.shown.moment()
        topic = views[0].source.topic
        self.oracle.recompute(self.oracle.master(DeltaTable(tables.path(topic))), moment.basis.pointer.cut)
        differences = []
        for nth, view in enumerate(views, 1):
            tell = partial(_tell, step, nth * stores, total, f"reading {view.name}")
            self.oracle.show(view, self.shown.tables(moment.basis, view, tell))
            differences.append(self.oracle.compare(view))
        letters = DeltaTable(tables.path(DEAD_LETTERS)).count()
        return Verdict(differences, sent, self.oracle.deliveries(), letters, moment.waiting)


def _tell(step: Step, before: int, total: int, what: str, done: int) -> None:
    step(before + done, total, what)
