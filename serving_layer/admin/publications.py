"""Publications, recomputes and rollbacks as operators list and request them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from master_dataset.errors import UnknownNameError
from serving_layer.errors import TooBusyError
from serving_layer.query.timeline import iso_instant
from serving_layer.responses import publications as responses
from serving_layer.responses.publications import (
    ListedPublication,
    Recompute,
    RecomputeProblem,
    RecomputeProgress,
    RecomputeReport,
    RecomputeState,
)
from views.control.publication import Pointer
from views.control.recompute import RecomputeRequest

MAX_PUBLICATION = 2**63 - 1
"""No publication has a greater number than the table can hold."""


@dataclass(frozen=True)
class PublicationEntry:
    """`manifest` names its cells and `definitions` what they were made by: view name to hash.

    `collected_at`: since when its cells are gone, None while they are kept. `stats`: what its recompute counted.
    """

    publication: int
    cut: datetime
    published_at: datetime | None
    by: str
    why: str
    manifest: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    collected_at: datetime | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pointer(self) -> Pointer:
        """As if it were pointed at, without speed rows: those of its time may have expired."""
        return Pointer(self.publication, self.cut, self.manifest, 0, self.definitions)

    def response(self) -> ListedPublication:
        """As the API and the command line show it. What its recompute did not count is null."""
        return ListedPublication(
            publication=self.publication,
            cut=iso_instant(self.cut),
            published_at=iso_instant(self.published_at),
            by=self.by,
            why=self.why,
            collected=self.collected_at is not None,
            restores=self.stats.get("restores"),
            rows=self._rows,
            partitions=self.stats.get("partitions"),
            days=self.stats.get("days"),
            blocks=self.stats.get("blocks"),
            seconds=self.stats.get("seconds"),
            views=self.stats.get("views"),
        )

    @property
    def _rows(self) -> int | None:
        """Events read, once for each view that they were read for."""
        views: Mapping[str, Mapping[str, int]] | None = self.stats.get("views")
        return sum(each.get("events", 0) for each in views.values()) if views else self.stats.get("rows")


ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States of which nothing follows by itself."""


class RecomputeStarter(Protocol):
    """Starts recomputes. Blocks: call it in a thread."""

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Write it down, hand it over and give back its id.

        Unavailable if nobody takes it, TooBusyError among them, or if it cannot even be written down.
        """


@dataclass(frozen=True)
class RecomputeRecord:
    """One recompute as it is now; None as long as there is nothing to say."""

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
        """As the API shows it. What failed once and was taken up again has not ended."""
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


class RecomputeReader(Protocol):
    """Reads what became of them. CassandraUnavailableError when the store does not answer in time."""

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        """None if there is none of that id."""


async def require_recompute(recomputes: RecomputeReader, id_: str) -> RecomputeRecord:
    """The recompute of that id. UnknownNameError."""
    record = await recomputes.recompute(id_)
    if record is None:
        raise UnknownNameError("recompute", id_, (), do="Use the id that `POST /v1/recomputes` gave.")
    return record


class RollbackResult(NamedTuple):
    """`publication`: the new one, or what it would be; `restores`: the old one, at whose `cut` readers are then.

    `generation`: whose speed rows they see. `partitions`: how many pairs of view and day have other cells by that.
    """

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    dry_run: bool

    def response(self) -> responses.RolledBack:
        """As the API shows it."""
        return responses.RolledBack(
            publication=self.publication,
            restores=self.restores,
            cut=iso_instant(self.cut),
            generation=self.generation,
            partitions=self.partitions,
            dry_run=self.dry_run,
        )


class RollbackRunner(Protocol):
    """Does one. Blocks until readers are switched."""

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        """Publish again what publication `number` said. Raises OperatorErrors, and UnknownNameError."""


class RollbackService:
    """One at a time, beside the event loop: a second one would only find the pointer moved."""

    def __init__(self, rolling_back: RollbackRunner) -> None:
        """`rolling_back` does the work, in a thread."""
        self._rolling_back = rolling_back
        self._is_busy = False

    async def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        """As RollbackRunner. TooBusyError while another one is under way."""
        if self._is_busy:
            raise TooBusyError(
                "A rollback is under way already.", do="Ask again; `GET /v1/publications` shows its end."
            )
        self._is_busy = True
        try:
            return await asyncio.to_thread(self._rolling_back.run, number, why, by, dry_run=dry_run)
        finally:
            self._is_busy = False
