"""`/layers`: how much each layer holds, how old it is, and where the cut between batch and speed lies."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.store.readers import Position

router = page_router()
MIN_SPEED_PART, MAX_SPEED_PART = 0.12, 0.8
"""Of the width of the drawing, so that both layers can be seen."""


class Ages(NamedTuple):
    """How old each layer is; None if it holds nothing."""

    archive: timedelta | None
    cut: timedelta | None
    speed: timedelta | None


@router.get("/layers")
async def get_layers(visit: ReaderVisit) -> Response:
    """The three layers, and where they meet."""
    fresh = await visit.fresh()
    newest = await visit.queries.service.readers.published.history(MAX_PUBLICATION, 1)
    values = {
        "entry": newest[0].response() if newest else None,
        "ages": _ages(fresh),
        "cut_at": _cut_position(fresh),
        "is_partial": False,
        "archived": _records(fresh.archived),
        "read": _records(fresh.snapshot.positions),
        "pending": sum(each.records for each in fresh.lag if each.reader == "speed"),
    }
    return visit.page("layers.html", fresh, values)


def _records(positions: Sequence[Position]) -> int:
    return sum(each.position for each in positions)


def _ages(fresh: FreshnessReport) -> Ages:
    def age(at: datetime | None) -> timedelta | None:
        return None if at is None else fresh.at - at

    pointer = fresh.snapshot.pointer
    cut = pointer.cut if pointer.publication else None
    return Ages(age(fresh.archive_as_of), age(cut), age(fresh.snapshot.speed_as_of))


def _cut_position(fresh: FreshnessReport) -> float | None:
    """Where the cut is drawn, as a part of the width; None if nothing is published.

    The part of speed grows with the square root of its age, or minutes beside days would be invisible.
    """
    pointer = fresh.snapshot.pointer
    if not pointer.publication:
        return None
    hours = max((fresh.at - pointer.cut).total_seconds() / 3600, 0.0)
    speed_part = math.sqrt(hours / 24) / 2
    return 1 - min(max(MIN_SPEED_PART, speed_part), MAX_SPEED_PART)
