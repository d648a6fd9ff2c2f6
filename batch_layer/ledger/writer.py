"""Writes correction ledgers: of a run before it is published, and of publications whose ledger is still missing.

A ledger compares what readers saw with what they would see, so the speed layer must have read up to the
later of both cuts (R13). Where it has not, the ledger is written by a later recompute, as long as the speed rows exist.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog
from msgspec import UNSET

from batch_layer.context import BatchContext
from batch_layer.failures import translated_failures
from batch_layer.ledger.change import Change, PublishedState
from batch_layer.ledger.correction import Ledgers, TotalsBuilder
from batch_layer.ledger.events import ExplainingRules
from batch_layer.ledger.ledger import Ledger
from batch_layer.master import Master
from batch_layer.plan import Plan
from batch_layer.progress import Steps
from batch_layer.run import read_manifest
from master_dataset.errors import CutNotReachedError, DependencyUnavailableError, GalateaError
from views import registered_views
from views.control.generation import Generations
from views.control.publication import PointerRow, Publication
from views.control.recompute import LedgerTotals

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

SPEED_TIMEOUT = timedelta(seconds=10)
"""Speed is ahead of the archive, unless it is stopped."""
SEARCHED_BACK = 50
"""How many publications back a missing ledger is searched for."""

log = structlog.get_logger()


@dataclass(frozen=True)
class LedgerWriter:
    """`spark` is called only where many events are needed."""

    context: BatchContext
    spark: "Callable[[], SparkSession]"

    @property
    def _session(self) -> "Session":
        return self.context.session

    @property
    def table(self) -> Ledgers:
        """The existing ledgers."""
        return Ledgers(self._session)

    def of_run(self, plan: Plan, run: str, steps: Steps) -> LedgerTotals | None:
        """The ledger of what a run would publish, under its name. None if speed is behind: it is written later.

        After a restored backup it has no lines: nothing was shown before, so nothing is corrected.
        """
        if plan.base.publication and not plan.base.manifest:
            nothing = TotalsBuilder().totals()
            self.table.close(run, run, plan.base.publication, nothing)
            return nothing
        if not self._is_read(max(plan.base.cut, plan.cut), plan.generation, steps):
            return None
        before = PublishedState(
            plan.base.cut, self._manifest(plan.base.manifest), plan.base.generation, plan.base.definitions
        )
        after = PublishedState(plan.cut, self._manifest(run), plan.generation, plan.definitions)
        return self._write(run, Change(before, after), plan.base.publication, plan.masters, steps)

    def catch_up(self, steps: Steps) -> None:
        """Write what is missing, oldest first, as long as there are speed rows to compare with.

        A failure is only logged, because the recompute itself is done: the next one tries again, and an alarm reports
        a ledger that is late.
        """
        try:
            with translated_failures("ID"):
                self._catch_up(steps)
        except GalateaError as error:
            log.warning("ledger.postponed", error=error.message)

    def _catch_up(self, steps: Steps) -> None:
        late = [pair for pair in self._missing() if not self._is_adopted(*pair)]
        if not late:
            return
        generations = Generations(self._session)
        now = generations.pointer()
        generation = generations.find(now.generation)
        until = max(max(base.cut, found.cut) for base, found in late)
        if generation is None or not self._is_read(until, generation.number, steps):
            return
        for base, found in late:
            if generation.emit_from <= min(base.cut, found.cut) and dict(now.definitions) == dict(found.definitions):
                self._of_publication(base, found, generation.number, steps)

    def _missing(self) -> Iterator[tuple[Publication, Publication]]:
        """Base and publication, as long as there are speed rows of the time between, and cells."""
        pointer = PointerRow(self._session)
        now = pointer.read().publication
        oldest = datetime.now(UTC) - self.context.speed_ttl + timedelta(days=1)
        for number in range(max(1, now - SEARCHED_BACK), now + 1):
            if self.table.totals(str(number)) is None:
                base, found = pointer.publication(number - 1), pointer.publication(number)
                if not base or not found or found.is_collected or (base.is_collected and not base.is_restored):
                    continue
                if not base.number or min(base.cut, found.cut) > oldest:
                    yield base, found

    def _is_adopted(self, base: Publication, found: Publication) -> bool:
        """Whether it was written before the publication, under the run's name."""
        totals = None if found.restores else self.table.totals(found.manifest)
        if totals is not None:
            self.table.close(str(found.number), found.manifest, base.number, totals)
        return totals is not None

    def _of_publication(self, base: Publication, found: Publication, generation: int, steps: Steps) -> None:
        is_changed = dict(base.definitions) != dict(found.definitions)
        # The last publication with the old definitions.
        shown_last = base.generation if found.stats.base_generation is UNSET else found.stats.base_generation
        before = shown_last if is_changed else generation
        change = Change(
            PublishedState(base.cut, self._manifest(base.manifest), before, base.definitions),
            PublishedState(found.cut, self._manifest(found.manifest), generation, found.definitions),
            is_rollback=found.restores is not None,
        )
        self._write(str(found.number), change, base.number, self.context.masters_of(found), steps)

    def _write(
        self, subject: str, change: Change, base: int, masters: Mapping[str, Master], steps: Steps
    ) -> LedgerTotals:
        rules = ExplainingRules(self.context.oldest, self.context.visits, self.context.partitions().moves)
        ledger = Ledger(self.context.connect, subject, change, masters, rules, self.spark, self.context.few_events)
        return ledger.write(registered_views(), base, steps.step)

    def _is_read(self, cut: datetime, generation: int, steps: Steps) -> bool:
        """Whether speed has read everything before the cut (R13)."""
        if not generation:
            return False
        positions = partial(Generations(self._session).positions, generation)
        fence = self.context.fence
        steps.step(0, 0, f"speed reads up to {cut:%H:%M:%S} UTC")
        try:
            fence.wait(fence.mark(cut), positions, "speed", SPEED_TIMEOUT)
        except (CutNotReachedError, DependencyUnavailableError) as error:
            log.warning("ledger.waits", until=str(cut), error=error.message)
            return False
        return True

    def _manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        return read_manifest(self._session, name)
