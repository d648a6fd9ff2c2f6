"""One process works on a recompute, and none on days that another one recomputes already."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from uuid import uuid4

import orjson
import psutil
import pytest
from cassandra.cluster import Session

from batch_layer.plan import Plan
from batch_layer.recompute.lock import RecomputeLock
from master_dataset.errors import RecomputeRunningError
from views.control.publication import Pointer
from views.control.recompute import PlanNumber, PortionCounts, Recompute, RecomputeRequest, Recomputes
from views.sales import SALES

BEHIND_NS = 1_000_000_000
NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)


def plan(*days: int) -> Plan:
    base = Pointer(3, NOON, "run-3", 1, {})
    return Plan(base, NOON, [(SALES, {date(2026, 3, day) for day in days})], {}, {}, 1, {})


def held_by(session: Session, process: "psutil.Process", days: Sequence[str]) -> str:
    """A recompute that the row says this process works on, since long."""
    id_ = f"other-{uuid4()}"
    holder = {"host": RecomputeLock(session, id_).host, "pid": process.pid, "created": process.create_time()}
    claimed = {"at": "2026", "days": {SALES.name: [days]} if days else {}}
    session.execute(
        "INSERT INTO running_recomputes (series, id, holder, partitions) VALUES ('galatea', %s, %s, %s) USING TTL 60",
        (id_, orjson.dumps(holder).decode(), orjson.dumps(claimed).decode()),
    )
    return id_


@pytest.fixture
def other() -> Iterator[psutil.Popen]:
    """A process that lives as long as the test wants it to."""
    process = psutil.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    yield process
    if process.is_running():
        process.kill()
        process.wait()


def test_a_second_process_is_refused_as_long_as_the_first_one_lives(cassandra: Session, other: psutil.Popen) -> None:
    id_ = held_by(cassandra, other, [])

    with pytest.raises(RecomputeRunningError, match=str(other.pid)), RecomputeLock(cassandra, id_):
        pass

    other.kill()
    other.wait()
    with RecomputeLock(cassandra, id_):  # taken over at once
        assert cassandra.execute("SELECT * FROM running_recomputes").one().id == id_
    assert cassandra.execute("SELECT * FROM running_recomputes").one() is None


def test_a_process_that_stood_still_while_another_took_over_changes_nothing_more(cassandra: Session) -> None:
    recomputes = Recomputes(cassandra)
    recomputes.create(Recompute("mine", RecomputeRequest(), "test", "a test", NOON, "asked"))
    slow, quick = (recomputes.find("mine") for _ in range(2))

    with RecomputeLock(cassandra, "mine") as no_progress:
        expire = "DELETE FROM running_recomputes WHERE series = 'galatea' AND id = 'mine' IF EXISTS"
        cassandra.execute(expire)
        with RecomputeLock(cassandra, "mine") as other:
            assert not no_progress.renew()
            assert other.renew()
    planned = [recomputes.plan(quick, PlanNumber(1)), recomputes.plan(slow, PlanNumber(7))]
    again = recomputes.plan(recomputes.find("mine"), PlanNumber(2))

    assert (planned, again) == ([True, False], True)
    assert recomputes.find("mine").plan == PlanNumber(2)


def test_a_state_is_not_lost_if_the_clock_of_its_process_is_behind(
    cassandra: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    recomputes, counts = Recomputes(cassandra), PortionCounts()
    recomputes.create(Recompute("mine", RecomputeRequest(), "test", "a test", NOON, "asked"))
    monkeypatch.setattr(cassandra, "timestamp_generator", lambda: (time.time_ns() - BEHIND_NS) // 1000)

    recomputes.keep_portion("mine", 1, counts)
    recomputes.update("mine", "computing", publication=7)
    computing = recomputes.find("mine")
    recomputes.forget_portions("mine")
    recomputes.update("mine", "failed", publication=None)
    failed = recomputes.find("mine")

    assert (computing.state, computing.publication, computing.portions) == ("computing", 7, {1: counts})
    assert (failed.state, failed.publication, failed.portions) == ("failed", None, {})


def test_days_that_another_one_recomputes_are_refused(cassandra: Session, other: psutil.Popen) -> None:
    theirs = held_by(cassandra, other, ["2026-03-05", "2026-03-07"])

    with RecomputeLock(cassandra, "own") as running:
        running.claim(plan(4, 8))
        with pytest.raises(RecomputeRunningError, match=theirs):
            running.claim(plan(4, 7))
        running.claim(replace(plan(7), work=[]))
