"""`/v1/freshness`, `/v1/stores`: what there is, and how old."""

from decimal import Decimal

import orjson
from fastapi import APIRouter, Request, Response

from master_dataset.registry.stores import Store
from serving_layer.api.caller import AnswersOf, FreshnessOf, Reader
from serving_layer.api.conditional import unless_known
from serving_layer.caching.etag import etag

router = APIRouter(prefix="/v1", tags=["state"])
JSON = "application/json"


@router.get("/freshness", operation_id="get_freshness")
async def get_freshness(freshness: FreshnessOf, _: Reader) -> Response:
    """How far each layer has read; `lag`: what is left, as each reader measured it last; which alarms stand.

    `speed_lag_ms`: for how long the oldest record that speed has not read is waiting; 0 if there is none.
    `archive_lag_ms`: how much older the archive's newest record is than speed's.
    """
    return Response(orjson.dumps((await freshness.read()).shown()), media_type=JSON)


@router.get("/stores", operation_id="list_stores")
async def list_stores(request: Request, answers: AnswersOf, caller: Reader) -> Response:
    """Every registered store of the caller's tenant."""
    version, stores = await answers.stores.all()
    tag = etag(("stores",), caller.sight, version, answers.catalogue.fingerprint)

    async def answer() -> Response:
        listed = [_described(stores[store]) for store in sorted(stores) if caller.sees(stores[store])]
        return Response(orjson.dumps({"stores": listed}), media_type=JSON)

    return await unless_known(request, tag, answer)


def _described(store: Store) -> dict[str, object]:
    """In the words of `stores.yaml`."""
    return {
        "id": store.id,
        "name": store.name,
        "tenant": store.tenant,
        "timezone": store.timezone,
        "currency": store.currency.code,
        "opening_hours": store.opening_hours,
        "floor_m2": _number(store.floor_m2),
        "open_since": store.open_since,
        "country": store.country or None,
        "subdivision": store.subdivision or None,
        "day_starts_at": store.day_starts_at,
        "closed_on": store.closed_on,
        "week_starts_on": store.week_starts_on,
        "comp_start_date": store.comp_start_date,
        "conversion_target": _number(store.conversion_target),
        "sensors": [
            {"id": each.id, "source": each.source, "place": each.place or None, "from": each.since, "to": each.until}
            for each in store.sensors
        ],
        "zones": [{"id": each.id, "m2": _number(each.m2)} for each in store.zones],
    }


def _number(value: Decimal | int | None) -> orjson.Fragment | None:
    """As it was written, not through a float."""
    return None if value is None else orjson.Fragment(str(value))
