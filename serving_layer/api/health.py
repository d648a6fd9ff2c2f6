"""`/healthz`: the process lives. `/readyz`: it can answer. `/metrics`: how it does."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from serving_layer.api.caller import AnswersOf, Operator

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="get_health")
async def get_health() -> dict[str, str]:
    """Reads nothing."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="get_readiness")
async def get_readiness(answers: AnswersOf) -> dict[str, object]:
    """Reads the pointer; 503 while the store does not answer."""
    return {"status": "ready", "as_of": await answers.as_of()}


@router.get("/metrics", operation_id="get_metrics_of_process", response_class=Response)
def get_metrics_of_process(_: Operator) -> Response:
    """What Prometheus collects of this process, which also listens for it on a port of its own. Names no store.

    Collecting reads the store, so it is done in a thread.
    """
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
