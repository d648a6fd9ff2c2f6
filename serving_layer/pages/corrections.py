"""`/corrections`: what a publication changed in what readers had seen, and why. For operators."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, get_args

from fastapi import Query, Response
from pydantic import BaseModel, Field

from serving_layer.admin.corrections import CorrectionsRequest
from serving_layer.admin.ledger import Cause
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.api.publications import read_token, write_token
from serving_layer.pages.routing import OperatorVisit, page_router
from serving_layer.responses.publications import Correction, CorrectionPage

router = page_router()
PAGE_SIZE = 100
CAUSES: tuple[Cause, ...] = get_args(Cause)
CAUSE_TEXTS = {
    "waited": "speed had left the events to batch, because they arrived too late",
    "definition changed": "the definition of the view changed",
    "miskeyed": "one event was in two partitions",
    "unexplained": "nothing explains the difference: an alarm",
    "rolled back": "an older publication was published again",
}


class CorrectionsPageFilter(BaseModel):
    """The query string. An empty field does not filter."""

    publication: str = Field("", max_length=19, pattern=r"^[0-9]*$")
    recompute: str = Field("", max_length=200)
    view: str = Field("", max_length=256)
    store: str = Field("", max_length=256)
    cause: str = Field("", pattern=f"^({'|'.join(CAUSES)})?$")
    after: str = Field("", max_length=2048)

    def request(self) -> CorrectionsRequest:
        """As the service takes it. BadQuestionError if `after` is not one of our tokens."""
        number = min(int(self.publication), MAX_PUBLICATION) if self.publication else None
        cause = next((each for each in CAUSES if each == self.cause), None)
        after = read_token(self.after) if self.after else None
        filters = (self.recompute or None, self.view or None, self.store or None)
        return CorrectionsRequest(number, *filters, cause, PAGE_SIZE, after)


@router.get("/corrections")
async def get_corrections(visit: OperatorVisit, query: Annotated[CorrectionsPageFilter, Query()]) -> Response:
    """The ledger of one publication, or of a preview, a page at a time."""
    fresh = await visit.fresh()
    request = query.request()
    page: CorrectionPage | None = None
    following = None
    if request.publication or request.recompute or fresh.basis.pointer.publication:  # publication 0 has no ledger
        page, following = await visit.operations.corrections.page(request)
    values = {
        "page": page,
        "cells": rows_by_cell(page.corrections if page else ()),
        "query": query,
        "causes": CAUSES,
        "cause_texts": CAUSE_TEXTS,
        "views": sorted(visit.queries.service.catalogue.views),
        "following": following and write_token(following),
    }
    return visit.page("corrections.html", fresh, values)


def rows_by_cell(rows: Sequence[Correction]) -> Sequence[Sequence[Correction]]:
    """The rows of a ledger grouped by cell. Of a new cell, states that are zero are left out, but not all of them."""
    cells = (list(group) for _, group in groupby(rows, key=_cell))
    return [[row for row in cell if row.shown is not None or row.corrected] or cell[:1] for cell in cells]


def _cell(row: Correction) -> tuple[object, ...]:
    return row.window, row.view, row.store, row.dimensions, row.cause
