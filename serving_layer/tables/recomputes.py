"""`recomputes`."""

from datetime import datetime
from typing import TypeVar

import msgspec

from serving_layer.admin.recomputes import RecomputeRecord
from serving_layer.responses.publications import RecomputeProblem, RecomputeProgress, RecomputeReport
from serving_layer.tables.bridge import Bridge, instant_of
from views.control.recompute_request import RecomputeRequest

Model = TypeVar("Model")


class RecomputeTables:
    """RecomputeReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._one = bridge.prepare(
            "SELECT state, asked, asked_by, why, asked_at, updated_at, ended_at, progress, publication, problem, "
            "report FROM recomputes WHERE id = ?"
        )

    async def recompute(self, id_: str) -> RecomputeRecord | None:
        """A row without a question is none: somebody wrote to an id that was never asked for."""
        for (
            state,
            asked,
            by,
            why,
            asked_at,
            updated_at,
            ended_at,
            progress,
            number,
            problem,
            report,
        ) in await self._bridge.rows(self._one, id_):
            if asked is None:
                return None
            at = (_instant(asked_at), _instant(updated_at), _instant(ended_at))
            return RecomputeRecord(
                id_,
                state or "asked",
                RecomputeRequest.from_json(asked),
                by or "",
                why or "",
                *at,
                _read(progress, RecomputeProgress),
                number,
                _read(problem, RecomputeProblem),
                _read(report, RecomputeReport),
            )
        return None


def _instant(value: datetime | None) -> datetime | None:
    return value and instant_of(value)


def _read(text: str | None, what: type[Model]) -> Model | None:
    return msgspec.json.decode(text, type=what) if text else None
