"""Members of groups as Galatea has them (`master_dataset.kafka.consumer`), and waiting for what they have done."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from confluent_kafka import Consumer

from master_dataset.kafka.consumer import Consuming, Limits, Taker

QUIET_SECONDS, LOOK_SECONDS = 30.0, 0.01
"""When nothing was done for so long, the counts say what is missing."""


@asynccontextmanager
async def member(
    settings: dict[str, Any],
    topic: str,
    taker: Taker,
    limits: Limits,
    connect: Callable[[dict[str, Any]], Any] = Consumer,
) -> AsyncIterator[Consuming]:
    """Hands records of the topic over meanwhile. `settings`: server and group. Raises what `Consuming.run` raises."""
    consuming = Consuming({"log_level": 0, **settings}, [topic], taker, limits, connect)
    running = asyncio.ensure_future(consuming.run())
    try:
        yield consuming
    finally:
        consuming.stop()
        await running


async def until(is_so: Callable[[], bool], done: Callable[[], int]) -> None:
    """Wait until it is so, or until `done` counts nothing more."""
    seen, since = -1, time.monotonic()
    while not is_so() and time.monotonic() - since < QUIET_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)
        if (now := done()) != seen:
            seen, since = now, time.monotonic()
