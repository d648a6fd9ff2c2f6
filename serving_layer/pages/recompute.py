"""`/recomputes`: ask for a recompute by a form, then watch it until its report. For operators."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from master_dataset.errors import GalateaError
from serving_layer.admin.publications import ENDS, require_recompute
from serving_layer.api.publications import RecomputeQuestion
from serving_layer.errors import BadQuestionError
from serving_layer.pages.routing import Fields, OperatorVisit, Visit, first, read_own_form, routes
from serving_layer.responses.encoding import fields_of

router = routes()
STEPS = ("asked", "planning", "planned", "computing", "computed")


@router.get("/recomputes")
async def get_form(visit: OperatorVisit) -> Response:
    """The form, empty."""
    return await _form(visit, {}, None)


@router.post("/recomputes")
async def start(visit: OperatorVisit) -> Response:
    """Start it, and go where it can be watched; or the form again, with what is wrong."""
    fields = await read_own_form(visit.request, visit.visitor)
    try:
        asked = RecomputeQuestion.model_validate(_question(fields))
        ask = asked.understood(visit.answers.all.catalogue)
        id_ = await visit.operations.start(ask, asked.reason, visit.visitor.caller.name)
    except ValidationError as error:
        wrong = error.errors()[0]
        said = BadQuestionError(f"{wrong['loc'][0]}: {wrong['msg']}.", do="Mend it below, and ask again.")
        return await _form(visit, fields, said)
    except GalateaError as error:
        return await _form(visit, fields, error)
    return RedirectResponse(f"/recomputes/{quote(id_, safe='')}", HTTPStatus.SEE_OTHER)


@router.get("/recomputes/{id_}")
async def get_recompute(visit: OperatorVisit, id_: str) -> Response:
    """How far it is; when it has ended, what it did."""
    record = (await require_recompute(visit.operations.recomputes, id_)).response()
    report = fields_of(record.report) if record.report else {}
    said = {"record": record, "report": report, "has_ended": record.state in ENDS, "steps": STEPS}
    return visit.page("recompute_progress.html", await visit.fresh(), said)


async def _form(visit: Visit, fields: Fields, refused: GalateaError | None) -> Response:
    """With what was filled in, so that nothing has to be said twice."""
    status = refused.status if refused else HTTPStatus.OK
    views = sorted(visit.answers.all.catalogue.views)
    said = {
        "views": views,
        "said": fields,
        "why": refused.message if refused else "",
        "do": refused.do if refused else "",
    }
    return visit.page("recompute.html", await visit.fresh(), said, status=status)


def _question(fields: Fields) -> Mapping[str, object]:
    """In the words of `POST /v1/recomputes`, which knows what is allowed."""
    stores = [store for text in fields.get("stores", []) for store in text.replace(",", " ").split()]
    told: dict[str, object] = {
        "views": fields.get("views", []),
        "stores": stores,
        "full": first(fields, "full") == "yes",
        "mode": first(fields, "mode") or "preview",
        "reason": first(fields, "reason"),
    }
    return told | {name: day for name in ("from", "to") if (day := first(fields, name))}
