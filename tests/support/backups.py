"""A deployment in memory, to be backed up and restored: tables, topics, and a master dataset in a folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from deploy.backup.manifest import Manifest
from deploy.backup.restore import Restore, RestorePlan
from deploy.backup.tables import KeptTable
from deploy.backup.writer import BackupWriter
from master_dataset.secrets_key import SecretsKey
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC
from views.control.publication import Pointer, Publication
from views.core.cut import UNIX_EPOCH

TOPIC = "pos_transactions"
TOPICS = (TOPIC, ALERTS_TOPIC, CORRECTIONS_TOPIC)
SCHEMA = "020_seen_titles.cql"
AT, CUT = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 11, 55, tzinfo=UTC)
Rows = dict[str, list[dict[str, Any]]]

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "registry_versions": {"name": "text", "version": "bigint"},
    "stores": {"id": "text", "body": "text"},
    "store_sets": {"tenant": "text", "version": "text"},
    "registered_stores": {"tenant": "text", "version": "text", "id": "text", "body": "text"},
    "product_masters": {"tenant": "text", "version": "text"},
    "product_blocks": {"tenant": "text", "version": "text", "block": "blob"},
    "target_sets": {"tenant": "text", "version": "text"},
    "target_blocks": {"tenant": "text", "version": "text", "block": "blob"},
    "floor_plans": {"store": "text", "tenant": "text", "image": "blob"},
    "api_keys": {
        "id": "text",
        "digest": "blob",
        "tenant": "text",
        "scopes": "set<text>",
        "name": "text",
        "created_at": "timestamp",
        "expires_at": "timestamp",
        "revoked_at": "timestamp",
        "mac": "blob",
    },
    "partition_growths": {"partitions": "int", "is_open": "boolean"},
    "alert_versions": {"id": "text", "number": "int"},
    "annotations": {"id": "text", "first_day": "date", "stores": "set<text>"},
    "saved_views": {"id": "text", "address": "text"},
    "webhook_endpoints": {
        "id": "text",
        "tenant": "text",
        "secret": "text",
        "sealed_secret": "text",
        "begun_at": "timestamp",
    },
    "webhook_skips": {"id": "text", "topic": "text", "asked_at": "timestamp"},
    "seen_titles": {"sku": "text", "title": "text"},
    "publications": {
        "publication": "bigint",
        "cut": "timestamp",
        "manifest": "text",
        "definitions": "map<text, text>",
        "collected_at": "timestamp",
    },
    "ledgers": {"subject": "text", "totals": "text"},
    "corrections": {"subject": "text", "day": "date", "block": "text"},
    "recomputes": {
        "id": "text",
        "state": "text",
        "plan": "text",
        "portions": "map<int, text>",
        "problem": "text",
    },
    "alert_audits": {"series": "text", "publication": "bigint", "told": "text"},
    "archive_positions": {"topic": "text", "partition": "int", "position": "bigint"},
    "alerts_kept": {"partition": "int", "position": "bigint", "complete_from": "timestamp"},
    "alert_records": {"alert_id": "text", "body": "text"},
    "alerts_told": {"alert_id": "text", "body": "text"},
    "alert_days": {"sight": "text", "day": "date"},
    "alerts_open_by_hour": {"alert_id": "text", "body": "text"},
    "alert_open_hours": {"sight": "text", "hour": "timestamp"},
    "alerts_open_moved": {"bucket": "int", "moved_at": "timestamp"},
    "lag": {"reader": "text"},
}


class MemoryKeyspace:
    """Implements `Keyspace`. Rows are replaced by their first column, and two columns if it is a topic."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.rows: Rows = {"publications": [row_of("publications", publication=0, cut=UNIX_EPOCH, manifest="")]}
        self.rows |= rows or {}
        self.now = Pointer(0, UNIX_EPOCH, "", 0, {})
        self.published: dict[int, Publication] = {}
        self.mark: str | None = None
        self.hidden = ""
        """A table of which a deletion hides a row."""

    def tables(self) -> Sequence[str]:
        return [*COLUMNS, "migrations"]

    def columns(self, table: str) -> Mapping[str, str]:
        return COLUMNS.get(table, {})

    def read(self, table: KeptTable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for row in self.rows.get(table.name, []):
            yield pa.RecordBatch.from_pylist([row], schema=schema)

    def write(self, table: KeptTable, rows: pa.RecordBatch) -> None:
        held = self.rows.setdefault(table.name, [])
        for row in rows.to_pylist():
            held[:] = [each for each in held if _key(each) != _key(row)]
            held.append(row)

    def count(self, table: str) -> int:
        return len(self.rows.get(table, [])) - (table == self.hidden)

    def holds_rows(self, table: str) -> bool:
        return bool(self.rows.get(table))

    def pointer(self) -> Pointer:
        return self.now

    def publication(self, number: int) -> Publication | None:
        return self.published.get(number)

    def publish(self, seen: Pointer, new: Publication) -> bool:
        if seen != self.now:
            return False
        self.now = Pointer(new.number, new.cut, new.manifest, new.generation, new.definitions)
        self.published[new.number] = new
        return True

    def unfinished_restore(self) -> str | None:
        return self.mark

    def begin_restore(self, backup: str) -> bool:
        if self.mark is not None:
            return False
        self.mark = backup
        return True

    def end_restore(self, backup: str) -> None:
        assert self.mark == backup
        self.mark = None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = list(row)
    return tuple(row[name] for name in names[: 2 if names[0] == "topic" else 1])


@dataclass
class MemoryKafka:
    """Implements `KafkaState`. Every topic has the same partitions."""

    known: dict[str, str] = field(default_factory=lambda: {topic: f"id of {topic}" for topic in TOPICS})
    first: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    ends: dict[int, int] = field(default_factory=lambda: {0: 100, 1: 100})

    def cluster_id(self) -> str:
        return "cluster"

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        return {topic: self.known[topic] for topic in topics if topic in self.known}

    def first_offsets(self, topic: str) -> Mapping[int, int]:
        assert topic in self.known
        return self.first

    def end_offsets(self, topic: str) -> Mapping[int, int]:
        assert topic in self.known
        return self.ends


def row_of(table: str, **values: Any) -> dict[str, Any]:
    """A row with every column of the table; null where no value is given."""
    return {name: values.get(name) for name in COLUMNS[table]} | values


def filled() -> Rows:
    """A few rows: one publication, a recompute under way, and what has offsets."""
    return {
        "publications": [
            row_of("publications", publication=1, cut=CUT, manifest="run-1", definitions=[("sales", "abc")]),
            row_of("publications", publication=0, cut=UNIX_EPOCH, manifest=""),
        ],
        "stores": [row_of("stores", id="1", body="{}")],
        "floor_plans": [row_of("floor_plans", tenant="a", store=str(n), image=bytes(9)) for n in range(20)],
        "api_keys": [
            row_of("api_keys", id="k", digest=b"d", tenant="*", scopes=["operate", "read"], created_at=AT, mac=b"m")
        ],
        "archive_positions": [
            {"topic": TOPIC, "partition": number, "position": 40, "_written_at": 40} for number in (0, 1)
        ],
        "alerts_kept": [row_of("alerts_kept", partition=0, position=7)],
        "webhook_endpoints": [row_of("webhook_endpoints", id="w", tenant="a", begun_at=AT)],
        "webhook_skips": [row_of("webhook_skips", id="w", topic=ALERTS_TOPIC, asked_at=AT, _expires_s=3600)],
        "alert_audits": [
            row_of("alert_audits", series="galatea", publication=1, told='{"late": 0, "asked": {"0": 9}}')
        ],
        "recomputes": [
            row_of("recomputes", id="open", state="computing", plan='{"number": 3}', portions=[(1, "{}")]),
            row_of("recomputes", id="done", state="published", plan='{"number": 1}', portions=[(1, "{}")]),
        ],
        "seen_titles": [row_of("seen_titles", sku="858", title="Milk", _written_at=1_772_366_400_000_000)],
    }


@dataclass
class MemoryDeployment:
    """A deployment in a folder; `now` is its clock."""

    folder: Path
    keyspace: MemoryKeyspace = field(default_factory=lambda: MemoryKeyspace(filled()))
    kafka: MemoryKafka = field(default_factory=MemoryKafka)
    now: datetime = AT
    secrets_key: SecretsKey = field(default_factory=lambda: SecretsKey("k" * 43))
    signs: bool = True
    without_key: bool = False

    def __post_init__(self) -> None:
        if not (self.folder / "master").exists():
            write_deltalake(self.folder / "master" / TOPIC, pa.table({"n": [1, 2]}))

    @property
    def master(self) -> str:
        return str(self.folder / "master")

    @property
    def backups(self) -> Path:
        return self.folder / "backups"

    def back_up(self, *, with_offsets: bool = True) -> tuple[Path, Manifest]:
        kafka = self.kafka if with_offsets else None
        own = self.secrets_key.fingerprint if self.signs else ""
        writer = BackupWriter(self.keyspace, kafka, TOPICS, self.master, "0.1", SCHEMA, lambda: self.now, own)
        return writer.write(self.backups, lambda *_: None)

    def restoring(self, backup: Path, schema: str = SCHEMA) -> Restore:
        checkpoints = str(self.folder / "checkpoints")
        return Restore(
            backup,
            self.keyspace,
            self.kafka,
            self.master,
            checkpoints,
            schema,
            "operator",
            lambda: self.now,
            self.secrets_key,
            without_key=self.without_key,
        )

    def restore(self, backup: Path, *, schema: str = SCHEMA) -> RestorePlan:
        work = self.restoring(backup, schema)
        plan = work.plan(lambda *_: None)
        work.run(plan, lambda *_: None)
        return plan
