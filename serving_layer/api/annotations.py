"""`/v1/annotations`: what happened on a day or a range of days."""

import asyncio
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Configurer, Reader, SavedOf
from serving_layer.api.parameters import MAX_PAGE, Day, StoreIds, TenantName, registered_tenant
from serving_layer.api.request_bodies import FILE_BODY, BodyLimitRoute, file_body
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.saved import AnnotationEntry, AnnotationPage, LoadedAnnotations
from serving_layer.responses.schemas import returns
from serving_layer.saved.annotations import (
    FIRST_DAY,
    LAST_DAY,
    MAX_STORES,
    MAX_TEXT,
    AnnotationKind,
    NewAnnotation,
)
from serving_layer.saved.annotations_file import read_body

ENTRY: dict[str, Any] = {
    "id": "2026-11-21-5f0c81d2a9b3",
    "tenant": "acme",
    "first_day": "2026-11-21",
    "last_day": "2026-11-23",
    "kind": "promotion",
    "text": "Two for one on coffee",
    "stores": ["12", "40"],
    "made_by": "5f0c81d2a9b3",
    "made_at": "2026-11-20T09:00:00Z",
}
AnnotationId = Annotated[str, Path(max_length=64)]
DayOfAnnotation = Annotated[Day, Field(ge=FIRST_DAY, le=LAST_DAY)]


class AnnotationsQuery(BaseModel):
    """Query parameters of a list. Both days are included."""

    model_config = ConfigDict(extra="forbid")

    first_day: Day | None = Field(None, description="Only annotations that touch this day or a later one.")
    last_day: Day | None = Field(None, description="Only annotations that touch this day or an earlier one.")
    store: StoreIds = Field([], max_length=100, description="Only those about one of these stores, or about all.")
    tenant: TenantName = None
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: str | None = Field(None, max_length=64, description="`next` of the previous page.")


class AnnotationBody(BaseModel):
    """An annotation to add."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {name: ENTRY[name] for name in ("first_day", "last_day", "kind", "text")}},
    )

    first_day: DayOfAnnotation
    last_day: DayOfAnnotation | None = Field(None, description="Included. Default: `first_day`.")
    kind: AnnotationKind
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    stores: list[Annotated[str, Field(max_length=256)]] = Field(
        [], max_length=MAX_STORES, description="Ids of stores; empty: all of the tenant."
    )


class TenantQuery(BaseModel):
    """The tenant whose annotations are changed."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None


router = APIRouter(prefix="/v1", tags=["annotations"], route_class=BodyLimitRoute)
file_router = APIRouter(prefix="/v1", tags=["annotations"])


@router.get(
    "/annotations",
    operation_id="list_annotations",
    responses=returns(AnnotationPage, example={"annotations": [ENTRY], "next": None}),
)
async def list_annotations(
    query: Annotated[AnnotationsQuery, Query()], saved: SavedOf, answers: AnswersOf, caller: Reader
) -> Response:
    """The annotations of the tenant that touch a range of days, by first day.

    `stores` is empty for an annotation of all stores. `next` is null on the last page.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    if query.store:
        await answers.stores.visible(query.store, caller)  # a store that is misspelled has no annotations
    found = await saved.annotations.annotations_between(
        tenant, query.store or None, query.first_day or FIRST_DAY, query.last_day or LAST_DAY
    )
    rest = [each for each in found if query.after is None or each.id > query.after]
    page = rest[: query.limit]
    following = page[-1].id if len(rest) > query.limit else None
    return _json(AnnotationPage([each.response() for each in page], following))


@router.post(
    "/annotations",
    operation_id="add_annotation",
    status_code=HTTPStatus.CREATED,
    responses=returns(AnnotationEntry, status=HTTPStatus.CREATED, example=ENTRY),
)
async def add_annotation(
    body: AnnotationBody, query: Annotated[TenantQuery, Query()], saved: SavedOf, answers: AnswersOf, by: Configurer
) -> Response:
    """Add an annotation. Needs the scope `configure`; safe to repeat: one that says the same has the same id."""
    new = NewAnnotation(body.first_day, body.last_day, body.kind, body.text, body.stores)
    tenant = await registered_tenant(by, query.tenant, answers)
    _, stores = await answers.stores.all()
    [made] = await saved.annotations.add(tenant, [new], stores, (by.name, saved.now()))
    return _json(made.response(), HTTPStatus.CREATED)


@file_router.post(
    "/annotations/load",
    operation_id="load_annotations",
    openapi_extra={"requestBody": FILE_BODY},
    responses=returns(LoadedAnnotations),
)
async def load_annotations(
    request: Request, query: Annotated[TenantQuery, Query()], saved: SavedOf, answers: AnswersOf, by: Configurer
) -> Response:
    """Add the annotations of a file, if all of them are valid. Needs the scope `configure`; safe to repeat.

    Fields: `first_day`, `last_day`, `kind`, `text` and `stores`, which are separated by commas.
    """
    tenant = await registered_tenant(by, query.tenant, answers)
    _, stores = await answers.stores.all()
    async with file_body(request, "annotations") as body:
        wanted = await asyncio.to_thread(read_body, body)
    made = await saved.annotations.add(tenant, wanted, stores, (by.name, saved.now()))
    return _json(LoadedAnnotations(tenant, len(made), await saved.annotations.count(tenant)))


@router.delete("/annotations/{id}", operation_id="remove_annotation", status_code=HTTPStatus.NO_CONTENT)
async def remove_annotation(
    id: AnnotationId,  # noqa: A002 - the name in the path
    query: Annotated[TenantQuery, Query()],
    saved: SavedOf,
    answers: AnswersOf,
    by: Configurer,
) -> Response:
    """Remove an annotation. Needs the scope `configure`."""
    await saved.annotations.remove(await registered_tenant(by, query.tenant, answers), id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _json(body: AnnotationPage | AnnotationEntry | LoadedAnnotations, status: int = HTTPStatus.OK) -> Response:
    return Response(encode(body), status, media_type=JSON)
