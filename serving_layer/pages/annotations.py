"""`/annotations`: what happened on which days, and a form to add to it; and the annotations that charts show."""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from http import HTTPStatus
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from master_dataset.errors import GalateaError
from master_dataset.registry.file_rows import plain_date
from master_dataset.registry.stores import Store
from serving_layer.api.caller import audit_details
from serving_layer.api.parameters import DEFAULT_TENANT, registered_tenant, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.period import PagePeriod
from serving_layer.pages.pickers import names_of
from serving_layer.pages.queries import QueryFailure
from serving_layer.pages.routing import ConfigurerVisit, Form, ReaderVisit, Visit, page_router
from serving_layer.saved.annotations import FIRST_DAY, LAST_DAY, MAX_TEXT, Annotation, AnnotationKind, NewAnnotation

router = page_router()
PATH = "/annotations"
MAX_BYTES = 65_536
BACK, AHEAD = timedelta(days=365), timedelta(days=366)
"""The days that are listed unless others are asked for, from today."""
MAX_SHOWN = 500
KIND_NAMES: dict[AnnotationKind, str] = {
    "promotion": gettext_noop("promotion"),
    "campaign": gettext_noop("campaign"),
    "holiday": gettext_noop("holiday"),
    "outage": gettext_noop("outage"),
    "note": gettext_noop("note"),
}
_DAY = Query(pattern="^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")


@router.get(PATH)
async def get_annotations(  # noqa: PLR0913, PLR0917 - the fields of its filter
    visit: ReaderVisit,
    first: Annotated[str, _DAY] = "",
    last: Annotated[str, _DAY] = "",
    store: Annotated[str, Query(max_length=256)] = "",
    tenant: Annotated[str, Query(max_length=256)] = "",
    done: Annotated[Literal["added", "removed", ""], Query()] = "",
) -> Response:
    """The annotations of a year back and a year ahead, or of the days that are asked for."""
    if store:
        await visit.queries.store(store)
    fresh = await visit.fresh()
    today = fresh.at.date()
    caller = visit.visitor.caller
    owner = (
        await registered_tenant(caller, tenant, visit.queries.service)
        if tenant
        else tenant_of(caller, None, DEFAULT_TENANT)  # the page opens also if this one has no stores
    )
    first_day, last_day = _day("first", first) or today - BACK, _day("last", last) or today + AHEAD
    annotations = visit.saved.annotations
    found = await annotations.annotations_between(owner, [store] if store else None, first_day, last_day)
    values = {
        "annotations": found[-MAX_SHOWN:][::-1],
        "has_more": len(found) > MAX_SHOWN,
        "first": first_day,
        "last": last_day,
        "bounds": (FIRST_DAY, LAST_DAY),
        "store": store,
        "tenant": owner,
        "today": today,
        "kinds": KIND_NAMES,
        "max_text": MAX_TEXT,
        "names": names_of(await visit.queries.stores()),
        "done": done,
    }
    return visit.page("annotations.html", fresh, values)


@router.post(PATH)
async def post_annotation(visit: ConfigurerVisit) -> Response:
    """Add an annotation or remove one."""
    form = await visit.form(MAX_BYTES)
    caller, annotations = visit.visitor.caller, visit.saved.annotations
    owner = await registered_tenant(caller, form.text("tenant") or None, visit.queries.service)
    if form.text("do") == "remove":
        audit_details(visit.request.scope, "remove", form.text("id"))
        await annotations.remove(owner, form.text("id"))
        return _back(owner, "removed", sees_all=caller.sees_all)
    _, stores = await visit.queries.service.stores.all()
    [added] = await annotations.add(owner, [_annotation(form)], stores, (caller.name, visit.saved.now()))
    audit_details(visit.request.scope, "add", added.id)
    return _back(owner, "added", sees_all=caller.sees_all)


def _annotation(form: Form) -> NewAnnotation:
    first = _day("first_day", form.text("first_day"))
    if first is None:
        raise BadQuestionError("The form names no first day.", do="Go back and choose one.")
    last = _day("last_day", form.text("last_day"))
    return NewAnnotation(first, last, form.text("kind"), form.text("text"), form.ids("stores"))


def _day(name: str, text: str) -> date | None:
    """The day of a field; None if the field is empty."""
    if not text:
        return None
    try:
        return plain_date(text)
    except ValueError as error:
        message = f"`{name}` is not a valid date."
        raise BadQuestionError(message, do="Write one such as `2026-11-21`.") from error


def _back(tenant: str, done: str, *, sees_all: bool) -> Response:
    filters = {"tenant": tenant} if sees_all and tenant != DEFAULT_TENANT else {}
    return RedirectResponse(f"{PATH}?{urlencode({**filters, 'done': done})}", HTTPStatus.SEE_OTHER)


# On charts

MAX_TENANTS, MAX_ON_CHARTS = 20, 50
"""Of how many tenants an operator sees annotations on one page, and how many a page shows."""


class ChartAnnotations(NamedTuple):
    """What a page shows. `has_more`: whether it leaves some out. `failure`: why nothing is known; None if it is."""

    rows: Sequence[Annotation]
    has_more: bool = False
    failure: QueryFailure | None = None


async def annotations_of(
    visit: Visit, stores: Sequence[Store], period: PagePeriod, *, is_of_chain: bool
) -> ChartAnnotations:
    """The annotations that touch a period, by day.

    Args:
        visit: whose page it is.
        stores: those that the page is about.
        period: its days.
        is_of_chain: whether the page is about all stores of the tenants, also those that are not registered any more.
    """
    if visit.request.app.state.saved is None:
        return ChartAnnotations(())
    tenants = sorted({store.tenant for store in stores})
    about = None if is_of_chain else [store.id for store in stores]
    between = visit.saved.annotations.annotations_between
    read = (between(tenant, about, period.first, period.last) for tenant in tenants[:MAX_TENANTS])
    try:
        found = [each for annotations in await asyncio.gather(*read) for each in annotations]
    except GalateaError as error:
        return ChartAnnotations((), failure=QueryFailure.of(error))
    rows = sorted(found, key=lambda each: (each.first_day, each.last_day, each.text))
    has_more = len(rows) > MAX_ON_CHARTS or len(tenants) > MAX_TENANTS
    return ChartAnnotations(rows[:MAX_ON_CHARTS], has_more)
