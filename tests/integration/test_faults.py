"""A recompute without Kafka, without Cassandra, and with a lost file: named, nothing published, and it goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from batch_layer.master import Master, files_at
from deploy.local.ports import free_ports
from deploy.local.records import Records
from master_dataset.delta.tables import MasterTables
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.conftest import PATIENCE_SECONDS, Stack
from tests.integration.test_ledger import Sent, send

STORE = "faults"


@pytest.fixture(scope="module", autouse=True)
def sold(stack: Stack) -> None:
    """A receipt that is published."""
    send(stack, [Sent(STORE, 1, datetime.now(UTC))])()
    stack.rebuild()


def begun(stack: Stack, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "galatea.cli.main", *words],
        env=stack.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def failed(stack: Stack, id_: str, *words: str) -> str:
    """What it said. A recompute that has failed has published nothing."""
    before = newest(stack)
    process = begun(stack, "rebuild", "--full", "--id", id_, *words)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, newest(stack)) == (1, before), said
    return said


def newest(stack: Stack) -> Any:
    return stack.get("/v1/publications", limit=1)["publications"][0]


@contextmanager
def lost(file: Path) -> Iterator[None]:
    """It is not where the log of the table says."""
    away = file.rename(f"{file}.away")
    try:
        yield
    finally:
        away.rename(file)


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """It answers nobody."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.nightly
def test_without_kafka_what_the_published_cut_covers_is_recomputed(stack: Stack) -> None:
    [closed] = free_ports(1)
    alone = replace(stack, environment=stack.environment | {"GALATEA_KAFKA_BOOTSTRAP": f"127.0.0.1:{closed}"})
    before = newest(stack)

    done = alone.galatea("rebuild", "--full")
    failed(alone, "waits-for-kafka", "--wait")

    assert (done["publication"], newest(stack)["cut"]) == (before["publication"] + 1, before["cut"])
    assert stack.galatea("recompute", "show", "waits-for-kafka")["problem"]["code"] == "broker_unavailable"


@pytest.mark.nightly
def test_a_lost_file_of_the_master_is_named_and_nothing_is_published(stack: Stack) -> None:
    path = MasterTables(stack.settings.paths.master_uri).path(POS_TRANSACTIONS.topic)
    file = Path(path, files_at(path, Master.newest(path).version)[0].path)

    with lost(file):
        said = failed(stack, "a-file-is-lost")

    assert file.name in said
    problem = stack.galatea("recompute", "show", "a-file-is-lost")["problem"]
    assert problem["code"] == "master_file_lost"


@pytest.mark.nightly
def test_a_recompute_goes_on_after_cassandra_was_away(stack: Stack) -> None:
    pid = Records(stack.settings.home).pid("cassandra")
    before = newest(stack)["publication"]
    assert pid is not None
    stack.galatea("recompute", "plan", "cassandra-is-away", "--full")

    process = begun(stack, "recompute", "compute", "cassandra-is-away")
    while stack.get("/v1/recomputes/cassandra-is-away")["state"] != "computing":
        time.sleep(0.01)
    with paused(pid):
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    during = newest(stack)["publication"]
    stack.galatea("rebuild", "--id", "cassandra-is-away")

    assert process.returncode == 1
    assert "galatea rebuild --id cassandra-is-away" in said
    assert (during, newest(stack)["publication"]) == (before, before + 1)
    assert not stack.verify().has_differences
