"""A restore: refused before it changes anything, repeatable after a kill, and without what would make numbers wrong."""

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deploy.backup import writer
from deploy.backup.manifest import read_manifest
from deploy.backup.master import check_table, table_version
from deploy.backup.tables import GROUPS, Group, KeptTable, kept_tables
from master_dataset.errors import BadFileError, LeaseHeldError, MasterFileLostError, OperatorError
from master_dataset.secrets_key import SecretsKey
from tests.support import backups
from tests.support.backups import (
    AT,
    COLUMNS,
    CUT,
    TOPIC,
    MemoryDeployment,
    MemoryKafka,
    MemoryKeyspace,
    filled,
    row_of,
)
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.publication import Pointer

LATER = AT + timedelta(minutes=50)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return MemoryDeployment(tmp_path).back_up()[0]


@pytest.fixture
def empty(tmp_path: Path, backup: Path) -> MemoryDeployment:
    """The same master dataset and topics, and a new Cassandra, fifty minutes later."""
    assert backup.exists()
    return MemoryDeployment(tmp_path, MemoryKeyspace(), now=LATER)


def test_rows_come_back_and_nothing_is_published_until_a_rebuild(empty: MemoryDeployment, backup: Path) -> None:
    plan = empty.restore(backup)

    keyspace, before = empty.keyspace, filled()
    for name in (
        "stores",
        "floor_plans",
        "api_keys",
        "archive_positions",
        "alerts_kept",
        "webhook_endpoints",
        "seen_titles",
    ):
        assert keyspace.rows[name] == before[name]
    assert keyspace.rows["alert_audits"] == before["alert_audits"]
    assert keyspace.now == Pointer(2, CUT, "", 0, {})
    assert keyspace.published[2].is_restored
    assert keyspace.mark is None
    assert (plan.publication, plan.replaced, plan.gaps) == (2, [], [])


def test_publications_are_listed_and_cannot_be_asked(empty: MemoryDeployment, backup: Path) -> None:
    empty.restore(backup)

    collected = {row["publication"]: row["collected_at"] for row in empty.keyspace.rows["publications"]}
    assert collected == {0: None, 1: LATER}


def test_an_open_recompute_has_failed_and_keeps_only_the_number_of_its_plan(
    empty: MemoryDeployment, backup: Path
) -> None:
    empty.restore(backup)

    found = {row["id"]: row for row in empty.keyspace.rows["recomputes"]}
    assert (found["open"]["state"], found["open"]["portions"], json.loads(found["open"]["plan"])) == (
        "failed",
        None,
        {"number": 3},
    )
    assert json.loads(found["open"]["problem"])["code"] == "restored"
    assert found["done"] == filled()["recomputes"][1]


def test_a_skip_lives_on_for_the_rest_of_its_life(empty: MemoryDeployment, backup: Path) -> None:
    empty.restore(backup)

    assert [row["_expires_s"] for row in empty.keyspace.rows["webhook_skips"]] == [600]


def test_a_skip_that_has_ended_does_not_come_back(empty: MemoryDeployment, backup: Path) -> None:
    empty.now = AT + timedelta(hours=1)
    empty.restore(backup)

    assert not empty.keyspace.rows.get("webhook_skips")


def test_offsets_of_topics_that_were_created_again_are_left_out(empty: MemoryDeployment, backup: Path) -> None:
    empty.kafka = MemoryKafka(dict.fromkeys((TOPIC, ALERTS_TOPIC), "another id"))
    plan = empty.restore(backup)

    rows = empty.keyspace.rows
    assert plan.replaced == sorted([TOPIC, ALERTS_TOPIC, CORRECTIONS_TOPIC])
    assert not rows.get("archive_positions")
    assert not rows.get("webhook_skips")
    assert [(row["position"], row["complete_from"]) for row in rows["alerts_kept"]] == [(0, LATER)]
    assert [row["begun_at"] for row in rows["webhook_endpoints"]] == [None]
    [audit] = rows["alert_audits"]
    assert (json.loads(audit["told"]), audit["publication"]) == ({"late": 0}, 3)  # the first rebuild is not audited


def test_a_backup_without_offsets_begins_with_the_first_record_of_every_topic(tmp_path: Path) -> None:
    folder, _ = MemoryDeployment(tmp_path).back_up(with_offsets=False)
    restored = MemoryDeployment(tmp_path, MemoryKeyspace())
    plan = restored.restore(folder)

    assert not restored.keyspace.rows.get("archive_positions")
    assert ("kafka", "begin with the first record of every topic: the backup was made without offsets") in plan.shown()


def test_a_position_whose_record_is_gone_is_left_out_and_said(empty: MemoryDeployment, backup: Path) -> None:
    empty.kafka.first = {0: 40, 1: 55}
    plan = empty.restore(backup)

    assert [row["partition"] for row in empty.keyspace.rows["archive_positions"]] == [0]
    assert [str(gap) for gap in plan.gaps] == [f"`{TOPIC}/1` from 40 to 54"]
    assert any("from 40 to 54: they count if the master dataset has them" in what for _, what in plan.shown())


def test_a_topic_that_ends_before_a_position_of_the_backup_is_refused(empty: MemoryDeployment, backup: Path) -> None:
    empty.kafka.ends = {0: 100, 1: 39}

    with pytest.raises(OperatorError, match=rf"`{TOPIC}/1` ends at 39, .* has read it to 40: it is a different log"):
        empty.restore(backup)
    assert not empty.keyspace.rows.get("archive_positions")


def test_topics_that_have_grown_since_the_backup_are_refused(empty: MemoryDeployment, backup: Path) -> None:
    empty.kafka.ends = dict.fromkeys(range(4), 100)

    with pytest.raises(OperatorError, match="has 4 partitions, and had 2 when the backup was made"):
        empty.restore(backup)


def test_a_backup_of_topics_that_were_growing_is_refused_unless_they_were_created_again(tmp_path: Path) -> None:
    growing = MemoryDeployment(tmp_path)
    growing.keyspace.rows["partition_growths"] = [row_of("partition_growths", partitions=4, is_open=None)]
    backup, _ = growing.back_up()
    empty = MemoryDeployment(tmp_path, MemoryKeyspace())

    with pytest.raises(OperatorError, match="was made while partitions were added"):
        empty.restore(backup)
    empty.kafka.known = dict.fromkeys(empty.kafka.known, "another id")
    assert not empty.restore(backup).same


def test_checkpoints_of_the_streams_are_deleted(empty: MemoryDeployment, backup: Path) -> None:
    for name in ("archive", "speed", "other"):
        (empty.folder / "checkpoints" / name).mkdir(parents=True)
    empty.restore(backup)

    assert [path.name for path in (empty.folder / "checkpoints").iterdir()] == ["other"]


class Killed(BaseException):
    """As a kill."""


class KilledKeyspace(MemoryKeyspace):
    """Is killed at one of its calls that change something."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def passed(self) -> None:
        self.left -= 1
        if not self.left:
            raise Killed

    def write(self, table: KeptTable, rows: pa.RecordBatch) -> None:
        self.passed()
        super().write(table, rows)

    def publish(self, *values: object) -> bool:
        self.passed()
        return super().publish(*values)  # type: ignore[arg-type]

    def end_restore(self, backup: str) -> None:
        self.passed()
        super().end_restore(backup)


def test_a_checkpoint_that_cannot_be_deleted_stops_the_restore_until_it_is_gone(
    empty: MemoryDeployment, backup: Path
) -> None:
    stuck = empty.folder / "checkpoints" / "archive"
    stuck.parent.mkdir()
    stuck.write_text("no folder")

    with pytest.raises(OperatorError, match="cannot be deleted"):
        empty.restore(backup)
    assert empty.keyspace.unfinished_restore() is not None

    stuck.unlink()
    assert empty.restore(backup).is_resumed
    assert empty.keyspace.unfinished_restore() is None


def test_killed_anywhere_and_run_again_it_ends_as_if_it_had_not_been(empty: MemoryDeployment, backup: Path) -> None:
    empty.restore(backup)
    expected, kills = empty.keyspace, 0
    for at in range(1, 100):
        empty.keyspace = keyspace = KilledKeyspace(at)
        try:
            empty.restore(backup)
            break
        except Killed:
            kills += 1
            assert keyspace.mark is not None
        assert empty.restore(backup).is_resumed
        assert keyspace.rows == expected.rows
        assert (keyspace.now, keyspace.published) == (expected.now, expected.published)
        assert keyspace.unfinished_restore() is None

    at_once = {table.name: table.rows_at_once for table in kept_tables()}
    assert kills == sum(math.ceil(len(rows) / at_once[name]) for name, rows in filled().items()) + 2


def test_a_restore_whose_lease_another_one_took_writes_nothing_more(empty: MemoryDeployment, backup: Path) -> None:
    calls: list[int] = []

    def lost() -> None:
        calls.append(1)
        if len(calls) > 2:
            raise LeaseHeldError("another process holds the lease", do="wait")

    restore = replace(empty.restoring(backup), renew=lost)
    with pytest.raises(LeaseHeldError):
        restore.run(restore.plan(_nothing), _nothing)

    assert len(empty.keyspace.rows) == 1 + 2
    assert empty.keyspace.now.publication == 0


def test_a_restore_that_another_process_has_finished_is_not_repeated(empty: MemoryDeployment, backup: Path) -> None:
    restore = empty.restoring(backup)
    empty.keyspace.mark = read_manifest(backup).id
    plan = restore.plan(_nothing)
    empty.keyspace.mark = None

    with pytest.raises(OperatorError, match="finished by another process"):
        restore.run(plan, _nothing)


def test_a_restore_that_another_process_made_since_the_check_is_not_repeated(
    empty: MemoryDeployment, backup: Path
) -> None:
    late = empty.restoring(backup)
    plan = late.plan(_nothing)
    empty.restore(backup)
    empty.keyspace.rows["stores"] = []

    with pytest.raises(OperatorError, match="Cassandra is not empty"):
        late.run(plan, _nothing)

    assert empty.keyspace.rows["stores"] == []
    assert empty.keyspace.mark is None


def _nothing(_done: int, _total: int, _what: str) -> None:
    return None


def test_only_the_interrupted_backup_can_be_restored(empty: MemoryDeployment, backup: Path) -> None:
    empty.keyspace.mark = "another backup"

    with pytest.raises(OperatorError, match="`another backup` is being restored") as refused:
        empty.restore(backup)
    assert "restore that one to the end" in refused.value.do


@pytest.mark.parametrize("what", ["lag", "publications", "pointer"])
def test_a_cluster_that_is_not_empty_is_refused_by_the_names_of_its_tables(
    empty: MemoryDeployment, backup: Path, what: str
) -> None:
    if what == "pointer":
        empty.keyspace.now = Pointer(0, CUT, "", 5, {})
    else:
        rows = empty.keyspace.rows.setdefault(what, [])
        rows.append(row_of(what, **({"reader": "archive"} if what == "lag" else {"publication": 1})))
    named = "lag" if what == "lag" else "publications"

    with pytest.raises(OperatorError, match=f"has rows in `{named}`; nothing was changed"):
        empty.restore(backup)
    assert empty.keyspace.mark is None
    assert "stores" not in empty.keyspace.rows


def test_rows_that_a_deletion_hides_are_noticed(empty: MemoryDeployment, backup: Path) -> None:
    empty.keyspace.hidden = "api_keys"

    with pytest.raises(OperatorError, match="`api_keys` has 0 of 1 rows"):
        empty.restore(backup)
    assert empty.keyspace.mark is not None


def test_a_damaged_file_is_found_before_anything_is_changed(empty: MemoryDeployment, backup: Path) -> None:
    (backup / "cassandra" / "seen_titles.parquet").write_bytes(b"PAR1")

    with pytest.raises(BadFileError, match=r"`cassandra/seen_titles\.parquet`"):
        empty.restore(backup)
    assert empty.keyspace.mark is None


@pytest.mark.parametrize("name", ["backup.json", "cassandra/stores.parquet"])
def test_what_is_no_file_is_refused_without_waiting_for_it(empty: MemoryDeployment, backup: Path, name: str) -> None:
    (backup / name).unlink()
    os.mkfifo(backup / name)

    with pytest.raises(BadFileError, match="is not a regular file"):
        empty.restore(backup)


@pytest.mark.parametrize("said", ['{"a":' * 20_000, '{"format": 1}', None])
def test_a_manifest_that_is_damaged_is_named(empty: MemoryDeployment, backup: Path, said: str | None) -> None:
    place = backup / "backup.json"
    without_positions = json.loads(place.read_text())
    del without_positions["tables"]["archive_positions"]
    place.write_text(json.dumps(without_positions) if said is None else said)

    with pytest.raises(BadFileError, match=r"backup\.json` is damaged"):
        empty.restore(backup)
    assert empty.keyspace.mark is None


def test_another_number_of_rows_than_the_manifest_says_is_refused(empty: MemoryDeployment, backup: Path) -> None:
    manifest = json.loads((backup / "backup.json").read_text())
    manifest["tables"]["stores"]["rows"] += 1
    del manifest["checksum"]  # as earlier builds wrote it
    (backup / "backup.json").write_text(json.dumps(manifest))

    with pytest.raises(BadFileError, match=r"stores.parquet` of the backup in .+ has \d+ rows instead of \d+"):
        empty.restore(backup)
    assert empty.keyspace.mark is None


def test_a_backup_with_tables_of_a_newer_release_is_refused(empty: MemoryDeployment, backup: Path) -> None:
    with pytest.raises(OperatorError, match=r"tables up to `020_seen_titles\.cql`, which this release does not know"):
        empty.restore(backup, schema="019_targets.cql")


def test_a_backup_of_an_older_release_comes_back_without_what_is_not_kept_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_plans = [
        replace(group, bodies=[each for each in group.bodies if each.name != "floor_plans"]) for group in GROUPS
    ]
    older = [*without_plans, Group((), (KeptTable("share_links"),))]
    with monkeypatch.context() as release:
        release.setattr(writer, "GROUPS", older)
        release.setitem(backups.COLUMNS, "share_links", {"id": "text", "token": "text"})
        keyspace = MemoryKeyspace(filled() | {"share_links": [{"id": "1", "token": "secret"}]})
        backup = MemoryDeployment(tmp_path, keyspace).back_up()[0]
    empty = MemoryDeployment(tmp_path, MemoryKeyspace(), now=LATER)

    plan = empty.restore(backup)

    assert empty.keyspace.rows["stores"] == filled()["stores"]
    assert "share_links" not in empty.keyspace.rows
    assert "floor_plans" not in empty.keyspace.rows
    sentences = [sentence for _, sentence in plan.shown()]
    assert "leave out what an older release kept, and this one does not restore: `share_links`" in sentences
    assert "leave tables empty that the release of the backup did not have: `floor_plans`" in sentences
    assert any(f"into {len(kept_tables()) - 1} tables" in sentence for sentence in sentences)


def test_a_column_that_is_gone_is_refused_by_name(
    empty: MemoryDeployment, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = empty.keyspace.columns
    monkeypatch.setattr(
        empty.keyspace, "columns", lambda table: {"id": "text"} if table == "stores" else columns(table)
    )

    with pytest.raises(OperatorError, match="`stores` of this release has no column `body`"):
        empty.restore(backup)


def append(path: Path) -> None:
    write_deltalake(path, pa.table({"n": [3]}), mode="append")


def other(path: Path) -> None:
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"n": [1, 2]}))


def lose(path: Path) -> None:
    next(path.glob("*.parquet")).unlink()


@pytest.mark.parametrize(
    ("change", "error", "what"),
    [
        (shutil.rmtree, OperatorError, "which is not there"),
        (other, OperatorError, "is not the one that the backup belongs to"),
        (lose, MasterFileLostError, "is gone"),
    ],
)
def test_a_master_dataset_that_does_not_fit_is_refused(
    empty: MemoryDeployment, backup: Path, change: Callable[[Path], None], error: type[Exception], what: str
) -> None:
    change(Path(empty.master, TOPIC))

    with pytest.raises(error, match=what):
        empty.restore(backup)
    assert empty.keyspace.mark is None


def test_an_older_master_dataset_is_refused_and_a_newer_one_is_not(tmp_path: Path) -> None:
    deployment = MemoryDeployment(tmp_path)
    path, old = Path(deployment.master, TOPIC), tmp_path / "old"
    shutil.copytree(path, old)
    append(path)
    folder, _ = deployment.back_up()
    append(path)
    restored = MemoryDeployment(tmp_path, MemoryKeyspace())

    assert restored.restore(folder).versions == {TOPIC: (1, 2)}
    shutil.rmtree(path)
    shutil.copytree(old, path)
    with pytest.raises(OperatorError, match="is at version 0, and the backup needs version 1") as refused:
        MemoryDeployment(tmp_path, MemoryKeyspace()).restore(folder)
    assert "put the master dataset back" in refused.value.do


def test_files_that_a_compaction_has_replaced_and_deleted_are_not_missed(tmp_path: Path) -> None:
    path = tmp_path / TOPIC
    for _ in range(3):
        append(path)
    recorded = table_version(str(path))
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    assert check_table(str(path), recorded).version > recorded.version
    assert not any((path / name).exists() for name in recorded.sizes)


def test_a_table_that_went_another_way_since_is_refused(tmp_path: Path) -> None:
    """An old copy was put back, and others have written into it: as many commits, but not those of the backup."""
    path, old = tmp_path / TOPIC, tmp_path / "old"
    append(path)
    shutil.copytree(path, old)
    append(path)
    recorded = table_version(str(path))
    for _ in range(2):
        append(old)

    with pytest.raises(MasterFileLostError, match="does not name 1 data files of the backup any more"):
        check_table(str(old), recorded)


def test_every_table_with_a_meaning_of_its_own_is_kept() -> None:
    assert {table.name for table in kept_tables() if table.written_at} == {
        "archive_positions",
        "alerts_open_by_hour",
        "seen_titles",
    }


def test_a_backup_of_another_key_file_is_refused_before_anything_is_changed(
    empty: MemoryDeployment, backup: Path
) -> None:
    empty.secrets_key = SecretsKey("another" * 7)

    with pytest.raises(OperatorError, match="another key file") as found:
        empty.restore(backup)

    assert "migrate --new-secrets-key" in found.value.do
    assert "--without-key" in found.value.do
    assert empty.keyspace.mark is None
    assert "api_keys" not in empty.keyspace.rows


def test_without_its_key_file_a_backup_comes_back_as_it_is(empty: MemoryDeployment, backup: Path) -> None:
    empty.secrets_key, empty.without_key = SecretsKey("another" * 7), True

    empty.restore(backup)

    assert empty.keyspace.rows["api_keys"] == filled()["api_keys"]


def test_of_a_former_release_secrets_are_encrypted_and_no_key_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = filled()
    rows["webhook_endpoints"] = [row_of("webhook_endpoints", id="w", tenant="a", secret="whsec_clear")]  # noqa: S106 - made up
    for name, new in (("api_keys", "mac"), ("webhook_endpoints", "sealed_secret")):
        former = {column: kind for column, kind in COLUMNS[name].items() if column != new}
        monkeypatch.setitem(COLUMNS, name, former)
        rows[name] = [{column: row[column] for column in former} for row in rows[name]]
    folder = MemoryDeployment(tmp_path, MemoryKeyspace(rows), signs=False).back_up()[0]
    monkeypatch.undo()
    empty = MemoryDeployment(tmp_path, MemoryKeyspace(), now=LATER)

    plan = empty.restore(folder)

    (key,), (endpoint,) = (empty.keyspace.rows[name] for name in ("api_keys", "webhook_endpoints"))
    assert key.get("mac") is None
    assert any("galatea keys sign ID" in what for _, what in plan.shown())
    assert endpoint["secret"] is None
    assert empty.secrets_key.open(endpoint["sealed_secret"], "w", "a") == "whsec_clear"
