"""What a backup is on disk: complete or not there, private, and of one moment."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy.backup.manifest import FORMAT, check_file, read_manifest, write_manifest
from deploy.backup.tables import COMPUTED, KeptTable, kept_tables
from master_dataset.errors import BadFileError, DiskFullError, LeaseHeldError, OperatorError
from master_dataset.failpoints import Failpoint
from tests.support.backups import CUT, SCHEMA, TOPIC, MemoryDeployment, MemoryKeyspace, filled, row_of


@pytest.fixture
def deployment(tmp_path: Path) -> MemoryDeployment:
    return MemoryDeployment(tmp_path)


def test_a_backup_says_what_it_holds_and_where_the_rest_is(deployment: MemoryDeployment) -> None:
    folder, manifest = deployment.back_up()

    assert folder == deployment.backups / f"20260301T120000Z-{manifest.id[:8]}"
    assert read_manifest(folder) == manifest
    assert (manifest.format, manifest.schema, manifest.publication, manifest.cut) == (FORMAT, SCHEMA, 1, CUT)
    assert (manifest.kafka, manifest.topics[TOPIC].id, manifest.topics[TOPIC].ends[0]) == (
        "cluster",
        f"id of {TOPIC}",
        100,
    )
    assert manifest.tables.keys() == {table.name for table in kept_tables()}
    assert {name: each.rows for name, each in manifest.tables.items() if each.rows} == {
        name: len(rows) for name, rows in filled().items()
    }
    [(name, master)] = manifest.master.items()
    listed = pq.read_table(folder / master.listed.path).to_pylist()
    assert (name, master.version, master.files) == (TOPIC, 0, 1)
    assert [Path(deployment.master, name, each["path"]).stat().st_size for each in listed] == [master.bytes]
    for each in manifest.files:
        check_file(folder, each)


def test_only_its_owner_can_read_it(deployment: MemoryDeployment) -> None:
    before = os.umask(0)
    try:
        folder, _ = deployment.back_up()
    finally:
        os.umask(before)

    modes = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (deployment.backups, folder, folder / "cassandra")} == {0o700}


class FailingKeyspace(MemoryKeyspace):
    """Fails while the registry is being written."""

    def __init__(self, error: OSError) -> None:
        super().__init__(filled())
        self._error = error

    def read(self, table: KeptTable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield from super().read(table, schema)
        if table.name == "stores":
            raise self._error


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DiskFullError, "there is no room"),
        (OSError("[Errno 28] Error writing bytes to file. Detail: No space left on device"), DiskFullError, "no room"),
        (OSError(errno.EACCES, "Permission denied"), OperatorError, r"cannot be written .* \(Permission denied\)"),
    ],
)
def test_without_room_nothing_is_kept_and_the_error_names_the_setting(
    tmp_path: Path, error: OSError, kind: type[OperatorError], what: str
) -> None:
    deployment = MemoryDeployment(tmp_path, FailingKeyspace(error))

    with pytest.raises(kind, match=what) as refused:
        deployment.back_up()
    assert "GALATEA_BACKUP_DIR" in refused.value.do
    assert [path.name for path in deployment.backups.iterdir()] == [".lock"]


def test_a_full_disk_is_noticed_while_a_file_is_written(deployment: MemoryDeployment) -> None:
    deployment.keyspace.rows["stores"] = [row_of("stores", id="1", body=os.urandom(50_000).hex())]
    command = (
        "import resource, signal; from pathlib import Path; from tests.support.backups import *;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        f"d = MemoryDeployment(Path({str(deployment.folder)!r}));"
        "d.keyspace.rows['stores'] = [row_of('stores', id='1', body=__import__('os').urandom(50_000).hex())];"
        "d.back_up()"
    )

    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)

    assert "DiskFullError: there is no room for the backup" in done.stderr
    assert [path.name for path in deployment.backups.iterdir()] == [".lock"]


@pytest.mark.parametrize("point", [Failpoint.BACKUP_TABLES, Failpoint.BACKUP_COMPLETE])
def test_a_backup_that_is_killed_is_none_and_the_next_one_removes_its_rest(
    deployment: MemoryDeployment, point: Failpoint
) -> None:
    command = (
        "from pathlib import Path; from master_dataset.failpoints import arm; from tests.support.backups import *;"
        f"folder = Path({str(deployment.folder)!r}); arm({str(point)!r}, folder / 'crashed');"
        "MemoryDeployment(folder).back_up()"
    )

    killed = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False)
    left = sorted(path.name for path in deployment.backups.iterdir())
    folder, _ = deployment.back_up()

    assert killed.returncode == -9
    assert [name.startswith(".") for name in left] == [True, True]
    assert sorted(path.name for path in deployment.backups.iterdir()) == [".lock", folder.name]


def test_a_second_backup_at_the_same_time_is_refused(deployment: MemoryDeployment) -> None:
    deployment.backups.mkdir()
    with (deployment.backups / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(LeaseHeldError, match="another backup is being written"):
            deployment.back_up()
    deployment.back_up()


class BusyKeyspace(MemoryKeyspace):
    """Publishes between the first reads of the history."""

    def __init__(self, times: int) -> None:
        super().__init__(filled())
        self.times = times

    def read(self, table: KeptTable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if table.name == "corrections" and self.times:
            self.times -= 1
            number = len(self.rows["publications"])
            self.rows["publications"].insert(0, row_of("publications", publication=number, cut=CUT, manifest="x"))
            self.rows["corrections"] = [row_of("corrections", subject=str(number))]
        yield from super().read(table, schema)


def test_history_and_ledgers_are_of_one_moment(tmp_path: Path) -> None:
    folder, manifest = MemoryDeployment(tmp_path, BusyKeyspace(3)).back_up()

    numbers = pq.read_table(folder / manifest.tables["publications"].path)["publication"].to_pylist()
    assert (manifest.publication, sorted(numbers)) == (4, [0, 1, 2, 3, 4])
    assert pq.read_table(folder / manifest.tables["corrections"].path)["subject"].to_pylist() == ["4"]


def test_a_history_that_never_rests_is_given_up(tmp_path: Path) -> None:
    deployment = MemoryDeployment(tmp_path, BusyKeyspace(99))

    with pytest.raises(OperatorError, match="`publications`, `ledgers` changed 5 times"):
        deployment.back_up()
    assert [path.name for path in deployment.backups.iterdir()] == [".lock"]


def test_offsets_of_another_log_are_not_taken_for_those_of_the_archive(deployment: MemoryDeployment) -> None:
    deployment.keyspace.rows["archive_positions"][1]["position"] = 101

    with pytest.raises(OperatorError, match=f"has read `{TOPIC}/1` to 101, but it ends at 100") as refused:
        deployment.back_up()
    assert "galatea backup --without-offsets" in refused.value.do
    assert deployment.back_up(with_offsets=False)[1].topics == {}


GROWTH = row_of("partition_growths", partitions=4, is_open=None)
STEPS = [[GROWTH], [GROWTH | {"is_open": True}]]
"""The table after each of them: partitions are added, and they are opened."""


class GrowingKeyspace(MemoryKeyspace):
    """In which a growth goes on while a table is read."""

    def __init__(self, at: str, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
        super().__init__(filled() | {"partition_growths": before})
        self._at, self._after = at, after

    def read(self, table: KeptTable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if table.name == self._at:
            self.rows["partition_growths"] = self._after
        return super().read(table, schema)


@pytest.mark.parametrize("at", ["registry_versions", "api_keys", "archive_positions", "alerts_open_moved"])
@pytest.mark.parametrize(("before", "after"), [([], STEPS[0]), (STEPS[0], STEPS[1]), ([], STEPS[1])])
def test_partitions_that_are_added_meanwhile_end_the_backup(
    tmp_path: Path, at: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    deployment = MemoryDeployment(tmp_path, GrowingKeyspace(at, before, after))

    with pytest.raises(OperatorError, match="partitions were added to the topics meanwhile") as refused:
        deployment.back_up()

    assert "galatea backup" in refused.value.do
    assert [path.name for path in deployment.backups.iterdir()] == [".lock"]
    deployment.back_up()  # nothing changes any more


def test_a_folder_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"no complete backup: `backup\.json` cannot be read"):
        read_manifest(tmp_path)


def test_a_damaged_manifest_is_refused(deployment: MemoryDeployment) -> None:
    folder, _ = deployment.back_up()
    place = folder / "backup.json"
    place.write_bytes(place.read_bytes()[:-40])

    with pytest.raises(BadFileError, match="is damaged"):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("master", {}), ("topics", {}), ("publication", -1), ("publication", 10**30), ("publication", 1.5)],
        *[("id", "x"), ("product", "x"), ("kafka", "x"), ("secrets_key", ""), ("checksum", "x"), ("another", 1)],
    ],
)
def test_a_manifest_of_which_a_field_was_changed_is_refused(
    deployment: MemoryDeployment, name: str, value: object
) -> None:
    folder, manifest = deployment.back_up()
    place = folder / "backup.json"
    fields = json.loads(place.read_text())
    place.write_text(json.dumps(dict(reversed(fields.items()))))
    assert read_manifest(folder) == manifest  # another layout changes nothing

    place.write_text(json.dumps(fields | {name: value}))

    with pytest.raises(BadFileError, match="is damaged"):
        read_manifest(folder)


def test_a_backup_of_a_newer_format_names_its_release(tmp_path: Path) -> None:
    (tmp_path / "backup.json").write_text('{"format": 2, "product": "9.1", "tables": "in a new form"}')

    with pytest.raises(OperatorError, match="has format 2") as refused:
        read_manifest(tmp_path)
    assert "9.1" in refused.value.do


@pytest.mark.parametrize("change", ["truncated", "changed", "gone", "elsewhere"])
def test_a_file_that_is_not_as_it_was_written_is_refused_by_name(
    deployment: MemoryDeployment, tmp_path: Path, change: str
) -> None:
    folder, manifest = deployment.back_up()
    saved = manifest.tables["stores"]
    place = folder / saved.path
    written = place.read_bytes()
    if change == "truncated":
        place.write_bytes(written[:-1])
    elif change == "changed":
        place.write_bytes(written[:-1] + bytes([written[-1] ^ 1]))
    else:
        place.unlink()
    if change == "elsewhere":
        (tmp_path / "other").write_bytes(written)
        place.symlink_to(tmp_path / "other")

    with pytest.raises(BadFileError, match=r"`cassandra/stores\.parquet` of the backup"):
        check_file(folder, saved)


def test_a_manifest_is_never_written_over(deployment: MemoryDeployment) -> None:
    folder, manifest = deployment.back_up()

    with pytest.raises(FileExistsError):
        write_manifest(folder, manifest)


def test_no_table_is_both_kept_and_computed() -> None:
    names = [table.name for table in kept_tables()]

    assert len(set(names)) == len(names)
    assert not set(names) & COMPUTED.keys()
