"""A member of a group that is killed while records wait in it: each is handed over at least once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, KeyedConsumer, Reject
from tests.fast.laws.delivery.broker import Broker, Consumer

TOPIC = "alerts"
RECORDS, RESTARTS = 200, 6
PATIENCE_SECONDS = 60
"""After this a record is lost: no measure of speed."""


class PlayedHandler:
    """Takes some at a time, slowly; after so many calls the process is gone, and commits nothing more.

    `ended`: the process is gone, or every record was handed over.
    """

    def __init__(self, broker: Broker, taken: list[int], calls: int) -> None:
        self._broker, self._taken, self._left = broker, taken, calls
        self.ended = asyncio.Event()
        self.consumer: Consumer | None = None

    def connect(self, settings: dict[str, Any]) -> Consumer:
        self.consumer = Consumer(self._broker, settings, lambda: None)
        return self.consumer

    def accepts(self, record: ConsumerRecord) -> bool:
        return record.topic == TOPIC

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        await asyncio.sleep(0.002)
        self._left -= 1
        if self._left <= 0:
            assert self.consumer is not None
            self.consumer.is_dead = True
            self.ended.set()
            await asyncio.Event().wait()
        self._taken.extend(record.offset for record in records)
        if len(set(self._taken)) == RECORDS:
            self.ended.set()
        return Done()

    async def store_rejected(self, record: ConsumerRecord, refused: Reject) -> Done:
        raise AssertionError(record, refused)


async def _live(broker: Broker, taken: list[int], calls: int) -> None:
    """Work until the process is gone, or every record was handed over."""
    if len(set(taken)) == RECORDS:
        return
    handler = PlayedHandler(broker, taken, calls)
    consuming = KeyedConsumer({"group.id": "hooks"}, [TOPIC], handler, connect=handler.connect)
    running = asyncio.ensure_future(consuming.run())
    ended = asyncio.ensure_future(handler.ended.wait())
    await asyncio.wait({running, ended}, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    ended.cancel()


def hand_over_everything(seeds: int = 3) -> None:
    """Whatever was not handed over when the process died comes again."""
    for seed in range(seeds):
        broker = Broker(Random(seed))
        for number in range(RECORDS):
            broker.append((TOPIC, 0), str(number).encode())
        taken: list[int] = []
        for _ in range(RESTARTS):
            asyncio.run(_live(broker, taken, broker.chance.randint(1, 4)))
        asyncio.run(_live(broker, taken, 10**9))
        assert set(taken) == set(range(RECORDS)), f"seed {seed}: {RECORDS - len(set(taken))} are lost"
