"""`/recomputes`: start a recompute with a form, then watch it until its report. For operators."""

from http import HTTPStatus
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from master_dataset.errors import GalateaError
from serving_layer.admin.publications import ENDS, require_recompute
from serving_layer.api.publications import RecomputeQuestion
from serving_layer.pages.routing import Form, OperatorVisit, Visit, invalid_field, page_router
from serving_layer.responses.encoding import fields_of

router = page_router()
STEPS = ("asked", "planning", "planned", "computing", "computed")


@router.get("/recomputes")
async def get_form(visit: OperatorVisit) -> Response:
    """The form, empty."""
    return await _form_page(visit, Form(), None)


@router.post("/recomputes")
async def start(visit: OperatorVisit) -> Response:
    """Start a recompute and redirect to its page, or show the form again with the error."""
    form = await visit.form()
    try:
        question = RecomputeQuestion.model_validate(_body(form))
        request = question.to_request(visit.queries.service.catalogue)
        id_ = await visit.operations.start(request, question.reason, visit.visitor.caller.name)
    except ValidationError as error:
        return await _form_page(visit, form, invalid_field(error, "Correct it below, and send it again."))
    except GalateaError as error:
        return await _form_page(visit, form, error)
    return RedirectResponse(f"/recomputes/{quote(id_, safe='')}", HTTPStatus.SEE_OTHER)


@router.get("/recomputes/{id_}")
async def get_recompute(visit: OperatorVisit, id_: str) -> Response:
    """The progress of a recompute; once it has ended, its report."""
    record = (await require_recompute(visit.operations.recomputes, id_)).response()
    report = fields_of(record.report) if record.report else {}
    values = {"record": record, "report": report, "has_ended": record.state in ENDS, "steps": STEPS}
    return visit.page("recompute_progress.html", await visit.fresh(), values)


async def _form_page(visit: Visit, form: Form, error: GalateaError | None) -> Response:
    """The form as it was filled in, with an error if there is one."""
    values = {"views": sorted(visit.queries.service.catalogue.views), "form": form, "error": error}
    return visit.page("recompute.html", await visit.fresh(), values, status=error.status if error else HTTPStatus.OK)


def _body(form: Form) -> dict[str, object]:
    """The form as a body of `POST /v1/recomputes`, which validates it."""
    return {
        "views": form.get("views", []),
        "stores": form.ids("stores"),
        "full": form.text("full") == "yes",
        "mode": form.text("mode") or "preview",
        "reason": form.text("reason"),
        **form.texts("from", "to"),
    }
