"""Restores a backup into an empty cluster.

    check      files, tables, topics and master dataset: nothing is changed until all of it is right
    mark       from here on no process starts, and only this backup may be restored
    write      the kept tables; rows are written by key, so a restore that was killed is run again
    publish    a publication without cells and speed rows: queries are refused until the next rebuild, never incomplete

What is left out, or changed on the way, and why:

    cells                they are computed again; so publications count as collected: listed, but not to be asked
    generations          a new one begins at the published cut, and only a rebuild with its definitions makes it count
    former tables        of an older release that kept what is computed, or made by people, again
    unfinished           recomputes: their cells are gone, so that a finished portion would be missing
    offsets              of a topic that was created again: they would name other records, or none
    audit of alerts      of the next publication, if the topic of alerts was created again
    checkpoints          of the streams: they may be ahead of a master dataset that was put back
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from deploy.backup.manifest import DAMAGED, MANIFEST, Manifest, SavedFile, check_file, read_manifest, same_topics
from deploy.backup.master import TableVersion, check_table
from deploy.backup.rows import EXPIRES, Keyspace, arrow_schema
from deploy.backup.tables import (
    ALERT_POSITIONS,
    ARCHIVE_POSITIONS,
    AUDITS,
    COMPUTED,
    ENDPOINTS,
    GROWTHS,
    PUBLICATIONS,
    RECOMPUTES,
    SECRETS_KEY,
    SKIPS,
    KeptTable,
    kept_tables,
)
from deploy.backup.writer import KafkaState
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import BadFileError, CassandraUnavailableError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.secrets_key import SecretsKey
from master_dataset.storage import delete_folder, exists
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.publication import Pointer, Publication, RunStats
from views.control.recompute import DONE, PlanNumber, Problem, read_stored_plan

MIGRATIONS, LEASES = "migrations", "leases"
_ADDED = (pa.field("mac", pa.binary()), pa.field("sealed_secret", pa.string()))
"""Columns that backups of former releases do not have, and that are filled."""
_STREAMS = ("archive", "speed")
_MASTER = "master/"
_REQUESTS_READ = "asked"
"""The key in `alert_audits.told` of the offsets up to which requests were read."""
_LOST = Problem(
    "restored", "Cassandra was restored from a backup, without the cells of this recompute", "galatea rebuild"
)

Row = dict[str, Any]
Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Gap:
    """Records that a topic no longer has, from the position in the backup on."""

    topic: str
    partition: int
    position: int
    first: int

    def __str__(self) -> str:
        """The lost records, for a message."""
        return f"`{self.topic}/{self.partition}` from {self.position} to {self.first - 1}"


@dataclass(frozen=True)
class RestorePlan:
    """What a restore will do.

    Attributes:
        folder: The backup.
        manifest: What it holds.
        same: The topics that still are what they were.
        replaced: The topics that were created again, or do not exist.
        gaps: What topics that are the same no longer have.
        checkpoints: Folders or URIs to delete.
        is_resumed: Whether an earlier attempt was interrupted.
        versions: Each table of the master dataset with its version in the backup and now.
    """

    folder: Path
    manifest: Manifest
    same: frozenset[str]
    replaced: Sequence[str]
    gaps: Sequence[Gap]
    checkpoints: Sequence[str]
    is_resumed: bool
    versions: Mapping[str, tuple[int, int]]

    @property
    def publication(self) -> int:
        """The number of the publication that is made."""
        return self.manifest.publication + 1

    def shown(self) -> Iterator[tuple[str, str]]:
        """Say what will be done: the system, and a sentence without its subject."""
        found = self.manifest
        if self.is_resumed:
            yield "cassandra", "go on with a restore of this backup that was interrupted"
        kept = {name: saved for name, saved in found.tables.items() if name not in COMPUTED}
        rows = sum(saved.rows for saved in kept.values())
        yield "cassandra", f"write {rows:,} rows of {found.created_at:%F %T} UTC into {len(kept)} tables"
        if left_out := sorted(found.tables.keys() & COMPUTED.keys()):
            yield (
                "cassandra",
                f"leave out what an older release kept, and this one does not restore: {_names(left_out)}",
            )
        if empty := sorted({table.name for table in kept_tables()} - kept.keys()):
            yield "cassandra", f"leave tables empty that the release of the backup did not have: {_names(empty)}"
        if not found.secrets_key:
            yield "cassandra", "refuse the API keys of the backup, which has no signatures, until: galatea keys sign ID"
        if self.same:
            yield "kafka", f"continue {len(self.same)} topics at the offsets of the backup"
        if self.replaced:
            names = _names(self.replaced)
            yield "kafka", f"begin with the first record of topics that are not those of the backup: {names}"
        if not found.topics:
            yield "kafka", "begin with the first record of every topic: the backup was made without offsets"
        for gap in self.gaps:
            yield "kafka", f"begin after records that are gone, {gap}: they count if the master dataset has them"
        ahead = sum(now > then for then, now in self.versions.values())
        yield "master", f"use {len(self.versions)} tables as they are; {ahead} have grown since the backup"
        for uri in self.checkpoints:
            yield "disk", f"delete `{uri}`: the streams continue at the offsets above"
        yield "cassandra", f"make publication {self.publication}, without cells: queries are refused until the rebuild"


@dataclass(frozen=True)
class Restore:
    """A restore of one backup into one deployment.

    Attributes:
        folder: The backup.
        keyspace: The tables in Cassandra.
        kafka: The topics.
        master_uri: Root of the master dataset.
        checkpoint_uri: Root of the checkpoints.
        schema: The last file of tables that this release knows.
        by: Who does it.
        now: The time, UTC.
        secrets_key: The key of this deployment. With it, webhook secrets of a former release are encrypted.
        without_key: Whether the key of the backup is lost: its keys then have to be signed one by one, and its webhooks
            need new secrets.
        renew: Called again and again while rows are written. It raises if another process may be restoring, too.
    """

    folder: Path
    keyspace: Keyspace
    kafka: KafkaState
    master_uri: str
    checkpoint_uri: str
    schema: str
    by: str
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    secrets_key: SecretsKey = field(default_factory=lambda: SecretsKey(SecretsKey.new_text()))
    without_key: bool = False
    renew: Callable[[], None] = lambda: None

    def plan(self, step: Step) -> RestorePlan:
        """Check everything, and change nothing.

        Args:
            step: Called with what is checked, of how many.

        Raises:
            BadFileError: The backup is incomplete or damaged.
            OperatorError: The backup is of a newer release; tables hold rows; or the master dataset is another one, or
                older than the backup.
            MasterFileLostError: The master dataset lacks data files.
            BrokerUnavailableError, CassandraUnavailableError: They do not answer.
        """
        try:
            return self._plan(step)
        except CASSANDRA_UNAVAILABLE as error:
            raise self._unavailable(error) from error

    def run(self, plan: RestorePlan, step: Step) -> None:
        """Restore. It can be killed anywhere and run again.

        Args:
            plan: What `plan` has returned.
            step: Called with the tables that are done, of how many, and the next one.

        Raises:
            OperatorError: Another restore has begun, rows are missing afterwards, a checkpoint cannot be deleted, or
                something was published.
            CassandraUnavailableError: Cassandra did not answer; run it again.
        """
        try:
            self._run(plan, step)
        except CASSANDRA_UNAVAILABLE as error:
            raise self._unavailable(error) from error

    def _plan(self, step: Step) -> RestorePlan:
        manifest = read_manifest(self.folder)
        if manifest.schema > self.schema:
            message = f"the backup was made with tables up to `{manifest.schema}`, which this release does not know"
            raise OperatorError(message, do=f"restore it with release {manifest.product} or a newer one")
        self._check_key(manifest)
        is_resumed = self._check_cluster(manifest)
        files = list(manifest.files)
        for number, each in enumerate(files):
            step(number, len(files), f"checking {each.path}")
            check_file(self.folder, each)
        self._check_columns(manifest)
        versions = {}
        for name, saved in manifest.master.items():
            step(len(files), len(files), f"checking {_MASTER}{name}")
            recorded = TableVersion(saved.id, saved.version, self._sizes(saved.listed))
            versions[name] = (saved.version, check_table(f"{self.master_uri}/{name}", recorded).version)
        same = same_topics(manifest, self.kafka.ids(list(manifest.topics)))
        self._check_partitions(manifest, same)
        self._check_ends(manifest, same)
        return RestorePlan(
            folder=self.folder,
            manifest=manifest,
            same=frozenset(same),
            replaced=sorted(manifest.topics.keys() - same),
            gaps=list(self._gaps(manifest, same)),
            checkpoints=self._checkpoints(),
            is_resumed=is_resumed,
            versions=versions,
        )

    def _check_key(self, manifest: Manifest) -> None:
        """Refuse a backup whose keys would be none here, and whose webhook secrets could not be decrypted."""
        own, saved = self.secrets_key.fingerprint, manifest.secrets_key
        if saved and saved != own and not self.without_key:
            message = f"the backup belongs to another key file ({saved}) than that of this home ({own})"
            do = "put the one that was kept apart there, then: galatea migrate --new-secrets-key, galatea restore"
            raise OperatorError(message, do=f"{do}. If it is lost: galatea restore --without-key")

    def _check_cluster(self, manifest: Manifest) -> bool:
        """Refuse tables that hold rows. Returns whether a restore of this backup was interrupted."""
        unfinished = self.keyspace.unfinished_restore()
        if unfinished == manifest.id:
            return True
        if unfinished is not None:
            message = f"the backup `{unfinished}` is being restored, or that was interrupted"
            raise OperatorError(message, do="restore that one to the end, or begin with an empty Cassandra")
        self._refuse_rows()
        return False

    def _refuse_rows(self) -> None:
        held = [name for name in self.keyspace.tables() if name not in {MIGRATIONS, PUBLICATIONS, SECRETS_KEY, LEASES}]
        held = [name for name in held if self.keyspace.holds_rows(name)]
        pointer = self.keyspace.pointer()
        if pointer.publication or pointer.generation or self.keyspace.count(PUBLICATIONS) > 1:
            held.append(PUBLICATIONS)
        if held:
            message = f"Cassandra is not empty, but has rows in {_names(sorted(held))}; nothing was changed"
            do = "stop every process of Galatea, begin with an empty Cassandra, then: galatea migrate, galatea restore"
            raise OperatorError(message, do=do)

    def _check_columns(self, manifest: Manifest) -> None:
        """Refuse rows that the tables of this release cannot take."""
        known = {table.name: table for table in kept_tables()}
        for name, saved in manifest.tables.items():
            if name in COMPUTED:
                continue
            columns = self.keyspace.columns(name) if name in known else {}
            wanted = arrow_schema(known[name], columns) if columns else pa.schema([])
            for column in pq.read_schema(self.folder / saved.path):
                if column.name not in wanted.names or wanted.field(column.name).type != column.type:
                    message = f"the table `{name}` of this release has no column `{column.name}` as in the backup"
                    raise OperatorError(message, do=f"restore it with release {manifest.product}, then upgrade")

    def _check_partitions(self, manifest: Manifest, same: set[str]) -> None:
        """Refuse topics to which partitions were added since: when they opened is not in the backup."""
        saved_growths = manifest.tables.get(GROWTHS.name)
        rows = pq.read_table(self.folder / saved_growths.path).to_pylist() if saved_growths else []
        if same and any(not row["is_open"] for row in rows):
            message = "the backup was made while partitions were added"
            raise OperatorError(message, do="restore a backup that was made before or after that")
        for topic in sorted(same):
            found, saved = len(self.kafka.end_offsets(topic)), len(manifest.topics[topic].ends)
            if found > saved:
                message = f"`{topic}` has {found} partitions, and had {saved} when the backup was made"
                raise OperatorError(message, do="restore a backup that was made after partitions had been added")

    def _check_ends(self, manifest: Manifest, same: set[str]) -> None:
        """Refuse positions beyond the end of a topic: the streams could not continue there."""
        ends = {topic: self.kafka.end_offsets(topic) for topic in sorted(same)}
        for row in self._positions(manifest):
            topic, partition, position = row["topic"], row["partition"], row["position"]
            end = ends.get(topic, {}).get(partition, position)
            if end < position:
                message = (
                    f"`{topic}/{partition}` ends at {end}, and the archive of the backup has read it to {position}: "
                    "it is a different log, or it has lost records"
                )
                raise OperatorError(message, do="restore the broker's log, or see docs/how-to/disaster-recovery.md")

    def _sizes(self, listed: SavedFile) -> Mapping[str, int]:
        rows = pq.read_table(self.folder / listed.path)
        return dict(zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True))

    def _gaps(self, manifest: Manifest, same: set[str]) -> Iterator[Gap]:
        first = {topic: self.kafka.first_offsets(topic) for topic in sorted(same)}
        for row in self._positions(manifest):
            begins = first.get(row["topic"], {}).get(row["partition"], 0)
            if row["position"] < begins:
                yield Gap(row["topic"], row["partition"], row["position"], begins)

    def _positions(self, manifest: Manifest) -> Sequence[Row]:
        """Up to where the archive had read. BadFileError if the backup does not say it."""
        saved = manifest.tables.get(ARCHIVE_POSITIONS)
        if saved is None:
            message = f"`{self.folder / MANIFEST}` is damaged: it lacks the table `{ARCHIVE_POSITIONS}`"
            raise BadFileError(message, do=DAMAGED)
        found: list[Row] = pq.read_table(self.folder / saved.path).to_pylist()
        return found

    def _checkpoints(self) -> Sequence[str]:
        return [uri for name in _STREAMS if exists(uri := f"{self.checkpoint_uri}/{name}")]

    def _run(self, plan: RestorePlan, step: Step) -> None:
        manifest = plan.manifest
        if not plan.is_resumed:
            self._begin(manifest)
        elif self.keyspace.unfinished_restore() != manifest.id:
            raise OperatorError("the restore has been finished by another process", do="galatea status")
        failpoint(Failpoint.RESTORE_BEGUN)
        tables = [table for table in kept_tables() if table.name in manifest.tables]
        for number, table in enumerate(tables):
            step(number, len(tables), table.name)
            self._write_table(plan, table)
            failpoint(Failpoint.RESTORE_TABLE)
        for uri in plan.checkpoints:
            self.renew()
            _delete(uri)
        self.renew()
        self._publish(plan)
        failpoint(Failpoint.RESTORE_PUBLISHED)
        self.keyspace.end_restore(manifest.id)
        step(len(tables), len(tables), "done")

    def _begin(self, manifest: Manifest) -> None:
        """Write the mark. OperatorError if another restore has begun, or has ended since everything was checked."""
        self._refuse_rows()
        if not self.keyspace.begin_restore(manifest.id):
            raise OperatorError("another restore has just begun", do="wait for it to end: galatea restore shows it")

    def _write_table(self, plan: RestorePlan, table: KeptTable) -> None:
        """Write the rows of a table, and count them: rows that a deletion hides would be missing unseen."""
        written = 0
        change = self._changes(plan).get(table.name)
        with pq.ParquetFile(self.folder / plan.manifest.tables[table.name].path) as file:
            for batch in file.iter_batches(table.rows_at_once):
                self.renew()
                rows = _changed(batch, change) if change else batch
                if rows.num_rows:
                    self.keyspace.write(table, rows)
                    written += rows.num_rows
        if (found := self.keyspace.count(table.name)) < written:
            message = f"the table `{table.name}` has {found:,} of {written:,} rows after they were written"
            raise OperatorError(message, do="begin with an empty Cassandra, then: galatea migrate, galatea restore")

    def _changes(self, plan: RestorePlan) -> Mapping[str, Callable[[Row], Row | None]]:
        """By table, what is done to its rows. None leaves a row out."""
        same, gone = plan.same, {(each.topic, each.partition) for each in plan.gaps}
        now, passed = self.now(), self.now() - plan.manifest.created_at

        def publication(row: Row) -> Row:
            is_named = row["manifest"] and row["collected_at"] is None
            return row | {"collected_at": now} if is_named else row

        def archived(row: Row) -> Row | None:
            is_kept = row["topic"] in same and (row["topic"], row["partition"]) not in gone
            return row if is_kept else None

        def alert_position(row: Row) -> Row:
            return row if ALERTS_TOPIC in same else row | {"position": 0, "complete_from": now}

        def endpoint(row: Row) -> Row:
            if row.get("secret"):
                sealed = self.secrets_key.seal(row["secret"], row["id"], row["tenant"])
                row |= {"sealed_secret": sealed, "secret": None}
            return row if ALERTS_TOPIC in same else row | {"begun_at": None}

        def audit(row: Row) -> Row:
            summary = row["told"] if CORRECTIONS_TOPIC in same else _without_offsets(row["told"])
            # With the topic, what was emitted is unknown: the next audit would emit all of the last days again.
            audited = row["publication"] if ALERTS_TOPIC in same else plan.publication + 1
            return row | {"told": summary, "publication": audited}

        def skip(row: Row) -> Row | None:
            left = (row[EXPIRES] or 0) - passed // timedelta(seconds=1)
            return row | {EXPIRES: left} if row["topic"] in same and left > 0 else None

        return {
            PUBLICATIONS: publication,
            ARCHIVE_POSITIONS: archived,
            ALERT_POSITIONS: alert_position,
            ENDPOINTS: endpoint,
            AUDITS: audit,
            SKIPS: skip,
            RECOMPUTES: _ended,
        }

    def _publish(self, plan: RestorePlan) -> None:
        """Continue the numbers of publications with one that covers nothing.

        Its cut is that of the backup, so that the next generation of the speed layer need not read the whole topic.
        """
        pointer = self.keyspace.pointer()
        if self._is_ours(pointer, plan):
            return
        found = plan.manifest
        new = Publication(
            number=plan.publication,
            cut=found.cut,
            manifest="",
            generation=0,
            published_at=self.now(),
            published_by=self.by,
            why=f"the backup of {found.created_at:%F %T} UTC was restored; nothing is published until the next rebuild",
            stats=RunStats(backup=found.id),
        )
        if pointer.publication or not (
            self.keyspace.publish(pointer, new) or self._is_ours(self.keyspace.pointer(), plan)
        ):
            message = "something was published while the backup was being restored"
            do = "stop every process of Galatea, begin with an empty Cassandra, then: galatea migrate, galatea restore"
            raise OperatorError(message, do=do)

    def _is_ours(self, pointer: Pointer, plan: RestorePlan) -> bool:
        """Whether an earlier attempt, or a first try of the driver, has published already."""
        if pointer.publication != plan.publication:
            return False
        entry = self.keyspace.publication(pointer.publication)
        return entry is not None and entry.stats.backup == plan.manifest.id

    def _unavailable(self, error: Exception) -> CassandraUnavailableError:
        message = f"Cassandra did not answer in time ({type(error).__name__})"
        return CassandraUnavailableError(message, do=f"galatea status, then again: galatea restore {self.folder}")


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _delete(checkpoint: str) -> None:
    """Delete a checkpoint. One that stays could be ahead of the master dataset, and its stream would skip events."""
    try:
        delete_folder(checkpoint)
    except OSError as error:
        message = f"the checkpoint `{checkpoint}` cannot be deleted ({error.strerror or error})"
        raise OperatorError(message, do="delete it, then run the same command again") from error


def _changed(batch: pa.RecordBatch, change: Callable[[Row], Row | None]) -> pa.RecordBatch:
    rows = [row for each in batch.to_pylist() if (row := change(each)) is not None]
    new = [field for field in _ADDED if field.name not in batch.schema.names and any(field.name in row for row in rows)]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([*batch.schema, *new]))


def _ended(row: Row) -> Row:
    """End a recompute that could be resumed. The number of its plan stays, so that the next one gets another name."""
    if row["state"] in DONE:
        return row
    plan = read_stored_plan(row["plan"])
    number = msgspec.json.encode(PlanNumber(plan.number)).decode() if plan else None
    problem = row["problem"] if row["state"] == "failed" else msgspec.json.encode(_LOST).decode()
    return row | {"state": "failed", "plan": number, "portions": None, "problem": problem}


def _without_offsets(summary: str | None) -> str | None:
    if not summary:
        return summary
    found: dict[str, object] = orjson.loads(summary)
    found.pop(_REQUESTS_READ, None)
    return orjson.dumps(found).decode()
