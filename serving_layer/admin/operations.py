"""Everything that operators do over REST, composed into one service."""

import asyncio
from dataclasses import dataclass

from serving_layer.admin.corrections import CorrectionsService
from serving_layer.admin.dead_letters import DeadLetterService
from serving_layer.admin.publications import RecomputeReader, RecomputeStarter, RollbackService
from serving_layer.keys.key import KeyStore
from serving_layer.webhooks.service import WebhookService
from views.control.recompute import RecomputeRequest


@dataclass(frozen=True)
class OperatorService:
    """The services of operators, as the app is built from them."""

    recomputing: RecomputeStarter
    recomputes: RecomputeReader
    rollbacks: RollbackService
    corrections: CorrectionsService
    dead_letters: DeadLetterService
    webhooks: WebhookService
    keys: KeyStore

    async def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Like `RecomputeStarter.start`, but in a thread."""
        return await asyncio.to_thread(self.recomputing.start, request, reason, by)
