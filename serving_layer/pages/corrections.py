"""`/corrections`: what a publication changed in what readers were shown, and why. For operators."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, get_args

from fastapi import Query, Response
from pydantic import BaseModel, Field

from serving_layer.admin.corrections import CorrectionsRequest
from serving_layer.admin.ledger import Cause
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.api.publications import read_token, write_token
from serving_layer.pages.routing import OperatorVisit, routes
from serving_layer.responses.publications import Correction, CorrectionPage

router = routes()
PAGE = 100
CAUSES: tuple[Cause, ...] = get_args(Cause)
MEANINGS = {
    "waited": "speed had left the events to batch, because they were too old when they came",
    "definition changed": "the view was defined anew",
    "miskeyed": "one event lay in two partitions",
    "unexplained": "nothing explains it: an alarm",
    "rolled back": "an older publication was published again",
}


class CorrectionsForm(BaseModel):
    """An empty field asks for nothing."""

    publication: str = Field("", max_length=19, pattern=r"^[0-9]*$")
    recompute: str = Field("", max_length=200)
    view: str = Field("", max_length=256)
    store: str = Field("", max_length=256)
    cause: str = Field("", pattern=f"^({'|'.join(CAUSES)})?$")
    after: str = Field("", max_length=2048)

    def understood(self) -> CorrectionsRequest:
        """BadQuestionError if `after` is none of ours."""
        number = min(int(self.publication), MAX_PUBLICATION) if self.publication else None
        cause = next((each for each in CAUSES if each == self.cause), None)
        start = read_token(self.after) if self.after else None
        named = (self.recompute or None, self.view or None, self.store or None)
        return CorrectionsRequest(number, *named, cause, PAGE, start)


@router.get("/corrections")
async def get_corrections(visit: OperatorVisit, asked: Annotated[CorrectionsForm, Query()]) -> Response:
    """A page of the ledger of one publication, or of a preview."""
    fresh = await visit.fresh()
    ask = asked.understood()
    told: CorrectionPage | None = None
    following = None
    if ask.publication or ask.recompute or fresh.basis.pointer.publication:  # publication 0 has none: no error here
        told, following = await visit.operations.corrections.page(ask)
    said = {
        "told": told,
        "cells": cells(told.corrections if told else ()),
        "asked": asked,
        "causes": CAUSES,
        "meanings": MEANINGS,
        "views": sorted(visit.answers.all.catalogue.views),
        "following": following and write_token(following),
    }
    return visit.page("corrections.html", fresh, said)


def cells(rows: Sequence[Correction]) -> Sequence[Sequence[Correction]]:
    """The lines of a ledger, those of a cell together. Of a cell that is new, states that are nothing are left out."""
    found = (list(of) for _, of in groupby(rows, key=_cell))
    return [[row for row in cell if row.shown is not None or row.corrected] or cell[:1] for cell in found]


def _cell(row: Correction) -> tuple[object, ...]:
    return row.window, row.view, row.store, row.dimensions, row.cause
