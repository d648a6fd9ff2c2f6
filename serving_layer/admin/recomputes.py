"""Recomputes as operators ask for them over REST, and as they are looked at afterwards."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from master_dataset.errors import UnknownName
from serving_layer.query.timestamps import stamp
from serving_layer.responses.publications import (
    Recompute,
    RecomputeProblem,
    RecomputeProgress,
    RecomputeReport,
    RecomputeState,
)
from views.control.recompute_request import RecomputeRequest

ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States of which nothing follows by itself."""


class Recomputing(Protocol):
    """Starts recomputes. Blocks: call it in a thread."""

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Write it down, hand it over and give back its id.

        Unavailable if nobody takes it, TooBusy among them, or if it cannot even be written down.
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
            asked_at=stamp(self.asked_at),
            updated_at=stamp(self.updated_at),
            ended_at=stamp(self.ended_at) if has_ended else None,
            progress=self.progress,
            publication=self.publication,
            problem=self.problem if has_failed else None,
            report=self.report,
        )


class RecomputeReader(Protocol):
    """Reads what became of them. StoreUnavailable when the store does not answer in time."""

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        """None if there is none of that id."""


async def found(recomputes: RecomputeReader, id_: str) -> RecomputeRecord:
    """The recompute of that id. UnknownName."""
    record = await recomputes.recompute(id_)
    if record is None:
        raise UnknownName("recompute", id_, (), do="Use the id that `POST /v1/recomputes` gave.")
    return record
