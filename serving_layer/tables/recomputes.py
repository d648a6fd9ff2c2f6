"""`recomputes`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from serving_layer.admin.recomputes import RecomputeRecord
from serving_layer.tables.bridge import Bridge, instant_of


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
                id_, state or "asked", orjson.loads(asked), by or "", why or "", *at,
                _json(progress), number, _json(problem), _json(report),
            )  # fmt: skip
        return None


def _instant(value: datetime | None) -> datetime | None:
    return value and instant_of(value)


def _json(text: str | None) -> Mapping[str, Any] | None:
    return orjson.loads(text) if text else None
