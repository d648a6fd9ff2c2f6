"""`/v1/stores`: the registered stores."""

from fastapi import APIRouter, Request, Response

from master_dataset.registry.stores import Store
from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional_requests import conditional_response, requires_fresh
from serving_layer.caching import etag
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import or_not_modified, returns
from serving_layer.responses.stores import RegisteredStore, StoreGroups, StoreList, StoreSensor, StoreZone

router = APIRouter(prefix="/v1", tags=["state"])


@router.get("/stores", operation_id="list_stores", responses=or_not_modified(returns(StoreList)))
async def list_stores(request: Request, answers: AnswersOf, caller: Reader) -> Response:
    """The registered stores of the caller's tenant."""
    version, stores = await answers.stores.all(fresh=requires_fresh(request.headers.get("cache-control")))
    tag = etag(("stores",), caller.visibility_scope, version, answers.catalogue.fingerprint)

    async def respond() -> Response:
        listed = [_registered(stores[store]) for store in sorted(stores) if caller.sees(stores[store])]
        return Response(encode(StoreList(listed)), media_type=JSON)

    return await conditional_response(request, tag, respond)


def _registered(store: Store) -> RegisteredStore:
    """The store with the field names of `stores.yaml`."""
    return RegisteredStore(
        id=store.id,
        name=store.name,
        tenant=store.tenant,
        timezone=store.timezone,
        currency=store.currency.code,
        opening_hours=store.opening_hours,
        floor_m2=store.floor_m2,
        open_since=store.open_since,
        country=store.country or None,
        subdivision=store.subdivision or None,
        day_starts_at=store.day_starts_at,
        closed_on=store.closed_on,
        week_starts_on=store.week_starts_on,
        comp_start_date=store.comp_start_date,
        conversion_target=store.conversion_target,
        sensors=[
            StoreSensor(each.id, each.source, each.place or None, each.since, each.until) for each in store.sensors
        ],
        zones=[StoreZone(each.id, each.m2) for each in store.zones],
        groups=store.current_groups,
        group_versions=[StoreGroups(each.valid_from, each.values) for each in store.groups],
    )
