"""The collector in real Cassandra: killed anywhere it is finished by the next one, and no reader misses a cell."""

import signal
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cassandra.cluster import Session

from batch_layer.maintenance.gc import GarbageCollector
from batch_layer.maintenance.reachable import Retention
from batch_layer.run import Run, read_manifest
from master_dataset.errors import PublicationMovedError
from tests.integration.conftest import Stack
from views.control.publication import Pointer, PointerRow, Publication
from views.control.recompute import RecomputeRequest, Recomputes, StoredPlan
from views.core.cut import month_of

DAYS = [date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2)]
WRITTEN = datetime.now(UTC)
PLAN = StoredPlan(
    number=2,
    run="of it",
    base=Pointer(0, WRITTEN, "", 0, {}),
    cut=WRITTEN,
    generation=0,
    work={},
    whys={},
    masters={},
    master_versions={},
    definitions={},
    alarms=[],
    read_at=None,
)
LATER = WRITTEN + timedelta(days=30)
KEEP = Retention(2, timedelta(days=7))
COLLECTS = """
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from batch_layer.maintenance.gc import GarbageCollector
from batch_layer.maintenance.reachable import Retention
from deploy.cassandra import connect
from deploy.settings import Settings
from master_dataset.failpoints import arm

plan, folder, keyspace, now = sys.argv[1:]
arm(plan, Path(folder))
session = connect(replace(Settings().cassandra.address, keyspace=keyspace))
collector = GarbageCollector(session, Retention(2, timedelta(days=7)), datetime.fromisoformat(now))
collector.run(collector.survey(lambda *_: None), lambda *_: None)
"""


def write(session: Session, run: str, days: Iterable[date], at: datetime | None = None) -> None:
    """A block of one store on each of these days; and which stores there are."""
    micros = int((at or WRITTEN).timestamp() * 1_000_000)
    block = session.prepare(
        "INSERT INTO batch_cells (view_name, store, month, run, day, block) "
        "VALUES ('sales', '7', ?, ?, ?, 'cells') USING TIMESTAMP ?"
    )
    stores = session.prepare(
        "INSERT INTO run_days (run, view_name, day, stores) VALUES (?, 'sales', ?, '[\"7\"]') USING TIMESTAMP ?"
    )
    part = session.prepare(
        "INSERT INTO day_cells (run, view_name, day, part, block) VALUES (?, 'sales', ?, ?, 0x00) USING TIMESTAMP ?"
    )
    for day in days:
        session.execute(block, (month_of(day), run, day, micros))
        session.execute(stores, (run, day, micros))
        for name in ("one", "two"):
            session.execute(part, (run, day, name, micros))


def publish(session: Session, days: Iterable[date], manifest: str = "") -> None:
    """The next publication: a run of these days over the one before, or an older manifest once more."""
    row = PointerRow(session)
    base = row.read()
    number = base.publication + 1
    name = manifest or f"run-{number}"
    if not manifest:
        write(session, name, days)
        entries = read_manifest(session, base.manifest) | {("sales", day): name for day in days}
        Run(lambda: session, name).write_manifest(entries)
    assert row.publish(base, Publication(number, WRITTEN, name, 0, WRITTEN, "test", "test"))


def recompute(session: Session, id_: str, state: str, age: timedelta) -> None:
    request, plan = RecomputeRequest().to_json(), msgspec.json.encode(PLAN).decode()
    values = (id_, state, LATER - age, LATER - age, request, plan)
    insert = "INSERT INTO recomputes (id, state, asked_at, updated_at, asked, plan) VALUES (%s, %s, %s, %s, %s, %s)"
    session.execute(insert, values)


@pytest.fixture
def history(cassandra: Session) -> Session:
    """Five publications, the last of them the first once more, of which two are kept; and work of every kind."""
    PointerRow(cassandra).begin(WRITTEN)
    for days in (DAYS, DAYS[:1], DAYS[1:2], DAYS[2:]):
        publish(cassandra, days)
    publish(cassandra, (), manifest="run-1")
    for id_, state, age in [
        ("dead", "failed", 3),
        ("resumed", "failed", 1),
        ("open", "computing", 1),
        ("looked-at", "previewed", 5),
        ("looked.at", "previewed", 8),
        ("abandoned", "computing", 20),
        ("done", "published", 20),
    ]:
        recompute(cassandra, id_, state, timedelta(days=age))
        write(cassandra, f"{id_}#2", DAYS)
        cassandra.execute("INSERT INTO ledgers (subject, base) VALUES (%s, 3)", (id_,))
        cassandra.execute(
            "INSERT INTO corrections (subject, view_name, store, day) VALUES (%s, 'sales', '7', '2026-03-01')", (id_,)
        )
    cassandra.execute("INSERT INTO ledgers (subject, lines, base) VALUES ('1', 'done', 0)")
    write(cassandra, "no-record", DAYS)
    write(cassandra, "no-record-yet", DAYS[1:], at=LATER - timedelta(hours=25))
    write(cassandra, "no-record-yet", DAYS[:1], at=LATER - timedelta(hours=23))
    write(cassandra, "dead#3", DAYS, at=LATER - timedelta(hours=1))  # resumed after recomputes were read
    return cassandra


def left(session: Session) -> dict[str, list[int]]:
    """By run, the days of its blocks; each has its row of stores, and its day cells."""
    places = {
        query: sorted((row.run, row.day.date()) for row in session.execute(query))
        for query in (
            "SELECT run, day FROM batch_cells",
            "SELECT run, day FROM run_days",
            "SELECT DISTINCT run, view_name, day FROM day_cells",
        )
    }
    blocks, run_days, day_cells = places.values()
    assert blocks == run_days == day_cells
    found: dict[str, list[int]] = {}
    for run, day in blocks:
        found.setdefault(run, []).append(DAYS.index(day))
    return found


LEFT = {
    "run-1": [0, 1, 2],
    "run-2": [0],
    "run-3": [1],
    "run-4": [2],  # 4 rests on 2 and 3, and 5 is 1 once more
    "resumed#2": [0, 1, 2],
    "open#2": [0, 1, 2],
    "looked-at#2": [0, 1, 2],
    "no-record-yet": [0, 1, 2],
    "dead#3": [0, 1, 2],
}


def test_a_collection_that_is_killed_is_finished_by_the_next_and_takes_nothing_that_is_reachable(
    history: Session, stack: Stack, tmp_path: Path
) -> None:
    before = left(history)
    survey = GarbageCollector(history, KEEP, LATER).survey(lambda *_: None)
    assert left(history) == before  # a survey changes nothing

    ended = []
    for plan in ("collect.marked", "collect.deleted", ""):
        command = [sys.executable, "-c", COLLECTS, plan, str(tmp_path), history.keyspace, LATER.isoformat()]
        ended.append(subprocess.run(command, check=False, env=stack.environment).returncode)
    again = GarbageCollector(history, KEEP, LATER).survey(lambda *_: None)

    assert ended == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert left(history) == LEFT
    assert survey.shown() == {
        "publication": 5,
        "kept": 2,
        "collected": [1, 2, 3],
        "manifests": 2,
        "previews": 3,
        "runs": 5,
        "blocks": 15,
        "run_days": 15,
        "abandoned": 1,
    }
    assert again.shown() == {
        "publication": 5,
        "kept": 2,
        "collected": [],
        "manifests": 0,
        "previews": 0,
        "runs": 0,
        "blocks": 0,
        "run_days": 0,
        "abandoned": 0,
    }
    marked = {
        row.publication: row.collected_at
        for row in history.execute("SELECT publication, collected_at FROM publications")
    }
    assert {number for number, at in marked.items() if at} == {1, 2, 3}
    assert {row.manifest for row in history.execute("SELECT DISTINCT manifest FROM manifests")} == {"run-1", "run-4"}
    subjects = {"1", "done", "resumed", "open", "looked-at"}
    assert {row.subject for row in history.execute("SELECT subject FROM ledgers")} == subjects
    assert {row.subject for row in history.execute("SELECT subject FROM corrections")} == subjects - {"1"}
    assert Recomputes(history).find("abandoned").state == "failed"
    works = ("abandoned", "dead", "open", "resumed", "done")
    plans = {id_: Recomputes(history).find(id_).plan for id_ in works}
    assert {id_ for id_, plan in plans.items() if not isinstance(plan, StoredPlan)} == {
        "abandoned",
        "dead",
    }  # they begin anew


def test_a_collection_stops_before_it_deletes_where_somebody_published_since_it_was_planned(history: Session) -> None:
    garbage_collector = GarbageCollector(history, KEEP, LATER)
    survey = garbage_collector.survey(lambda *_: None)
    before = left(history)
    publish(history, (), manifest="run-2")  # a rollback to what is about to be let go

    with pytest.raises(PublicationMovedError):
        garbage_collector.run(survey, lambda *_: None)

    assert left(history) == before
    again = garbage_collector.survey(lambda *_: None)
    garbage_collector.run(again, lambda *_: None)
    assert {key: days for key, days in left(history).items() if key.startswith("run")} == {
        "run-1": [0, 1, 2],
        "run-2": [0],
    }
