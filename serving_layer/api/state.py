"""`/v1/freshness`, `/v1/stores`, `/v1/publications`: what there is, and how old."""

import orjson
from fastapi import APIRouter, Response

from master_dataset.stores import Store
from serving_layer.api.caller import AnswersOf
from serving_layer.readers import Position
from serving_layer.stamp import stamp

router = APIRouter(prefix="/v1", tags=["state"])
JSON = "application/json"


@router.get("/freshness", operation_id="get_freshness")
async def get_freshness(answers: AnswersOf) -> Response:
    """How far each layer has read, per partition. `archive_lag_ms`: how much older the archive's newest record is."""
    basis = await answers.basis()
    topics = sorted({view.source.topic for view in answers.catalogue.views.values()})
    archived = [position for topic in topics for position in await answers.readers.receipts.archived(topic)]
    archive_as_of = max((at.received_at for at in archived if at.received_at), default=None)
    lag = basis.speed_as_of - archive_as_of if basis.speed_as_of and archive_as_of else None
    body = {
        "publication": basis.pointer.publication,
        "cut": stamp(basis.pointer.cut),
        "generation": basis.pointer.generation,
        "layers": basis.layers,
        "speed_as_of": stamp(basis.speed_as_of),
        "archive_as_of": stamp(archive_as_of),
        "archive_lag_ms": None if lag is None else max(0, int(lag.total_seconds() * 1000)),
        "speed": [_shown(position) for position in basis.positions],
        "archive": [_shown(position) for position in archived],
    }
    return Response(orjson.dumps(body), media_type=JSON)


@router.get("/stores", operation_id="list_stores")
async def list_stores(answers: AnswersOf) -> Response:
    """Every registered store."""
    _, stores = await answers.stores.all()
    listed = [_described(stores[store]) for store in sorted(stores)]
    return Response(orjson.dumps({"stores": listed}), media_type=JSON)


@router.get("/publications", operation_id="list_publications")
async def list_publications(answers: AnswersOf) -> Response:
    """Every publication, newest first."""
    listed = [entry.shown() for entry in await answers.readers.published.history()]
    return Response(orjson.dumps({"publications": listed}), media_type=JSON)


def _shown(position: Position) -> dict[str, object]:
    return position._asdict() | {"received_at": stamp(position.received_at)}


def _described(store: Store) -> dict[str, object]:
    """In the words of `stores.yaml`."""
    return {
        "id": store.id,
        "name": store.name,
        "tenant": store.tenant,
        "timezone": store.timezone,
        "currency": store.currency.code,
        "opening_hours": store.opening_hours,
        "floor_m2": None if store.floor_m2 is None else orjson.Fragment(str(store.floor_m2)),
        "open_since": store.open_since,
    }
