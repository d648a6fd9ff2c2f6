"""Writes a backup while the stack runs.

The folder has a temporary name until it is complete and on the disk, so whatever has a name of a backup is one. Tables
of Cassandra come first, the versions of the master dataset last: restored positions then lie before the end of its
tables. What is archived twice counts once; the reverse would lose events.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from deploy.backup.manifest import FORMAT, Manifest, SavedFile, SavedMaster, SavedTopic, checksum, write_manifest
from deploy.backup.master import FILES, current_versions
from deploy.backup.rows import Keyspace, arrow_schema
from deploy.backup.tables import ARCHIVE_POSITIONS, GROUPS, GROWTHS, PUBLICATIONS, Group, KeptTable, kept_tables
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.delta.fsync import fsync_path
from master_dataset.errors import CassandraUnavailableError, DiskFullError, LeaseHeldError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint

TABLES, MASTER = "cassandra", "master"
"""Folders in a backup."""
PART = ".part"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_SPACE = "No space left on device"
_TRIES = 5

Step = Callable[[int, int, str], None]


class KafkaState(Protocol):
    """What backup and restore need to know of Kafka. Methods raise BrokerUnavailableError."""

    def cluster_id(self) -> str:
        """Return the id of the cluster."""

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return the id of each of these topics that exists."""

    def first_offsets(self, topic: str) -> Mapping[int, int]:
        """Return partition to the first offset that it still has."""

    def end_offsets(self, topic: str) -> Mapping[int, int]:
        """Return partition to the offset after its last record."""


@dataclass(frozen=True)
class BackupWriter:
    """Writes backups of one deployment.

    Attributes:
        keyspace: Its tables in Cassandra.
        kafka: Its topics; None to leave out everything that names an offset.
        topics: Their names.
        master_uri: Root of the master dataset.
        product: This release.
        schema: The last file of tables that was applied.
        now: The time, UTC.
        secrets_key: The fingerprint of the key of the deployment.
    """

    keyspace: Keyspace
    kafka: KafkaState | None
    topics: Sequence[str]
    master_uri: str
    product: str
    schema: str
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    secrets_key: str = ""

    def write(self, root: Path, step: Step) -> tuple[Path, Manifest]:
        """Write a backup into a new folder below `root`.

        Args:
            root: Folder of all backups; it is created if it is missing.
            step: Called with the tables that are done, of how many, and the next one.

        Returns:
            The new folder, and what it holds.

        Raises:
            DiskFullError: There is no room; nothing of it is kept.
            CassandraUnavailableError: Cassandra did not answer; nothing of it is kept.
            BrokerUnavailableError: Kafka did not answer; nothing of it is kept.
            LeaseHeldError: Another backup is being written there.
            OperatorError: The folder cannot be written, tables have changed all the time, a topic was created again, or
                partitions were added.
        """
        began, id_ = self.now(), uuid4().hex
        folder = root / f"{began:%Y%m%dT%H%M%SZ}-{id_[:8]}"
        part = root / f".{folder.name}{PART}"
        try:
            with _alone(root):
                try:
                    part.mkdir(mode=0o700)
                    manifest = self._write(part, began, id_, step)
                    _flush(part)
                    failpoint(Failpoint.BACKUP_COMPLETE)
                    part.rename(folder)
                    fsync_path(root)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
        except CASSANDRA_UNAVAILABLE as error:
            message = f"Cassandra did not answer in time ({type(error).__name__}); nothing of the backup was kept"
            raise CassandraUnavailableError(message, do="galatea status, then: galatea backup") from error
        except OSError as error:
            raise _not_written(root, error) from error
        return folder, manifest

    def _write(self, part: Path, began: datetime, id_: str, step: Step) -> Manifest:
        for name in (TABLES, MASTER):
            (part / name).mkdir(mode=0o700)
        writer, total = _Files(part), len(kept_tables()) + 1
        tables: dict[str, SavedFile] = {}
        growths = self._read(GROWTHS)
        for group in GROUPS:
            tables |= self._group(writer, group, lambda name: step(len(tables), total, name))  # noqa: B023 - called at once
        failpoint(Failpoint.BACKUP_TABLES)
        step(total - 1, total, "master dataset")
        master = {
            name: SavedMaster(
                found.id,
                found.version,
                len(found.sizes),
                sum(found.sizes.values()),
                writer.write(f"{MASTER}/{name}.parquet", FILES, found.listed.to_batches()),
            )
            for name, found in current_versions(self.master_uri)
        }
        topics = self._topics(part / tables[ARCHIVE_POSITIONS].path)
        if not growths.equals(self._read(GROWTHS)):  # a growth is recorded before it adds partitions
            message = "partitions were added to the topics meanwhile; nothing of the backup was kept"
            raise OperatorError(message, do="wait until `galatea migrate` has opened them, then: galatea backup")
        publication, cut = _newest(part / tables[PUBLICATIONS].path)
        manifest = Manifest(
            format=FORMAT,
            id=id_,
            product=self.product,
            schema=self.schema,
            created_at=began,
            publication=publication,
            cut=cut,
            kafka=self.kafka.cluster_id() if self.kafka else "",
            topics=topics,
            tables=tables,
            master=master,
            secrets_key=self.secrets_key,
        )
        write_manifest(part, manifest)
        step(total, total, "done")
        return manifest

    def _topics(self, positions: Path) -> dict[str, SavedTopic]:
        """Return the topics by name. The positions were read before, so they lie before the ends."""
        if self.kafka is None:
            return {}
        ids = self.kafka.ids(self.topics)
        found = {topic: SavedTopic(ids[topic], dict(self.kafka.end_offsets(topic))) for topic in sorted(ids)}
        for row in pq.read_table(positions).to_pylist():
            end = found[row["topic"]].ends.get(row["partition"], 0) if row["topic"] in found else 0
            if row["position"] > end:
                place = f"`{row['topic']}/{row['partition']}`"
                message = (
                    f"the archive has read {place} to {row['position']}, but it ends at {end}: it is a different log"
                )
                raise OperatorError(
                    message, do="see docs/how-to/disaster-recovery.md, then: galatea backup --without-offsets"
                )
        return found

    def _group(self, writer: "_Files", group: Group, step: Callable[[str], None]) -> dict[str, SavedFile]:
        """Write the tables of a group as they were at one moment, as far as the heads tell."""
        for _ in range(_TRIES):
            before = {head.name: self._read(head) for head in group.heads}
            found = {}
            for table in group.bodies:
                step(table.name)
                schema = self._schema(table)
                found[table.name] = writer.write(_place(table), schema, self.keyspace.read(table, schema))
            if all(before[head.name].equals(self._read(head)) for head in group.heads):
                for head in group.heads:
                    rows = before[head.name]
                    found[head.name] = writer.write(_place(head), rows.schema, rows.to_batches())
                return found
        names = ", ".join(f"`{head.name}`" for head in group.heads)
        message = f"{names} changed {_TRIES} times while they were read; no backup was written"
        raise OperatorError(message, do="run it again when fewer loads and rebuilds are running: galatea backup")

    def _read(self, table: KeptTable) -> pa.Table:
        schema = self._schema(table)
        return pa.Table.from_batches(self.keyspace.read(table, schema), schema)

    def _schema(self, table: KeptTable) -> pa.Schema:
        return arrow_schema(table, self.keyspace.columns(table.name))


@dataclass(frozen=True)
class _Files:
    """Writes the files of a backup, readable by their owner alone, and flushes them."""

    folder: Path

    def write(
        self, path: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]
    ) -> SavedFile:
        """Write a Parquet file, in place of one of an earlier try."""
        place, rows = self.folder / path, 0
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd") as parquet:
                for batch in batches:
                    rows += batch.num_rows
                    parquet.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        return SavedFile(path, rows, place.stat().st_size, checksum(place))


def _place(table: KeptTable) -> str:
    return f"{TABLES}/{table.name}.parquet"


def _newest(file: Path) -> tuple[int, datetime]:
    """Return the number and the cut of the newest publication, which is the current one: a switch adds one."""
    rows = pq.read_table(file, columns=["publication", "cut"])
    if not rows.num_rows:
        message = "the tables in Cassandra have no publication 0, so they are not complete"
        raise OperatorError(message, do="galatea migrate, then: galatea backup")
    number: int = pc.max(rows["publication"]).as_py()
    cut: datetime = rows.filter(pc.field("publication") == number)["cut"][0].as_py()
    return number, cut


def _flush(folder: Path) -> None:
    for each in (folder / TABLES, folder / MASTER, folder):
        fsync_path(each)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Write into this folder as the only one, and remove what a killed one has left behind. LeaseHeldError."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(root / ".lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another backup is being written to `{root}`"
            raise LeaseHeldError(message, do="wait for it to end, then run the command again") from error
        for left in root.glob(f".*{PART}"):
            shutil.rmtree(left)
        yield
    finally:
        os.close(lock)


def _not_written(root: Path, error: OSError) -> OperatorError:
    if error.errno in _NO_ROOM or _NO_SPACE in str(error):
        message = f"there is no room for the backup in `{root}`; nothing of it was kept"
        return DiskFullError(message, do="free some space there, or set GALATEA_BACKUP_DIR or --to to a larger disk")
    message = f"the backup cannot be written to `{root}` ({error.strerror or error}); nothing of it was kept"
    return OperatorError(message, do="correct the rights there, or set GALATEA_BACKUP_DIR or --to to another folder")
