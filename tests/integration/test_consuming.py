"""A member of a group on a real broker: paused, taken away and given back, and behind a key that does not get on."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import (
    ConsumerLimits,
    ConsumerRecord,
    Done,
    HandlerResult,
    KeyedConsumer,
    Reject,
    Retry,
)
from master_dataset.kafka.consumer import key_queue as key_queue_module
from master_dataset.kafka.topics import Topics, TopicSettings
from tests.system.drills.drilled_broker import DrilledBroker, settings_for

pytestmark = pytest.mark.nightly
RECORDS, PATIENCE = 600, 30
KEYS = ("1", "2", "3")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrilledBroker]:
    """A broker by itself."""
    with DrilledBroker(settings_for(tmp_path_factory.mktemp("consuming"))) as started:
        yield started


class PlayedHandler:
    """Takes everything; of the key `1` nothing until `goes_on`."""

    def __init__(self) -> None:
        self.goes_on = False
        self.taken: list[tuple[str, int]] = []

    def accepts(self, _: ConsumerRecord) -> bool:
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        await asyncio.sleep(0)
        if records[0].key == b"1" and not self.goes_on:
            return Retry("no answer")
        self.taken += [(record.key.decode(), int(record.value)) for record in records]
        return Done()

    async def store_rejected(self, record: ConsumerRecord, refused: Reject) -> Done | Retry:
        raise AssertionError(record, refused)

    def of(self, key: str) -> list[int]:
        return [number for of, number in self.taken if of == key]

    async def until_taken(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(set(self.taken)) < number:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.01)


def filled(kafka: KafkaConnection, topic: str, *keys: str) -> dict[str, str]:
    """A topic of one partition with so many records of each key. Settings of a group that reads it."""
    Topics(kafka).create([topic], TopicSettings(1, 1, 3_600_000))
    producer = Producer({**kafka.client(), "acks": "all"})
    for number in range(RECORDS):
        for key in keys:
            producer.produce(topic, str(number).encode(), key=key)
    assert producer.flush(30) == 0
    return {**kafka.client(), "group.id": topic}


def take_away(settings: dict[str, str], topic: str) -> None:
    """Another member joins, so that all is shared out anew, and leaves."""
    other, seen = Consumer({**settings, "enable.auto.commit": False}), list[int]()
    other.subscribe([topic], on_assign=lambda _, parts: seen.append(len(parts)))
    while not seen:
        other.poll(0.1)
    other.close()


@pytest.mark.parametrize("patience", [0.1, 3600])
def test_paused_partition_resumes_after_it_is_revoked_and_reassigned(
    patience: float, broker: DrilledBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_queue_module, "STALLED_SECONDS", patience)
    topic = f"paused_{patience}"
    settings, handler = filled(broker.kafka, topic, "1"), PlayedHandler()

    async def work() -> None:
        limits = ConsumerLimits(waiting=100, longest_wait=0.1, leave=1)
        member = KeyedConsumer({**settings, "session.timeout.ms": 6000}, [topic], handler, limits)
        running = asyncio.ensure_future(member.run())
        async with asyncio.timeout(PATIENCE):
            while not member.is_paused:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.01)
        await asyncio.to_thread(take_away, settings, topic)
        handler.goes_on = True
        await handler.until_taken(RECORDS)
        member.stop()
        await running

    asyncio.run(work())

    assert list(dict.fromkeys(handler.of("1"))) == list(range(RECORDS))


def test_blocked_key_does_not_block_others_of_its_partition(
    broker: DrilledBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_queue_module, "STALLED_SECONDS", 0.1)
    settings, handler = filled(broker.kafka, "blocked", *KEYS), PlayedHandler()

    async def work() -> None:
        limits = ConsumerLimits(waiting=100, longest_wait=0.1, leave=1)
        member = KeyedConsumer(settings, ["blocked"], handler, limits)
        running = asyncio.ensure_future(member.run())
        await handler.until_taken(2 * RECORDS)
        handler.goes_on = True
        await handler.until_taken(3 * RECORDS)
        member.stop()
        await running

    asyncio.run(work())

    assert {key: handler.of(key) for key in KEYS} == {key: list(range(RECORDS)) for key in KEYS}
