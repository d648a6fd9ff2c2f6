"""Recomputes as operators ask for them over REST, and as they are looked at afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, Protocol

from master_dataset.errors import UnknownName
from serving_layer.query.timestamps import stamp

ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States of which nothing follows by itself."""


@dataclass(frozen=True)
class RecomputeAsk:
    """`first`, `last`: UTC days of `happened_at`, both included. Empty means all; a preview publishes nothing."""

    views: tuple[str, ...] = ()
    first: date | None = None
    last: date | None = None
    stores: tuple[str, ...] = ()
    full: bool = False
    mode: Literal["publish", "preview"] = "publish"


class Recomputing(Protocol):
    """Starts recomputes. Blocks: call it in a thread."""

    def start(self, asked: RecomputeAsk, reason: str, by: str) -> str:
        """Write it down, hand it over and give back its id.

        Unavailable if nobody takes it, TooBusy among them, or if it cannot even be written down.
        """


@dataclass(frozen=True)
class RecomputeRecord:
    """One recompute as it is now. Mappings are JSON, None as long as there is nothing to say."""

    id: str
    state: str
    asked: Mapping[str, Any]
    asked_by: str
    why: str
    asked_at: datetime | None
    updated_at: datetime | None
    ended_at: datetime | None
    progress: Mapping[str, Any] | None
    publication: int | None
    problem: Mapping[str, str] | None
    report: Mapping[str, Any] | None

    def shown(self) -> dict[str, object]:
        """As the API shows it. What failed once and was taken up again has not ended."""
        has_ended = self.state in ENDS
        return {
            "id": self.id,
            "state": self.state,
            "asked": self.asked,
            "asked_by": self.asked_by,
            "why": self.why,
            "asked_at": stamp(self.asked_at),
            "updated_at": stamp(self.updated_at),
            "ended_at": stamp(self.ended_at) if has_ended else None,
            "progress": self.progress,
            "publication": self.publication,
            "problem": self.problem if self.state == "failed" else None,
            "report": self.report,
        }


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
