"""`/v1/freshness`, `/v1/stores`: what there is, and how old."""

import orjson
from fastapi import APIRouter, Response

from master_dataset.stores import Store
from serving_layer.api.caller import AnswersOf, FreshnessOf

router = APIRouter(prefix="/v1", tags=["state"])
JSON = "application/json"


@router.get("/freshness", operation_id="get_freshness")
async def get_freshness(freshness: FreshnessOf) -> Response:
    """How far each layer has read; `lag`: what is left, as each reader measured it last; which alarms stand.

    `speed_lag_ms`: for how long the oldest record that speed has not read is waiting; 0 if there is none.
    `archive_lag_ms`: how much older the archive's newest record is than speed's.
    """
    return Response(orjson.dumps((await freshness.read()).shown()), media_type=JSON)


@router.get("/stores", operation_id="list_stores")
async def list_stores(answers: AnswersOf) -> Response:
    """Every registered store."""
    _, stores = await answers.stores.all()
    listed = [_described(stores[store]) for store in sorted(stores)]
    return Response(orjson.dumps({"stores": listed}), media_type=JSON)


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
