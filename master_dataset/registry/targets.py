"""The targets of a tenant in Cassandra: what a store should reach on a business day, per metric.

A load writes all blocks of a new version, and then switches `target_sets` by compare-and-set. So readers see all of a
load or nothing of it, and of two loads at once, one fails. A block holds the targets of one store.
"""

import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from cassandra import ConsistencyLevel

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import BadFileError, CassandraUnavailableError, TargetsChangedError

if TYPE_CHECKING:
    from cassandra.cluster import Session

MOST_TARGETS = 1_000_000
"""Of one tenant."""
DIGITS = 6
"""Decimals of a target. Values are whole numbers of 10^-6."""
BUCKETS = 64
"""Partitions of a version, by the CRC of the store."""

StoreTargets = Mapping[str, Mapping[date, int]]
"""Metric and business day to the target in millionths; money in the major unit of the store's currency."""
Targets = Mapping[str, StoreTargets]
"""By store."""


def bucket_of(store: str) -> int:
    """Return the partition of a store."""
    return zlib.crc32(store.encode()) % BUCKETS


_BLOCK = msgspec.json.Decoder(dict[str, dict[date, int]])


def encode_block(targets: StoreTargets) -> bytes:
    """Encode the targets of a store."""
    ordered = {metric: dict(sorted(targets[metric].items())) for metric in sorted(targets)}
    return zlib.compress(msgspec.json.encode(ordered), 6)


def decode_block(block: bytes) -> StoreTargets:
    """Decode the targets of a store."""
    return _BLOCK.decode(zlib.decompress(block))


@dataclass(frozen=True)
class TargetSet:
    """The current version of a tenant's targets."""

    tenant: str
    version: str
    count: int
    loaded_at: datetime


_ABANDONED = timedelta(days=1)
"""After this time, the blocks of a load that never switched are removed."""
_COLUMNS = "tenant, version, count, loaded_at, previous"


class TargetTables:
    """Loads targets. All methods raise CassandraUnavailableError."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._read = session.prepare(f"SELECT {_COLUMNS} FROM target_sets WHERE tenant = ?")  # noqa: S608 - our own columns
        self._blocks = session.prepare(
            "SELECT store, block FROM target_blocks WHERE tenant = ? AND version = ? AND bucket = ?"
        )
        self._write = session.prepare(
            "INSERT INTO target_blocks (tenant, version, bucket, store, block) VALUES (?, ?, ?, ?, ?)"
        )
        self._remove = session.prepare("DELETE FROM target_blocks WHERE tenant = ? AND version = ? AND bucket = ?")
        self._first = session.prepare(f"INSERT INTO target_sets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS")  # noqa: S608 - our own columns
        self._switch = session.prepare(
            "UPDATE target_sets SET version = ?, count = ?, loaded_at = ?, previous = ? WHERE tenant = ? IF version = ?"
        )

    def load(self, tenant: str, targets: Targets, *, replace: bool) -> TargetSet:
        """Make targets part of those of the tenant, all or none.

        Args:
            tenant: Whose targets they are.
            targets: What was read. Each replaces the former one of the same store, metric and day.
            replace: Remove all former targets. Otherwise the others stay.

        Returns:
            The new version, which readers see within a second.

        Raises:
            BadFileError: There would be too many targets.
            TargetsChangedError: Another load was faster.
        """
        try:
            return self._load(tenant, targets, replace=replace)
        except CASSANDRA_UNAVAILABLE as error:
            message = f"Cassandra did not answer: {type(error).__name__}."
            raise CassandraUnavailableError(message, do="Load the targets again; it is safe to repeat.") from error

    def all(self, tenant: str) -> tuple[TargetSet | None, Iterator[tuple[str, StoreTargets]]]:
        """Return the current version, None if none was ever loaded, and its targets by store, in no fixed order."""
        row = self._session.execute(self._read, (tenant,)).one()
        if row is None:
            return None, iter(())
        current = TargetSet(tenant, row.version, row.count, row.loaded_at.replace(tzinfo=UTC))
        return current, self._of(tenant, row.version)

    def _load(self, tenant: str, targets: Targets, *, replace: bool) -> TargetSet:
        row = self._session.execute(self._read, (tenant,)).one()
        before = row.version if row else ""
        version = f"{time.time_ns() // 10**6:013d}-{uuid.uuid4().hex}"
        try:
            count = self._stage(tenant, version, targets, "" if replace else before)
        except BaseException:
            self._remove_version(tenant, version)
            raise
        new = TargetSet(tenant, version, count, datetime.now(UTC))
        self._put(new, before)
        self._remove_old(tenant, {version, before}, row.previous if row else "")
        return new

    def _stage(self, tenant: str, version: str, targets: Targets, kept: str) -> int:
        """Write the blocks of a new version, and count its targets."""
        merged: dict[str, StoreTargets] = dict(targets)
        for store, former in self._of(tenant, kept) if kept else ():
            own = targets.get(store, {})
            metrics = {*former, *own}
            merged[store] = {name: {**former.get(name, {}), **own.get(name, {})} for name in metrics}
        count = sum(len(days) for of_store in merged.values() for days in of_store.values())
        if count > MOST_TARGETS:
            message = f"The tenant would have {count:,} targets, more than {MOST_TARGETS:,}."
            raise BadFileError(message, do="Replace all targets by those still needed.", code="too_many_targets")
        for store, of_store in merged.items():
            self._session.execute(self._write, (tenant, version, bucket_of(store), store, encode_block(of_store)))
        return count

    def _of(self, tenant: str, version: str) -> Iterator[tuple[str, StoreTargets]]:
        for bucket in range(BUCKETS):
            for row in self._session.execute(self._blocks, (tenant, version, bucket)):
                yield row.store, decode_block(row.block)

    def _put(self, new: TargetSet, before: str) -> None:
        fields = (new.version, new.count, new.loaded_at)
        if before:
            switch = self._switch.bind((*fields, before, new.tenant, before))
        else:
            switch = self._first.bind((new.tenant, *fields, ""))
        try:
            applied = self._session.execute(switch).one().applied
        except CASSANDRA_UNAVAILABLE:  # whether it was written is unknown; a serial read settles it
            applied = False
        if not applied:
            settle = self._session.prepare("SELECT version FROM target_sets WHERE tenant = ?")
            settle.consistency_level = ConsistencyLevel.SERIAL
            row = self._session.execute(settle, (new.tenant,)).one()
            if row is None or row.version != new.version:
                self._remove_version(new.tenant, new.version)
                message = f"Another load has changed the targets of tenant `{new.tenant}` in the meantime."
                raise TargetsChangedError(message, do="Load the targets again; nothing of this load was kept.")

    def _remove_old(self, tenant: str, kept: set[str], previous: str) -> None:
        """Remove the version before the one just replaced, which readers may still use, and abandoned ones."""
        oldest = f"{int((datetime.now(UTC) - _ABANDONED).timestamp() * 1000):013d}"
        rows: Any = self._session.execute("SELECT DISTINCT tenant, version, bucket FROM target_blocks")
        old = {row.version for row in rows if row.tenant == tenant and row.version < oldest} - kept
        for version in old | ({previous} - {""}):
            self._remove_version(tenant, version)

    def _remove_version(self, tenant: str, version: str) -> None:
        for bucket in range(BUCKETS):
            self._session.execute(self._remove, (tenant, version, bucket))
