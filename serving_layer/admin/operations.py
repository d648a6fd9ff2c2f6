"""What the operator does and looks at over REST, in one hand."""

import asyncio
from dataclasses import dataclass

from serving_layer.admin.corrections import Corrections
from serving_layer.admin.dead_letters import DeadLetterService
from serving_layer.admin.publications import RecomputeReader, Recomputing, Rollbacks
from serving_layer.webhooks.service import Webhooks
from views.control.recompute import RecomputeRequest


@dataclass(frozen=True)
class Operations:
    """The parts that the app is made with."""

    recomputing: Recomputing
    recomputes: RecomputeReader
    rollbacks: Rollbacks
    corrections: Corrections
    letters: DeadLetterService
    webhooks: Webhooks

    async def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """As Recomputing, beside the event loop."""
        return await asyncio.to_thread(self.recomputing.start, request, reason, by)
