"""`/healthz`: the process lives. `/readyz`: it can answer."""

from fastapi import APIRouter

from serving_layer.api.caller import AnswersOf

router = APIRouter(tags=["health"])


@router.get("/healthz", operation_id="get_health")
async def get_health() -> dict[str, str]:
    """Reads nothing."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="get_readiness")
async def get_readiness(answers: AnswersOf) -> dict[str, object]:
    """Reads the pointer; 503 while the store does not answer."""
    return {"status": "ready", "as_of": await answers.as_of()}
