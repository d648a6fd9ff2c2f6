"""`/publications`: the history of what readers saw, and for operators the form that rolls back to an older one."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.api.publications import RollbackQuestion
from serving_layer.errors import BadQuestionError
from serving_layer.pages.language import gettext as _
from serving_layer.pages.routing import Form, OperatorVisit, ReaderVisit, Visit, invalid_field, page_router

router = page_router()
PAGE_SIZE = 50
DRY_RUN_REASON = "shown on the page of publications"
Number = Annotated[int, Path(ge=1, le=MAX_PUBLICATION)]


@router.get("/publications")
async def get_publications(
    visit: ReaderVisit,
    before: Annotated[int, Query(ge=0, le=MAX_PUBLICATION)] = MAX_PUBLICATION,
    restored: Annotated[int, Query(ge=0, le=MAX_PUBLICATION)] = 0,
) -> Response:
    """The history, newest first, a page at a time. `restored`: the publication that a rollback has just made.

    It is of all tenants, so who published something, why, and how much was read is for operators, as in REST.
    """
    fresh = await visit.fresh()
    found = await visit.queries.service.readers.published.history(before, PAGE_SIZE + 1)
    entries = [entry.response() for entry in found[:PAGE_SIZE]]
    values = {
        "entries": entries if visit.visitor.is_operator else [entry.for_readers() for entry in entries],
        "following": found[PAGE_SIZE - 1].publication if len(found) > PAGE_SIZE else None,
        "restored": restored,
    }
    return visit.page("publications.html", fresh, values)


@router.get("/publications/{number}/rollback")
async def get_rollback(visit: OperatorVisit, number: Number) -> Response:
    """What a rollback would show, before it is done."""
    return await _rollback_form(visit, number, Form(), None)


@router.post("/publications/{number}/rollback")
async def roll_back(visit: OperatorVisit, number: Number) -> Response:
    """Roll back, if readers still see what the operator saw; or the form again, with what is wrong."""
    form = await visit.form()
    current = (await visit.queries.service.snapshot()).pointer.publication
    if form.text("seen") != str(current):
        message = _("Readers now see publication {number}.").format(number=current)
        error = BadQuestionError(message, do=_("Check again what would change."))
        return await _rollback_form(visit, number, form, error)
    try:
        reason = RollbackQuestion(reason=form.text("reason")).reason
    except ValidationError as error:
        invalid = invalid_field(error, _("Correct it below, then try again."))
        return await _rollback_form(visit, number, form, invalid)
    done = await visit.operations.rollbacks.run(number, reason, visit.visitor.caller.name, dry_run=False)
    return RedirectResponse(f"/publications?restored={done.publication}", HTTPStatus.SEE_OTHER)


async def _rollback_form(visit: Visit, number: int, form: Form, error: BadQuestionError | None) -> Response:
    dry_run = await visit.operations.rollbacks.run(number, DRY_RUN_REASON, visit.visitor.caller.name, dry_run=True)
    [entry] = await visit.queries.service.readers.published.history(number + 1, 1)
    values = {
        "number": number,
        "dry_run": dry_run,
        "entry": entry.response(),
        "reason": form.text("reason"),
        "error": error,
    }
    return visit.page("rollback.html", await visit.fresh(), values, status=error.status if error else HTTPStatus.OK)
