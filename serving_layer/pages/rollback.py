"""`/publications/{number}/rollback`: what going back would publish, and the form that does it. For operators."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from serving_layer.admin.publication_entry import GREATEST
from serving_layer.api.publications import RollbackQuestion
from serving_layer.errors import BadQuestion
from serving_layer.pages.forms import Fields, first, read_own_form
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import OperatorVisit, Visit

router = routes()
TRIED = "looked at on the page of publications"
AGAIN = "Mend it below, and ask again."
Number = Annotated[int, Path(ge=1, le=GREATEST)]


@router.get("/publications/{number}/rollback")
async def get_form(visit: OperatorVisit, number: Number) -> Response:
    """What would be shown, before anything is."""
    return await _form(visit, number, {}, None)


@router.post("/publications/{number}/rollback")
async def roll_back(visit: OperatorVisit, number: Number) -> Response:
    """Go back, if readers still see what the operator saw; or the form again, with what is wrong."""
    fields = await read_own_form(visit.request, visit.visitor)
    seen = (await visit.answers.all.basis()).pointer.publication
    if first(fields, "seen") != str(seen):
        moved = BadQuestion(f"Readers see publication {seen} by now.", do="Look again at what would change.")
        return await _form(visit, number, fields, moved)
    try:
        asked = RollbackQuestion(reason=first(fields, "reason"))
    except ValidationError as error:
        return await _form(visit, number, fields, BadQuestion(f"Why: {error.errors()[0]['msg']}.", do=AGAIN))
    caller = visit.visitor.caller
    done = await visit.operations.rollbacks.run(number, asked.reason, caller.name, dry_run=False)
    return RedirectResponse(f"/publications?restored={done.publication}", HTTPStatus.SEE_OTHER)


async def _form(visit: Visit, number: int, fields: Fields, refused: BadQuestion | None) -> Response:
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
