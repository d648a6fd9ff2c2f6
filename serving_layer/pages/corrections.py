"""`/corrections`: what a publication changed in what readers were shown, and why. For operators."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, get_args

from fastapi import Query, Response
from pydantic import BaseModel, Field

from serving_layer.admin.corrections import CorrectionsAsk
from serving_layer.admin.ledger import Cause
from serving_layer.admin.publication_entry import GREATEST
from serving_layer.api.corrections import read_token, write_token
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import OperatorVisit

router = routes()
PAGE = 100
CELL = ("window", "view", "store", "dimensions", "cause")
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

    def understood(self) -> CorrectionsAsk:
        """BadQuestion if `after` is none of ours."""
        number = min(int(self.publication), GREATEST) if self.publication else None
        cause = next((each for each in CAUSES if each == self.cause), None)
        start = read_token(self.after) if self.after else None
        named = (self.recompute or None, self.view or None, self.store or None)
        return CorrectionsAsk(number, *named, cause, PAGE, start)


@router.get("/corrections")
async def get_corrections(visit: OperatorVisit, asked: Annotated[CorrectionsForm, Query()]) -> Response:
    """A page of the ledger of one publication, or of a preview."""
    fresh = await visit.fresh()
    ask = asked.understood()
    told: dict[str, object] = {}
    following = None
    if ask.publication or ask.recompute or fresh.basis.pointer.publication:  # publication 0 has none: no error here
        told, following = await visit.operations.corrections.page(ask)
    said = {
        "told": told, "cells": cells(told), "asked": asked, "causes": CAUSES, "meanings": MEANINGS,
        "views": sorted(visit.answers.all.catalogue.views), "following": following and write_token(following),
    }  # fmt: skip
    return visit.page("corrections.html", fresh, said)


def cells(told: Mapping[str, Any]) -> Sequence[Sequence[Mapping[str, Any]]]:
    """The lines of a ledger, those of a cell together. Of a cell that is new, states that are nothing are left out."""
    rows: Sequence[Mapping[str, Any]] = told.get("corrections", ())
    found = (list(of) for _, of in groupby(rows, key=lambda row: [row[name] for name in CELL]))
    return [[row for row in cell if row["shown"] is not None or row["corrected"]] or cell[:1] for cell in found]
