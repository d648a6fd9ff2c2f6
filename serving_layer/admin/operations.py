"""What the operator does and looks at over REST, in one hand."""

import asyncio
from dataclasses import dataclass

from serving_layer.admin.corrections import CorrectionsService
from serving_layer.admin.dead_letters import DeadLetterService
from serving_layer.admin.publications import RecomputeReader, RecomputeStarter, RollbackService
from serving_layer.webhooks.service import WebhookService
from views.control.recompute import RecomputeRequest


@dataclass(frozen=True)
class OperatorService:
    """The parts that the app is made with."""

    recomputing: RecomputeStarter
    recomputes: RecomputeReader
    rollbacks: RollbackService
    corrections: CorrectionsService
    letters: DeadLetterService
    webhooks: WebhookService

    async def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """As RecomputeStarter, beside the event loop."""
        return await asyncio.to_thread(self.recomputing.start, request, reason, by)
