"""Ledgers from settings: of a run before it is published, and of publications whose ledger is still to be written."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from batch_layer.ledger.change import Change, Side
from batch_layer.ledger.facts import Ages
from batch_layer.ledger.ledger import Ledger
from batch_layer.ledger.table import Ledgers
from batch_layer.recompute.plan import Plan
from batch_layer.recompute.touched import Master
from batch_layer.run import read_manifest
from deploy.cassandra import session_of
from deploy.recompute.failures import naming_failures
from deploy.recompute.planning import Steps, fence_of
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import CutNotReached, GalateaError, Unavailable
from speed_layer.generation import Generations
from views import registered_views
from views.control.pointer_row import PointerRow, Publication

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

    from deploy.settings import Settings

SPEED_TIMEOUT = timedelta(seconds=10)
"""It is ahead of the archive, unless it is stopped."""
LOOKED_BACK = 50
"""So many publications back a missing ledger is looked for."""

log = structlog.get_logger()


@dataclass(frozen=True)
class LedgerKeeper:
    """`spark` is called where events are needed."""

    settings: "Settings"
    spark: "Callable[[], SparkSession]"

    @property
    def _session(self) -> "Session":
        return session_of(self.settings.cassandra_address)

    @property
    def table(self) -> Ledgers:
        """Which ledgers there are."""
        return Ledgers(self._session)

    def of_run(self, plan: Plan, run: str, progress: Steps) -> Mapping[str, Any] | None:
        """The ledger of what a run would publish, under its name. None if speed is behind: it is written later."""
        if not self._is_read(max(plan.base.cut, plan.cut), plan.generation, progress):
            return None
        before = Side(plan.base.cut, self._manifest(plan.base.manifest), plan.base.generation, plan.base.definitions)
        after = Side(plan.cut, self._manifest(run), plan.generation, plan.definitions)
        return self._write(run, Change(before, after), plan.base.publication, plan.masters, progress)

    def catch_up(self, progress: Steps) -> None:
        """Write what is missing, oldest first, as long as there are speed rows to compare with.

        It follows what was asked for and is done without it. So what goes wrong is logged: the next one tries again,
        and an alarm tells of a ledger that is late.
        """
        try:
            with naming_failures("ID"):
                self._catch_up(progress)
        except GalateaError as error:
            log.warning("ledger.put_off", why=error.message)

    def _catch_up(self, progress: Steps) -> None:
        late = [pair for pair in self._missing() if not self._is_adopted(*pair)]
        if not late:
            return
        generations = Generations(self._session)
        now = generations.pointer()
        generation = generations.find(now.generation)
        until = max(max(base.cut, found.cut) for base, found in late)
        if generation is None or not self._is_read(until, generation.number, progress):
            return
        for base, found in late:
            if generation.emit_from <= min(base.cut, found.cut) and dict(now.definitions) == dict(found.definitions):
                self._of_publication(base, found, generation.number, progress)

    def _missing(self) -> Iterator[tuple[Publication, Publication]]:
        """Base and publication, as long as there are speed rows of the time between, and cells."""
        pointer = PointerRow(self._session)
        now = pointer.read().publication
        oldest = datetime.now(UTC) - self.settings.speed_ttl + timedelta(days=1)
        for number in range(max(1, now - LOOKED_BACK), now + 1):
            if self.table.totals(str(number)) is None:
                base, found = pointer.publication(number - 1), pointer.publication(number)
                if not base or not found or base.is_collected or found.is_collected:
                    continue
                if not base.number or min(base.cut, found.cut) > oldest:
                    yield base, found

    def _is_adopted(self, base: Publication, found: Publication) -> bool:
        """Whether it was written before the publication, under the run's name."""
        totals = None if found.restores else self.table.totals(found.manifest)
        if totals is not None:
            self.table.close(str(found.number), found.manifest, base.number, totals)
        return totals is not None

    def _of_publication(self, base: Publication, found: Publication, generation: int, progress: Steps) -> None:
        is_changed = dict(base.definitions) != dict(found.definitions)
        # The one that readers were shown last with the old definitions.
        before = found.counted.get("base_generation", base.generation) if is_changed else generation
        change = Change(
            Side(base.cut, self._manifest(base.manifest), before, base.definitions),
            Side(found.cut, self._manifest(found.manifest), generation, found.definitions),
            is_rollback=found.restores is not None,
        )
        self._write(str(found.number), change, base.number, masters_of(self.settings, found), progress)

    def _write(
        self, subject: str, change: Change, base: int, masters: Mapping[str, Master], progress: Steps
    ) -> Mapping[str, Any]:
        connect = partial(session_of, self.settings.cassandra_address)
        ledger = Ledger(connect, subject, change, masters, Ages(self.settings.oldest, self.settings.visits), self.spark)
        return ledger.write(registered_views(), base, progress.step)

    def _is_read(self, cut: datetime, generation: int, progress: Steps) -> bool:
        """Whether speed has read all before the cut (R13)."""
        if not generation:
            return False
        positions = partial(Generations(self._session).positions, generation)
        fence = fence_of(self.settings)
        progress.step(0, 0, f"speed reads up to {cut:%H:%M:%S} UTC")
        try:
            fence.wait(fence.mark(cut), positions, "speed", SPEED_TIMEOUT)
        except (CutNotReached, Unavailable) as error:
            log.warning("ledger.waits", until=str(cut), why=error.message)
            return False
        return True

    def _manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        return read_manifest(self._session, name)


def masters_of(settings: "Settings", found: Publication) -> Mapping[str, Master]:
    """The tables as the rebuild read them: a part relies on older versions than it reads."""
    tables = MasterTables(settings.master_uri)
    versions = found.counted.get("read_versions") or found.master_versions
    return {topic: Master(tables.path(topic), version) for topic, version in versions.items()}
