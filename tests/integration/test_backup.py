"""Backup and restore on a real Cassandra and a real Kafka: every kept row comes back, with what it means."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from deltalake import write_deltalake

from deploy.backup.manifest import Manifest
from deploy.backup.mark import refuse_unfinished_restore
from deploy.backup.restore import Restore, RestorePlan
from deploy.backup.rows import CassandraKeyspace, arrow_schema
from deploy.backup.tables import ARCHIVE_POSITIONS, PUBLICATIONS, SKIPS, kept_tables
from deploy.backup.writer import BackupWriter
from deploy.schema import newest
from deploy.services.releases import ReleaseRecorder
from galatea.cli.common.tenants import was_just_restored
from master_dataset.errors import OperatorError
from master_dataset.kafka.topics import Topics
from tests.integration.conftest import Keyspaces, Stack
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.generation import Generations, Reached
from views.control.publication import PointerRow, Publication
from views.control.recompute import Recompute, RecomputeRequest, Recomputes, StoredPlan

TOPIC = "pos_transactions"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
CUT = datetime(2026, 3, 1, 11, 55, tzinfo=UTC)
Row = tuple[str, Mapping[str, object], str]
DAY = AT.date()
TOLD = {"sight": "*", "raised_at": AT, "alert_id": "x", "body": "{}"}
ROWS: Sequence[Row] = (
    ("registry_versions", {"name": "stores", "version": 3}, ""),
    ("stores", {"id": "1", "body": "{}", "effective_at": AT}, ""),
    ("product_masters", {"tenant": "a", "version": "v2", "buckets": 1, "count": 1, "previous": "v1"}, ""),
    ("product_blocks", {"tenant": "a", "version": "v2", "bucket": 0, "count": 1, "block": b"\x00\xff"}, ""),
    ("floor_plans", {"tenant": "a", "store": "1", "version": "v", "zones": "[]", "image": b"\x89PNG"}, ""),
    ("api_keys", {"id": "k", "digest": b"\xab", "tenant": "a", "scopes": {"read", "operate"}, "name": "till"}, ""),
    ("alert_versions", {"bucket": 0, "kind": "rule", "id": "a/weak", "number": 1, "body": ""}, ""),
    ("webhook_endpoints", {"id": "w", "tenant": "a", "url": "https://x", "secret": "s", "begun_at": AT}, ""),
    ("webhook_skips", {"id": "w", "topic": ALERTS_TOPIC, "partition": 0, "offset": 8, "asked_at": AT}, "TTL 1000"),
    ("seen_titles", {"tenant": "a", "bucket": 1, "sku": "858", "title": "Milk"}, "TIMESTAMP 1772366400000000"),
    ("ledgers", {"subject": "1", "lines": "run-1", "base": 0, "totals": "{}"}, ""),
    ("corrections", {"subject": "run-1", "view_name": "sales", "store": "1", "day": DAY, "block": "[]"}, ""),
    ("alerts_kept", {"bucket": 0, "partition": 0, "position": 5, "as_of": AT}, ""),
    ("alerts_told", {**TOLD, "day": DAY}, ""),
    ("alerts_open_by_hour", {**TOLD, "hour": AT}, "TIMESTAMP 1"),
    ("archive_positions", {"topic": TOPIC, "partition": 0, "position": 0}, "TIMESTAMP 0"),
    ("archive_positions", {"topic": TOPIC, "partition": 1, "position": 0}, "TIMESTAMP 0"),
    ("generations", {"generation": 99, "emit_from": AT, "targets": "{}"}, ""),
    ("batch_cells", {"view_name": "sales", "store": "1", "month": DAY, "run": "run-1", "day": DAY, "block": "[]"}, ""),
)


def insert(session: Session, table: str, values: Mapping[str, object], using: str = "") -> None:
    marks = ", ".join(["%s"] * len(values))
    how = f" USING {using}" if using else ""
    session.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks}){how}", list(values.values()))  # noqa: S608 - names of the schema


def fill(session: Session) -> None:
    """A deployment with one publication, a generation, a recompute in the middle, and a row of most tables."""
    pointer = PointerRow(session)
    pointer.begin(AT - timedelta(days=9))
    assert pointer.publish(pointer.read(), Publication(1, CUT, "run-1", 0, AT, "me", "a test", {"sales": "abc"}))
    session.execute("UPDATE publications SET current_generation = 99 WHERE series = 'galatea' IF current = 1")
    for row in ROWS:
        insert(session, *row)
    Generations(session).record(99, [Reached(TOPIC, 0, 4, AT)])
    recomputes = Recomputes(session)
    recomputes.create(Recompute("open", RecomputeRequest(), "me", "a test", AT, "asked"))
    plan = StoredPlan(4, "open#4", pointer.read(), CUT, 99, {}, {}, {}, {}, {}, [], None)
    assert recomputes.plan(recomputes.find("open"), plan)
    session.execute("UPDATE recomputes SET portions[1] = '{}', state = 'computing' WHERE id = 'open'")


def held(session: Session, table: str) -> list[dict[str, Any]]:
    """Every row of a kept table, by its file's columns."""
    keyspace = CassandraKeyspace(session)
    [of] = [each for each in kept_tables() if each.name == table]
    schema = arrow_schema(of, keyspace.columns(table))
    rows = pa.Table.from_batches(keyspace.read(of, schema), schema).to_pylist()
    return sorted(rows, key=str)


@pytest.fixture
def master(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "master" / TOPIC, pa.table({"n": [1, 2]}))
    return tmp_path / "master"


class Deployment:
    """A keyspace that is backed up, and an empty one."""

    def __init__(self, stack: Stack, sessions: tuple[Session, Session], folder: Path) -> None:
        self.full, self.empty = sessions
        self._topics, self.folder = Topics(stack.settings.kafka.connection), folder
        PointerRow(self.empty).begin(AT)

    def back_up(self, step: Any = lambda *_: None) -> tuple[Path, Manifest]:
        topics = (TOPIC, ALERTS_TOPIC, CORRECTIONS_TOPIC)
        writer = BackupWriter(
            CassandraKeyspace(self.full), self._topics, topics, str(self.folder / "master"), "0.1", newest()
        )
        return writer.write(self.folder / "backups", step)

    def restore(self, backup: Path) -> RestorePlan:
        master, checkpoints = str(self.folder / "master"), str(self.folder / "checkpoints")
        work = Restore(
            backup, CassandraKeyspace(self.empty), self._topics, master, checkpoints, newest(), "the operator"
        )
        plan = work.plan(lambda *_: None)
        work.run(plan, lambda *_: None)
        return plan


@pytest.fixture
def deployment(stack: Stack, keyspaces: Keyspaces, master: Path) -> Iterator[Deployment]:
    with keyspaces.lend() as full, keyspaces.lend() as empty:
        fill(full)
        yield Deployment(stack, (full, empty), master.parent)


def without(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def test_every_kept_row_comes_back_with_its_timestamp_and_its_lifetime(deployment: Deployment) -> None:
    (deployment.folder / "checkpoints" / "archive").mkdir(parents=True)
    folder, manifest = deployment.back_up()
    deployment.restore(folder)

    changed, encrypted = {PUBLICATIONS, "recomputes", SKIPS}, ("secret", "sealed_secret")
    for table in kept_tables():
        if table.name not in changed:
            back, kept = held(deployment.empty, table.name), held(deployment.full, table.name)
            assert without(back, *encrypted) == without(kept, *encrypted), table.name
    assert manifest.rows == sum(pq.read_metadata(folder / each.path).num_rows for each in manifest.tables.values())
    [endpoint] = held(deployment.empty, "webhook_endpoints")
    assert (endpoint["secret"], bool(endpoint["sealed_secret"])) == (None, True)
    [skip] = held(deployment.empty, SKIPS)
    assert (skip["offset"], 0 < skip["_expires_s"] <= 1000) == (8, True)
    assert not deployment.empty.execute("SELECT * FROM batch_cells").all()
    assert not deployment.empty.execute("SELECT * FROM generations").all()
    assert not (deployment.folder / "checkpoints" / "archive").exists()


def test_the_history_goes_on_with_a_publication_that_covers_nothing(deployment: Deployment) -> None:
    deployment.restore(deployment.back_up()[0])

    pointer = PointerRow(deployment.empty)
    now, old, new = pointer.read(), pointer.publication(1), pointer.publication(2)
    assert (now.publication, now.cut, now.manifest, now.generation, now.definitions) == (2, CUT, "", 0, {})
    assert old is not None
    assert new is not None
    assert (old.manifest, old.is_collected, dict(old.definitions)) == ("run-1", True, {"sales": "abc"})
    assert (new.is_collected, new.is_restored, new.published_by) == (True, True, "the operator")
    assert pointer.switch_generation(now, 7, {"sales": "abc"})  # as after a rebuild: transactions work on the rows


def test_it_was_just_restored_until_records_are_read(deployment: Deployment) -> None:
    deployment.restore(deployment.back_up()[0])

    found = [was_just_restored(deployment.full), was_just_restored(deployment.empty)]
    ReleaseRecorder(lambda: deployment.empty, "api", "0.1").record()
    found.append(was_just_restored(deployment.empty))
    ReleaseRecorder(lambda: deployment.empty, "archive", "0.1").record()
    found.append(was_just_restored(deployment.empty))

    assert found == [False, True, True, False]


def test_a_recompute_that_was_open_cannot_be_resumed_without_its_cells(deployment: Deployment) -> None:
    deployment.restore(deployment.back_up()[0])

    found = Recomputes(deployment.empty).find("open")
    assert (found.state, found.portions, found.problem and found.problem.code) == ("failed", {}, "restored")
    assert found.plan is not None
    assert (type(found.plan).__name__, found.plan.number) == ("PlanNumber", 4)


def test_what_changes_while_it_is_read_is_read_again(deployment: Deployment) -> None:
    pointer, switched = PointerRow(deployment.full), list[str]()

    def publish(_done: int, _total: int, name: str) -> None:
        if name == "recomputes" and not switched:
            switched.append(name)
            assert pointer.publish(pointer.read(), Publication(2, AT, "run-2", 99, AT, "me", "a test"))

    folder, manifest = deployment.back_up(publish)

    rows = pq.read_table(folder / manifest.tables[PUBLICATIONS].path)
    assert (manifest.publication, manifest.cut) == (2, AT)
    assert sorted(rows["publication"].to_pylist()) == [0, 1, 2]


def test_tables_with_rows_are_refused_by_name_and_nothing_is_written(deployment: Deployment) -> None:
    folder, _ = deployment.back_up()
    insert(deployment.empty, "lag", {"reader": "archive", "topic": "x", "partition": 0})

    with pytest.raises(OperatorError, match="has rows in `lag`"):
        deployment.restore(folder)
    assert not deployment.empty.execute("SELECT * FROM stores").all()


def test_until_a_restore_is_done_no_process_starts_and_only_it_goes_on(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, manifest = deployment.back_up()
    other, _ = deployment.back_up()
    written: list[str] = []

    def fail(self: CassandraKeyspace, table: Any, rows: pa.RecordBatch) -> None:
        written.append(table.name)
        if len(written) == 5:
            raise KeyboardInterrupt
        write(self, table, rows)

    write = CassandraKeyspace.write
    monkeypatch.setattr(CassandraKeyspace, "write", fail)
    with pytest.raises(KeyboardInterrupt):
        deployment.restore(folder)
    monkeypatch.setattr(CassandraKeyspace, "write", write)

    with pytest.raises(OperatorError, match=f"`{manifest.id}` is running or was interrupted"):
        refuse_unfinished_restore(deployment.empty)
    with pytest.raises(OperatorError, match="restore that one to the end"):
        _do(lambda: deployment.restore(other))
    assert deployment.restore(folder).is_resumed
    refuse_unfinished_restore(deployment.empty)
    assert held(deployment.empty, ARCHIVE_POSITIONS) == held(deployment.full, ARCHIVE_POSITIONS)


def _do(call: Any) -> None:
    """Raise the next step of an error as its message."""
    try:
        call()
    except OperatorError as error:
        raise OperatorError(f"{error.message}; {error.do}", do="") from error


def test_a_topic_is_known_by_its_id(stack: Stack) -> None:
    ids = Topics(stack.settings.kafka.connection).ids([TOPIC, "people_counts", "no-such-topic"])

    assert ids.keys() == {TOPIC, "people_counts"}
    assert len(set(ids.values())) == 2
    assert Topics(stack.settings.kafka.connection).cluster_id()
