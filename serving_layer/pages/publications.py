"""`/publications`: the history of what readers saw, newest first."""

from typing import Annotated

from fastapi import Query, Response

from serving_layer.admin.publication_entry import GREATEST
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import ReaderVisit

router = routes()
PAGE = 50


@router.get("/publications")
async def get_publications(
    visit: ReaderVisit,
    before: Annotated[int, Query(ge=0, le=GREATEST)] = GREATEST,
    restored: Annotated[int, Query(ge=0, le=GREATEST)] = 0,
) -> Response:
    """A page of it. `restored`: the publication that a rollback has just made."""
    fresh = await visit.fresh()
    found = await visit.answers.all.readers.published.history(before, PAGE + 1)
    following = found[PAGE - 1].publication if len(found) > PAGE else None
    entries = [entry.response() for entry in found[:PAGE]]
    said = {"entries": entries, "following": following, "restored": restored}
    return visit.page("publications.html", fresh, said)
