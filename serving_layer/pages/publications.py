"""`/publications`: the history of what readers saw, newest first.

`/publications/{number}/rollback`: what going back would publish, and the form that does it. For operators.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.api.publications import RollbackQuestion
from serving_layer.errors import BadQuestionError
from serving_layer.pages.routing import Fields, OperatorVisit, ReaderVisit, Visit, first, read_own_form, routes

router = routes()
PAGE = 50


@router.get("/publications")
async def get_publications(
    visit: ReaderVisit,
    before: Annotated[int, Query(ge=0, le=MAX_PUBLICATION)] = MAX_PUBLICATION,
    restored: Annotated[int, Query(ge=0, le=MAX_PUBLICATION)] = 0,
) -> Response:
    """A page of it. `restored`: the publication that a rollback has just made."""
    fresh = await visit.fresh()
    found = await visit.answers.all.readers.published.history(before, PAGE + 1)
    following = found[PAGE - 1].publication if len(found) > PAGE else None
    entries = [entry.response() for entry in found[:PAGE]]
    said = {"entries": entries, "following": following, "restored": restored}
    return visit.page("publications.html", fresh, said)


TRIED = "looked at on the page of publications"
AGAIN = "Mend it below, and ask again."
Number = Annotated[int, Path(ge=1, le=MAX_PUBLICATION)]


@router.get("/publications/{number}/rollback")
async def get_rollback(visit: OperatorVisit, number: Number) -> Response:
    """What would be shown, before anything is."""
    return await _rollback_form(visit, number, {}, None)


@router.post("/publications/{number}/rollback")
async def roll_back(visit: OperatorVisit, number: Number) -> Response:
    """Go back, if readers still see what the operator saw; or the form again, with what is wrong."""
    fields = await read_own_form(visit.request, visit.visitor)
    seen = (await visit.answers.all.basis()).pointer.publication
    if first(fields, "seen") != str(seen):
        moved = BadQuestionError(f"Readers see publication {seen} by now.", do="Look again at what would change.")
        return await _rollback_form(visit, number, fields, moved)
    try:
        asked = RollbackQuestion(reason=first(fields, "reason"))
    except ValidationError as error:
        return await _rollback_form(
            visit, number, fields, BadQuestionError(f"Why: {error.errors()[0]['msg']}.", do=AGAIN)
        )
    caller = visit.visitor.caller
    done = await visit.operations.rollbacks.run(number, asked.reason, caller.name, dry_run=False)
    return RedirectResponse(f"/publications?restored={done.publication}", HTTPStatus.SEE_OTHER)


async def _rollback_form(visit: Visit, number: int, fields: Fields, refused: BadQuestionError | None) -> Response:
    tried = await visit.operations.rollbacks.run(number, TRIED, visit.visitor.caller.name, dry_run=True)
    [entry] = await visit.answers.all.readers.published.history(number + 1, 1)
    said = {
        "number": number,
        "tried": tried,
        "entry": entry.response(),
        "reason": first(fields, "reason"),
        "why": refused.message if refused else "",
        "do": refused.do if refused else "",
    }
    status = refused.status if refused else HTTPStatus.OK
    return visit.page("rollback.html", await visit.fresh(), said, status=status)
