"""Goes back to an older publication, by publishing again what it said: its cells at its cut, under a new number."""

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import orjson
import structlog

from batch_layer.run import read_manifest
from deploy.cassandra import FAILURES, session_of
from deploy.definitions import definitions
from deploy.recompute.planning import Steps
from master_dataset.errors import CutNotReached, PublicationMoved, RequestError, RollbackTooFar, UnknownName
from master_dataset.failpoints import CrashPoint, passing
from speed_layer.generation import Generation, Generations
from views.control.pointer_row import PointerRow, Publication
from views.control.publication import Pointer

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

_POLL_SECONDS = 0.5
_TRIES = 5
_DAY = timedelta(days=1)

log = structlog.get_logger()


class RolledBack(NamedTuple):
    """`publication`: the number of the new one; `restores`: whose cells it shows. `partitions`: (view, day), changed.

    `builds_generation`: the speed rows of now do not go back to `cut`; another generation was (or is to be) built.
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
    """One deployment's way back. `builds`: whether a generation may be built first, which takes minutes."""

    settings: "Settings"
    builds: bool = True

    @property
    def _session(self) -> "Session":
        return session_of(self.settings.cassandra_address)

    def run(self, number: int, why: str, by: str, steps: Steps, *, dry_run: bool = False) -> RolledBack:
        """Switch all readers at once. RollbackTooFar without speed rows for that cut, or if its cells are gone."""
        pointer = PointerRow(self._session)
        now = pointer.read()
        to = self._found(pointer, number, now)
        covered = self._covers(now.generation, to)
        if not covered and not self.builds:
            message = f"the speed rows of now begin after the cut of publication {number}"
            raise RollbackTooFar(message, do=f"galatea rollback {number}, which builds a generation first")
        if dry_run:
            return self._told(now, to, now.generation, builds=not covered, dry_run=True)
        if not covered:
            self._build(now.generation, to, steps)
        return self._switched(pointer, to, why, by, builds=not covered)

    def _found(self, pointer: PointerRow, number: int, now: Pointer) -> Publication:
        to = pointer.publication(number) if number > 0 else None
        if to is None:
            raise UnknownName("publication", str(number), map(str, range(1, now.publication + 1)))
        if number == now.publication:
            raise RequestError(f"publication {number} is what readers see", do="galatea publications")
        if to.is_collected:
            raise RollbackTooFar(f"the cells of publication {number} were collected", do="galatea rebuild --full")
        if not dict(to.definitions) == dict(now.definitions) == definitions(self.settings):
            message = f"publication {number} was made with other definitions of the views, or another epoch length"
            do = "galatea rebuild; to have the old ones back: galatea down, galatea up --detach with them, before that"
            raise RollbackTooFar(message, do=do)
        if to.cut + self.settings.speed_ttl - _DAY < datetime.now(UTC):
            message = f"the cut of publication {number} is older than speed rows live"
            raise RollbackTooFar(message, do="galatea rebuild --full")
        return to

    def _covers(self, generation: int, to: Publication) -> bool:
        return covers(Generations(self._session).find(generation), to)

    def _build(self, old: int, to: Publication, steps: Steps) -> None:
        """Another generation that writes rows from its cut on. Readers move to it when it has come as far."""
        generations = Generations(self._session)
        newest = generations.greatest()
        generations.claims.replace(newest, to.cut)
        passing(CrashPoint.ROLLBACK_REPLACED)
        deadline = time.monotonic() + self.settings.cut_timeout.total_seconds()
        while (shown := generations.pointer().generation) <= max(old, newest) or not self._covers(shown, to):
            new = generations.find(generations.greatest())
            if new is not None and new.number > newest:
                steps.step(*generations.progress(new, shown), f"generation {new.number}")
            if time.monotonic() > deadline:
                message = f"no generation of the speed layer has reached the one of now from the cut {to.cut}"
                raise CutNotReached(message, do="galatea status, galatea lag; then try again")
            time.sleep(_POLL_SECONDS)

    def _switched(self, pointer: PointerRow, to: Publication, why: str, by: str, *, builds: bool) -> RolledBack:
        told = {"restores": to.number, "rollback": str(uuid.uuid4())}
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
                orjson.dumps(told).decode(),
            )
            if self._is_switched(pointer, seen, new, to.number):
                passing(CrashPoint.ROLLBACK_PUBLISHED)
                log.info("rollback.published", publication=new.number, restores=to.number)
                return self._told(seen, to, seen.generation, builds=builds, dry_run=False)
        message = f"others publish while publication {to.number} is to be restored, or its cells were collected"
        raise PublicationMoved(message, do=f"galatea publications; then: galatea rollback {to.number}")

    @staticmethod
    def _is_switched(pointer: PointerRow, seen: Pointer, new: Publication, restored: int) -> bool:
        """The history decides after an unknown outcome, or a second try that found its own first one."""
        try:
            if pointer.restore(seen, new, restored):
                return True
        except FAILURES as error:
            log.warning("rollback.outcome_unknown", publication=new.number, error=type(error).__name__)
        found = pointer.publication(new.number)
        return found is not None and found.counted.get("rollback") == new.counted["rollback"]

    def _told(self, seen: Pointer, to: Publication, generation: int, *, builds: bool, dry_run: bool) -> RolledBack:
        now, then = (read_manifest(self._session, manifest) for manifest in (seen.manifest, to.manifest))
        changed = sum(now.get(key) != then.get(key) for key in {*now, *then})
        return RolledBack(seen.publication + 1, to.number, to.cut, generation, changed, builds, dry_run)


def covers(generation: Generation | None, to: Publication) -> bool:
    """Whether its rows go back to that publication's cut, and were made with the same definitions (R12)."""
    if generation is None or dict(generation.definitions) != dict(to.definitions):
        return False
    return generation.emit_from <= to.cut
