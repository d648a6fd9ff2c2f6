"""Rollback: publishes the cells of an older publication again, at its cut, under a new number.

Readers merge those cells with speed rows from that cut on. If the current speed rows begin later, another generation of
the speed layer must be built first, which takes minutes.
"""

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import structlog

from batch_layer.context import BatchContext
from batch_layer.progress import Steps
from batch_layer.run import read_manifest
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import (
    CutNotReachedError,
    PublicationMovedError,
    RequestError,
    RollbackTooFarError,
    UnknownNameError,
)
from master_dataset.failpoints import Failpoint, failpoint
from views.control.generation import Generation, Generations
from views.control.publication import Pointer, PointerRow, Publication, RunStats
from views.core.local_time import ONE_DAY

if TYPE_CHECKING:
    from cassandra.cluster import Session

_POLL_SECONDS = 0.5
_TRIES = 5

log = structlog.get_logger()


class RolledBack(NamedTuple):
    """`publication`: the number of the new one; `restores`: whose cells it shows. `partitions`: (view, day), changed.

    `builds_generation`: the current speed rows do not go back to `cut`, so another generation was (or must be) built.
    """

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    builds_generation: bool
    dry_run: bool


@dataclass(frozen=True)
class Rollback:
    """`builds`: whether a generation may be built first."""

    context: BatchContext
    builds: bool = True

    @property
    def _session(self) -> "Session":
        return self.context.session

    def run(self, number: int, why: str, by: str, steps: Steps, *, dry_run: bool = False) -> RolledBack:
        """Switch all readers at once to an older publication.

        Args:
            number: The publication to restore.
            why: The reason, kept with the new publication.
            by: Who does it.
            steps: Shows the progress of a new generation.
            dry_run: Change nothing; return what would be done.

        Raises:
            UnknownNameError: There is no such publication.
            RequestError: It is the current one.
            RollbackTooFarError: There are no speed rows from its cut on, or its cells were collected.
            PublicationMovedError: Somebody else has published.
        """
        pointer = PointerRow(self._session)
        now = pointer.read()
        to = self._publication(pointer, number, now)
        covered = self._covers(now.generation, to)
        if not covered and not self.builds:
            message = f"the current speed rows begin after the cut of publication {number}"
            raise RollbackTooFarError(message, do=f"galatea rollback {number}, which builds a generation first")
        if dry_run:
            return self._result(now, to, now.generation, builds=not covered, dry_run=True)
        if not covered:
            self._build(now.generation, to, steps)
        return self._switched(pointer, to, why, by, builds=not covered)

    def _publication(self, pointer: PointerRow, number: int, now: Pointer) -> Publication:
        to = pointer.publication(number) if number > 0 else None
        if to is None:
            raise UnknownNameError("publication", str(number), map(str, range(1, now.publication + 1)))
        if number == now.publication:
            raise RequestError(f"publication {number} is the current one", do="galatea publications")
        if to.is_collected:
            raise RollbackTooFarError(f"the cells of publication {number} were collected", do="galatea rebuild --full")
        if not dict(to.definitions) == dict(now.definitions) == dict(self.context.definitions):
            message = f"publication {number} was made with other definitions of the views, or another epoch length"
            do = "galatea rebuild; to go back, first run galatea down and galatea up --detach with the old ones"
            raise RollbackTooFarError(message, do=do)
        if to.cut + self.context.speed_ttl - ONE_DAY < datetime.now(UTC):
            message = f"the cut of publication {number} is older than speed rows are kept"
            raise RollbackTooFarError(message, do="galatea rebuild --full")
        return to

    def _covers(self, generation: int, to: Publication) -> bool:
        return covers(Generations(self._session).find(generation), to)

    def _build(self, old: int, to: Publication, steps: Steps) -> None:
        """Build another generation that writes rows from its cut on. Readers switch to it once it has caught up."""
        generations = Generations(self._session)
        newest = generations.greatest()
        generations.claims.replace(newest, to.cut)
        failpoint(Failpoint.ROLLBACK_REPLACED)
        deadline = time.monotonic() + self.context.cut_timeout.total_seconds()
        while (shown := generations.pointer().generation) <= max(old, newest) or not self._covers(shown, to):
            new = generations.find(generations.greatest())
            if new is not None and new.number > newest:
                steps.step(*generations.progress(new, shown), f"generation {new.number}")
            if time.monotonic() > deadline:
                message = f"no generation of the speed layer has caught up with the current one from the cut {to.cut}"
                raise CutNotReachedError(message, do="galatea status, galatea lag; then try again")
            time.sleep(_POLL_SECONDS)

    def _switched(self, pointer: PointerRow, to: Publication, why: str, by: str, *, builds: bool) -> RolledBack:
        stats = RunStats(restores=to.number, rollback=str(uuid.uuid4()))
        for _ in range(_TRIES):
            seen = pointer.read()
            if not self._covers(seen.generation, to):
                break
            new = Publication(
                seen.publication + 1,
                to.cut,
                to.manifest,
                seen.generation,
                datetime.now(UTC),
                by,
                why,
                to.definitions,
                to.master_versions,
                stats,
            )
            if self._restored(pointer, seen, new, to.number):
                failpoint(Failpoint.ROLLBACK_PUBLISHED)
                log.info("rollback.published", publication=new.number, restores=to.number)
                return self._result(seen, to, seen.generation, builds=builds, dry_run=False)
        message = f"others have published while publication {to.number} was being restored, or its cells were collected"
        raise PublicationMovedError(message, do=f"galatea publications; then: galatea rollback {to.number}")

    @staticmethod
    def _restored(pointer: PointerRow, seen: Pointer, new: Publication, restored: int) -> bool:
        """The history decides after an unknown outcome, or a retry that found its own first attempt."""
        try:
            if pointer.restore(seen, new, restored):
                return True
        except CASSANDRA_UNAVAILABLE as error:
            log.warning("rollback.outcome_unknown", publication=new.number, error=type(error).__name__)
        found = pointer.publication(new.number)
        return found is not None and found.stats.rollback == new.stats.rollback

    def _result(self, seen: Pointer, to: Publication, generation: int, *, builds: bool, dry_run: bool) -> RolledBack:
        now, then = (read_manifest(self._session, manifest) for manifest in (seen.manifest, to.manifest))
        changed = sum(now.get(key) != then.get(key) for key in {*now, *then})
        return RolledBack(seen.publication + 1, to.number, to.cut, generation, changed, builds, dry_run)


def covers(generation: Generation | None, to: Publication) -> bool:
    """Whether its rows go back to that publication's cut, and were made with the same definitions (R12)."""
    if generation is None or dict(generation.definitions) != dict(to.definitions):
        return False
    return generation.emit_from <= to.cut
