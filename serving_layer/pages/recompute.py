"""`/recomputes`: start a recompute with a form, watch it until its report, and what was recomputed. For operators."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from master_dataset.errors import GalateaError
from serving_layer.admin.publications import ENDS, require_recompute
from serving_layer.api.publications import RecomputeQuestion
from serving_layer.pages.cells import view_name
from serving_layer.pages.figures import duration, instant
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.pickers import names_of, store_groups
from serving_layer.pages.routing import Form, OperatorVisit, Visit, invalid_field, page_router
from serving_layer.responses.encoding import fields_of
from serving_layer.responses.publications import ListedRecompute
from views.control.recompute import RecomputeRequest

router = page_router()
STEPS = ("asked", "planning", "planned", "computing", "computed")
STATE_NAMES = {
    "asked": gettext_noop("Waiting"),
    "planning": gettext_noop("Planning"),
    "planned": gettext_noop("Planned"),
    "computing": gettext_noop("Computing"),
    "computed": gettext_noop("Computed"),
    "published": gettext_noop("Published"),
    "previewed": gettext_noop("Preview ready"),
    "unchanged": gettext_noop("No changes"),
    "failed": gettext_noop("Failed"),
}
REPORT_NAMES = {
    "base": gettext_noop("Compared with publication"),
    "cut": gettext_noop("Covers what was received before"),
    "days": gettext_noop("Days computed"),
    "partitions_total": gettext_noop("Days by view and store"),
    "blocks": gettext_noop("Blocks written"),
    "repeats": gettext_noop("Duplicate events"),
    "conflicts": gettext_noop("Duplicates with other content"),
    "miskeyed": gettext_noop("Events in two partitions"),
}
LISTED = 20
"""Recomputes in the history."""


@router.get("/recomputes")
async def get_form(visit: OperatorVisit, like: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The form and the history. `like`: a preview whose request the form repeats, to publish it."""
    form = Form()
    if like:
        record = await require_recompute(visit.operations.recomputes, like)
        form = _form_of(record.asked, record.why)
    return await _form_page(visit, form, None)


@router.post("/recomputes")
async def start(visit: OperatorVisit) -> Response:
    """Start a recompute and redirect to its page, or show the form again with the error."""
    form = await visit.form()
    try:
        question = RecomputeQuestion.model_validate(_body(form))
        request = question.to_request(visit.queries.service.catalogue)
        id_ = await visit.operations.start(request, question.reason, visit.visitor.caller.name)
    except ValidationError as error:
        return await _form_page(visit, form, invalid_field(error, _("Correct it below, then start again.")))
    except GalateaError as error:
        return await _form_page(visit, form, error)
    return RedirectResponse(f"/recomputes/{quote(id_, safe='')}", HTTPStatus.SEE_OTHER)


@router.get("/recomputes/{id_}")
async def get_recompute(visit: OperatorVisit, id_: str) -> Response:
    """The progress of a recompute; once it has ended, its report."""
    record = (await require_recompute(visit.operations.recomputes, id_)).response()
    report = fields_of(record.report) if record.report else {}
    values = {
        "record": record,
        "report": report,
        "report_names": REPORT_NAMES,
        "has_ended": record.state in ENDS,
        "steps": STEPS,
        "states": STATE_NAMES,
        "view_name": view_name,
        "names": names_of(await visit.queries.stores()),
    }
    return visit.page("recompute_progress.html", await visit.fresh(), values)


async def _form_page(visit: Visit, form: Form, error: GalateaError | None) -> Response:
    """The form as it was filled in, with an error if there is one, above the history."""
    stores = await visit.queries.stores()
    history = [record.listed() for record in await visit.operations.recomputes.newest(LISTED)]
    values = {
        "views": sorted(visit.queries.service.catalogue.views, key=view_name),
        "view_name": view_name,
        "groups": store_groups(stores),
        "names": names_of(stores),
        "form": form,
        "error": error,
        "history": history,
        "states": STATE_NAMES,
        "took": took,
        "is_running": any(each.state not in ENDS for each in history),
    }
    return visit.page("recompute.html", await visit.fresh(), values, status=error.status if error else HTTPStatus.OK)


def took(recompute: ListedRecompute) -> str:
    """For how long it ran; empty while it runs."""
    began, ended = instant(recompute.asked_at), instant(recompute.ended_at)
    return duration((ended - began).total_seconds() * 1000) if began and ended else ""


def _form_of(request: RecomputeRequest, why: str) -> Form:
    """The form that requests the same, and publishes it."""
    fields = {
        "views": list(request.views),
        "stores": list(request.stores),
        "from": [request.first.isoformat()] if request.first else [],
        "to": [request.last.isoformat()] if request.last else [],
        "full": ["yes"] if request.full else [],
        "reason": [why] if why else [],
        "mode": ["publish"],
    }
    return Form({name: values for name, values in fields.items() if values})


def _body(form: Form) -> dict[str, object]:
    """The form as a body of `POST /v1/recomputes`, which validates it."""
    return {
        "views": form.get("views", []),
        "stores": [*form.get("stores", []), *form.ids("other_stores")],
        "full": form.text("full") == "yes",
        "mode": form.text("mode") or "preview",
        "reason": form.text("reason"),
        **form.texts("from", "to"),
    }
