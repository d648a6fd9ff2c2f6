"""Three brokers, three Cassandra nodes: each is lost once, one of each kind at a time, and no number is wrong."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement
from confluent_kafka.admin import AdminClient

from deploy.cassandra import Address, connect
from deploy.local.nodes import HOSTS
from deploy.local.ports import is_free
from deploy.local.records import Records
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from tests.integration.conftest import Stack, around_now, settings_of

pytestmark = pytest.mark.nightly

PORTION = 200
NODES = {"kafka", "kafka-2", "kafka-3", "cassandra", "cassandra-2", "cassandra-3"}


def receipts(portion: int) -> bytes:
    """Of ten stores, over the last hours."""
    now = datetime.now(UTC)
    return b"".join(
        json.dumps(
            {
                "happened_at": (now - timedelta(minutes=number)).isoformat(timespec="milliseconds"),
                "operation_id": number % 10,
                "transaction_id": portion * PORTION + number,
                "vendor_fiscal_module": 1,
                "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2}],
            }
        ).encode()
        + b"\n"
        for number in range(PORTION)
    )


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def total(stack: Stack) -> int | None:
    """All receipts as REST counts them; None if it refuses to say, which is not an answer."""
    question = {"store": [str(number) for number in range(10)], "grain": "total", **around_now()}
    answer = stack.request("GET", "/v1/metrics/total_transactions_count", params=question)
    assert answer.status_code in {200, 503}, answer.text
    if answer.status_code == 503:
        return None
    return sum(series["points"][0]["value"] or 0 for series in answer.json()["series"])


class RepeatedQuery:
    """The total, asked again and again: it never shrinks, and never exceeds what was sent."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.sent, self.seen = stack, 0, 0

    def is_whole(self) -> bool:
        found = total(self.stack)
        if found is not None:
            assert self.seen <= found <= self.sent
            self.seen = found
        return found == self.sent


@contextmanager
def lost(stack: Stack, number: int) -> Iterator[None]:
    """One broker and one Cassandra node are killed; what is started in their place is stopped before it listens."""
    kinds = {"kafka": stack.settings.kafka.port, "cassandra": stack.settings.cassandra.port}
    names = {kind if number == 1 else f"{kind}-{number}": port for kind, port in kinds.items()}
    records, held = Records(stack.settings.home), []
    killed = {name: records.pid(name) for name in names}
    for pid in killed.values():
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    try:
        for name, port in names.items():
            wait_until(lambda name=name: records.pid(name) not in {None, killed[name]})  # type: ignore[misc]
            held.append(records.pid(name) or 0)
            os.kill(held[-1], signal.SIGSTOP)
            assert is_free(port, HOSTS[number - 1])
        yield
    finally:
        for pid in held:
            os.kill(pid, signal.SIGCONT)


def copies_are_whole(stack: Stack) -> bool:
    """Every partition has three copies in step, and every Cassandra node sees both others."""
    try:
        admin = AdminClient({**stack.settings.kafka.connection.client(), "log_level": 0})
        topics = admin.list_topics(timeout=20).topics
        for host in HOSTS:
            session = connect(Address((host,), stack.settings.cassandra.port, "galatea"))
            try:
                [repeated] = [each for each in session.cluster.metadata.all_hosts() if each.address == host]
                every = SimpleStatement("SELECT name FROM migrations", consistency_level=ConsistencyLevel.ALL)
                session.execute(every, host=repeated)
            finally:
                session.cluster.shutdown()
    except (CassandraUnavailableError, *CASSANDRA_UNAVAILABLE):
        return False
    return all(len(part.isrs) == 3 for topic in topics.values() for part in topic.partitions.values())


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    settings, environment = settings_of(tmp_path / "home")
    started = Stack(settings, environment)
    try:
        started.run("up", "--detach", "--without-airflow", "--brokers", "3", "--cassandra", "3")
        yield started
    finally:
        started.run("down")


def test_any_one_node_is_lost_without_a_wrong_or_missing_number(stack: Stack, tmp_path: Path) -> None:
    file, repeated = tmp_path / "receipts.jsonl", RepeatedQuery(stack)
    states = {each["name"]: each["state"] for each in stack.galatea("status")["components"]}
    layers = {"archive", "speed", "alerts", "dispatcher", "api", "sql"}
    assert {name for name in states if states[name] == "running"} == {*NODES, *layers}

    for number in (1, 2, 3):
        wait_until(lambda: copies_are_whole(stack))
        file.write_bytes(receipts(number))
        with lost(stack, number):
            repeated.sent += PORTION
            assert stack.galatea("ingest", "pos_transactions", str(file))["acknowledged"] == PORTION
            if number == 2:
                stack.galatea("rebuild", "--wait")
            wait_until(repeated.is_whole)
    verdict = stack.galatea("verify")

    assert repeated.seen == 3 * PORTION
    assert verdict["differing"] == 0
    assert verdict["cells"] > 0
    assert verdict["waiting_for_batch"] == 0
    assert stack.galatea("dead-letters", "list")["counts"] == {}
