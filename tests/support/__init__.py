"""The whole lambda in memory: no broker, no Spark, no store. What it answers goes through the real serving code."""

from tests.support.receipts import receipt
from tests.support.world import World

__all__ = ["World", "receipt"]
