"""`/healthz`, `/readyz` and `/metrics` of the process, and `/v1/freshness` of the data."""

from http import HTTPStatus

from fastapi import APIRouter, Response
from msgspec import structs
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from serving_layer.api.caller import AnswersOf, FreshnessOf, Operator, Reader
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.health import Freshness, Health, Readiness
from serving_layer.responses.schemas import returns
from serving_layer.store.snapshot import provenance

router = APIRouter(tags=["health"])
freshness_router = APIRouter(prefix="/v1", tags=["state"])


@freshness_router.get("/freshness", operation_id="get_freshness", responses=returns(Freshness))
async def get_freshness(freshness: FreshnessOf, caller: Reader) -> Response:
    """How far each layer has read; `lag`: what is left, as each reader measured it last; which alarms stand.

    `speed_as_of`: when the newest event of your stores was received that speed has read. `speed_lag_ms`: for how long
    the oldest record that speed has not read is waiting; 0 if there is none. `archive_lag_ms`: how much older the
    archive's newest record is than speed's. Without the scope `operate`, what counts records of all tenants is null:
    `speed_lag_ms`, `archive_as_of`, `archive_lag_ms`, `late_events`, `speed`, `archive`, `lag` and `alarms`.
    """
    return Response(encode((await freshness.read_for(caller)).response()), media_type=JSON)


@router.get("/healthz", operation_id="get_health", responses=returns(Health))
async def get_health() -> Response:
    """Liveness: returns 200 while the process runs. Needs no key."""
    return Response(encode(Health("ok")), media_type=JSON)


@router.get("/readyz", operation_id="get_readiness", responses=returns(Readiness))
async def get_readiness(answers: AnswersOf) -> Response:
    """Readiness: 503 while Cassandra does not respond. Needs no key."""
    as_of = structs.replace(provenance(await answers.snapshot()), speed_as_of=None)
    return Response(encode(Readiness("ready", as_of)), media_type=JSON)


@router.get(
    "/metrics",
    operation_id="get_metrics_of_process",
    response_class=Response,
    responses={HTTPStatus.OK: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics_of_process(_: Operator) -> Response:
    """The metrics of this process for Prometheus, also served at a port of their own. No label names a store."""
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
