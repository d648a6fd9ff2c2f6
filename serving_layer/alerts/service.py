"""Alerts, and the rules that they come from, in one hand."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from serving_layer.alerts.alerts import Alerts
from serving_layer.alerts.rules import AlertRules
from serving_layer.errors import TooBusy

MOST_WAITING = 16
"""Questions about rules that are under way in a process."""
Found = TypeVar("Found")


@dataclass
class Alerting:
    """One per process and event loop."""

    rules: AlertRules
    alerts: Alerts
    waiting: int = 0

    async def beside(self, work: Callable[[AlertRules], Found]) -> Found:
        """Something about rules, beside the event loop. What it raises; TooBusy."""
        if self.waiting >= MOST_WAITING:
            raise TooBusy(f"{MOST_WAITING} questions about rules of alerts are under way already.", do="Ask again.")
        self.waiting += 1
        try:
            return await asyncio.to_thread(work, self.rules)
        finally:
            self.waiting -= 1
