"""Publications, recomputes and rollbacks as operators list and request them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from msgspec import UNSET

from master_dataset.errors import UnknownNameError
from serving_layer.errors import TooBusyError
from serving_layer.responses import publications as responses
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.publications import (
    ListedRecompute,
    Recompute,
    RecomputeProblem,
    RecomputeProgress,
    RecomputeReport,
    RecomputeState,
)
from views.control.recompute import RecomputeRequest

MAX_PUBLICATION = 2**63 - 1
"""The greatest number that the table can hold."""


ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""Final states."""


class RecomputeStarter(Protocol):
    """Starts recomputes. Blocks: call it in a thread."""

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Record the request, hand it over to the runner and return its id.

        Raises:
            DependencyUnavailableError: it could not be recorded or handed over; TooBusyError is one of these.
        """


@dataclass(frozen=True)
class RecomputeRecord:
    """The current state of a recompute. Fields are None until they are known."""

    id: str
    state: RecomputeState
    asked: RecomputeRequest
    asked_by: str
    why: str
    asked_at: datetime | None
    updated_at: datetime | None
    ended_at: datetime | None
    progress: RecomputeProgress | None
    publication: int | None
    problem: RecomputeProblem | None
    report: RecomputeReport | None

    def response(self) -> Recompute:
        """The recompute as the API shows it. One that failed and was resumed has not ended."""
        has_ended, has_failed = self.state in ENDS, self.state == "failed"
        return Recompute(
            id=self.id,
            state=self.state,
            asked=self.asked,
            asked_by=self.asked_by,
            why=self.why,
            asked_at=iso_instant(self.asked_at),
            updated_at=iso_instant(self.updated_at),
            ended_at=iso_instant(self.ended_at) if has_ended else None,
            progress=self.progress,
            publication=self.publication,
            problem=self.problem if has_failed else None,
            report=self.report,
        )

    def listed(self) -> ListedRecompute:
        """The recompute in a list."""
        report = self.report or RecomputeReport()
        return ListedRecompute(
            id=self.id,
            state=self.state,
            asked=self.asked,
            asked_by=self.asked_by,
            why=self.why,
            asked_at=iso_instant(self.asked_at),
            ended_at=iso_instant(self.ended_at) if self.state in ENDS else None,
            publication=self.publication,
            days=None if report.days is UNSET else report.days,
            cells=(report.corrections.cells or 0) if report.corrections else None,
        )


class RecomputeReader(Protocol):
    """Reads the state of recomputes. Raises CassandraUnavailableError."""

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        """None if there is no recompute with that id."""

    async def newest(self, limit: int) -> Sequence[RecomputeRecord]:
        """The newest recomputes, newest first. Their reports name no partitions."""


async def require_recompute(recomputes: RecomputeReader, id_: str) -> RecomputeRecord:
    """The recompute with that id. Raises UnknownNameError."""
    record = await recomputes.recompute(id_) if id_ else None  # Cassandra refuses an empty key
    if record is None:
        raise UnknownNameError("recompute", id_, (), do="Use the id that `POST /v1/recomputes` gave.")
    return record


class RollbackResult(NamedTuple):
    """The result of a rollback, or of a dry run.

    `publication`: the new one. `restores`: the old one, to whose `cut` readers return. `generation`: whose speed rows
    they see. `partitions`: how many pairs of view and day change.
    """

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    dry_run: bool

    def response(self) -> responses.RolledBack:
        """The result as the API shows it."""
        return responses.RolledBack(
            publication=self.publication,
            restores=self.restores,
            cut=iso_instant(self.cut),
            generation=self.generation,
            partitions=self.partitions,
            dry_run=self.dry_run,
        )


class RollbackRunner(Protocol):
    """Runs a rollback. Blocks until readers see the new publication."""

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        """Publish the cells of publication `number` again. Raises OperatorError and UnknownNameError."""


class RollbackService:
    """Runs one rollback at a time in a thread: a second one would only find that the pointer has moved."""

    def __init__(self, rolling_back: RollbackRunner) -> None:
        """`rolling_back` does the work, in a thread."""
        self._rolling_back = rolling_back
        self._is_busy = False

    async def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        """Like `RollbackRunner.run`. Raises TooBusyError while another rollback is in progress."""
        if self._is_busy:
            raise TooBusyError(
                "A rollback is already in progress.", do="Try again; `GET /v1/publications` shows when it is done."
            )
        self._is_busy = True
        try:
            return await asyncio.to_thread(self._rolling_back.run, number, why, by, dry_run=dry_run)
        finally:
            self._is_busy = False
