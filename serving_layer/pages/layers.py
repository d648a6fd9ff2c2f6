"""`/layers`: from the master dataset over the publication to speed; how much each holds, how old it is, and the cut."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.routing import ReaderVisit, routes
from serving_layer.store.readers import Position

router = routes()
WIDTH, LEAST = 1000.0, 0.12


class Span(NamedTuple):
    """Of the drawn line of receipt times: where the cut lies, as a part of its width."""

    cut_at: float
    is_published: bool


class Ages(NamedTuple):
    """How old each layer is; None for what there is not."""

    archive: timedelta | None
    cut: timedelta | None
    speed: timedelta | None


@router.get("/layers")
async def get_layers(visit: ReaderVisit) -> Response:
    """Three parts, and where they meet."""
    fresh = await visit.fresh()
    newest = await visit.answers.all.readers.published.history(MAX_PUBLICATION, 1)
    entry = newest[0].response() if newest else None
    said = {
        "entry": entry,
        "ages": _ages(fresh),
        "span": _span(fresh),
        "is_partial": False,
        "archived": _records(fresh.archived),
        "read": _records(fresh.basis.positions),
        "pending": sum(each.records for each in fresh.lag if each.reader == "speed"),
    }
    return visit.page("layers.html", fresh, said)


def _records(positions: Sequence[Position]) -> int:
    return sum(each.position for each in positions)


def _ages(fresh: FreshnessReport) -> Ages:
    def age(at: datetime | None) -> timedelta | None:
        return None if at is None else fresh.at - at

    pointer = fresh.basis.pointer
    return Ages(
        age(fresh.archive_as_of), age(pointer.cut if pointer.publication else None), age(fresh.basis.speed_as_of)
    )


def _span(fresh: FreshnessReport) -> Span:
    """Drawn by the root of the age: minutes beside days would not be seen otherwise."""
    pointer = fresh.basis.pointer
    if not pointer.publication:
        return Span(0.0, is_published=False)
    hours = max((fresh.at - pointer.cut).total_seconds() / 3600, 0.0)
    part = min(max(LEAST, (hours / 24) ** 0.5 / 2), 0.8)
    return Span(1 - part, is_published=True)
