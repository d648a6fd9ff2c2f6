"""A dead letter on the real stack: mended, sent again, counted once; and no record is missing."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from deploy.cassandra import session_of
from deploy.wiring import replayer_of
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.dead_letters.deliveries import ArchivedEvents
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay import Replayer, ReplayRequest
from master_dataset.kafka.record import RecordPosition
from master_dataset.registry.stores import DEFAULT_TERMS
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from tests.support import receipt

TOPIC = "pos_transactions"
STORE = "mended"
NOW = datetime.now(UTC) - timedelta(minutes=5)


def until(found: Callable[[], Any]) -> Any:
    """What it gives as soon as that is something."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (listed := found()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.5)
    return listed


def dead_letters(stack: Stack) -> list[Any]:
    """Those of this store, newest first."""
    listed = stack.galatea("dead-letters", "list", "--reason", "bad_time", "--source", TOPIC)["dead_letters"]
    shown = [stack.get(f"/v1/dead-letters/{each['id']}") for each in listed]
    return [each for each in shown if json.loads(each["text"])["operation_id"] == STORE]


def replayed(stack: Stack, **said: object) -> Any:
    answer = stack.request("POST", "/v1/dead-letters/replay", json=said)
    assert answer.is_success, answer.text
    return answer.json()["items"]


def sold(stack: Stack) -> tuple[float, int]:
    """What the store sold, and by how many receipts, from both layers."""
    question = {"store": STORE, "grain": "total", **around_now()}
    sales, count = (
        stack.get(f"/v1/metrics/{metric}", **question)["series"] for metric in ("net_sales", "total_transactions_count")
    )
    return (sales[0]["points"][0]["value"], count[0]["points"][0]["value"]) if sales and count else (0, 0)


def records(stack: Stack, positions: dict[int, int]) -> int:
    """How many the topic has before these positions, Galatea's own markers left out."""
    consumer = Consumer(
        {
            **stack.settings.kafka.connection.client(),
            "group.id": "a test",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in positions])
    found, left = 0, set(positions)
    while left:
        message = consumer.poll(30)
        assert message is not None
        part, offset, error = message.partition() or 0, message.offset() or 0, message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - the client's public name for it
            left.discard(part)
        elif offset < positions[part]:
            found += "galatea-marker" not in dict(message.headers() or [])
    consumer.close()
    return found


@pytest.mark.nightly
def test_a_patched_dead_letter_is_counted_once_however_often_it_is_sent_and_nothing_is_missing(
    stack: Stack, tmp_path: Path
) -> None:
    good = receipt(NOW.isoformat(timespec="milliseconds"), minor=100, number=1, store=STORE)
    broken = receipt(NOW.replace(tzinfo=None).isoformat(), minor=250, number=2, store=STORE)
    stack.ingest(TOPIC, [good, good, broken])
    [dead_letter] = until(lambda: dead_letters(stack))
    until(lambda: sold(stack) == (1.0, 1))
    now = json.dumps(NOW.isoformat(timespec="milliseconds"))
    words = ("dead-letters", "replay", dead_letter["id"], "--set", f"/happened_at={now}")

    tried = stack.galatea(*words, "--dry-run")
    unchanged = sold(stack)
    sent = stack.galatea(*words)
    until(lambda: sold(stack) == (3.5, 2))
    shown = until(lambda: [each for each in dead_letters(stack) if each["replays"][0]["outcome"] == "event"])
    again = replayed(stack, ids=[dead_letter["id"]], mend={"set": {"/happened_at": json.loads(now)}})
    forced = sent_blindly(stack, RecordPosition.of(dead_letter["id"]), now.encode(), tmp_path)
    listed = until(lambda: [each for each in dead_letters(stack) if each["replays"][-1]["outcome"] == "duplicate"])
    before = sold(stack)
    stack.rebuild()
    after = sold(stack)

    assert (tried["counts"], unchanged) == ({"event": 1}, (1.0, 1))
    assert (sent["counts"], sent["items"][0]["sent_to"]) == ({"sent": 1}, shown[0]["replays"][0]["sent_to"])
    assert (again[0]["outcome"], again[0]["duplicate_of"]) == ("duplicate", sent["items"][0]["sent_to"])
    assert (forced, listed[0]["replays"][-1]["duplicate_of"]) == ("sent", sent["items"][0]["sent_to"])
    assert (before, after) == ((3.5, 2), (3.5, 2))
    assert {name: listed[0][name] for name in ("id", "text", "reason", "field")} == {
        name: dead_letter[name] for name in ("id", "text", "reason", "field")
    }
    assert not stack.verify().has_differences
    balanced(stack)


def sent_blindly(stack: Stack, position: RecordPosition, time_: bytes, nowhere: Path) -> str:
    """As a replay that does not know yet what is archived."""
    known = replayer_of(stack.settings)
    blind = Replayer(known.dead_letters, known.replays, ArchivedEvents(str(nowhere)), known.sender, known.now)
    request = ReplayRequest([position], Patch(fields={"/happened_at": time_}), "a test", dry_run=False)
    [item] = blind.run(request, lambda _: DEFAULT_TERMS, lambda *_: None)
    return item.outcome.value


def balanced(stack: Stack) -> None:
    """received = events + duplicates + dead letters, of every topic, and received is what a consumer reads."""
    positions = ArchivePositions(session_of(stack.settings.cassandra.address)).read()[TOPIC]
    found = {each["topic"]: each for each in stack.galatea("reconcile")["topics"]}

    assert [topic for topic, each in found.items() if each["missing"]] == []
    own = found[TOPIC]
    assert own["received"] == own["events"] + own["duplicates"] + sum(own["dead_letters"].values())
    assert own["received"] >= records(stack, positions) >= 5
    assert own["duplicates"] >= 2
