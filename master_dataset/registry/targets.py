"""The targets of a tenant in Cassandra: what a store should reach on a business day, per metric.

They are loaded in versions (`registry.versions`). A block holds the targets of one store.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from master_dataset.errors import BadFileError, TargetsChangedError
from master_dataset.registry.versions import VersionedTables

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


class TargetTables(VersionedTables):
    """Loads targets. All methods raise CassandraUnavailableError."""

    kind, versions, counts = "targets", "target_sets", ("count",)
    blocks, partition, changed = "target_blocks", ("tenant", "version", "bucket"), TargetsChangedError

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        super().__init__(session)
        self._blocks = session.prepare(
            "SELECT store, block FROM target_blocks WHERE tenant = ? AND version = ? AND bucket = ?"
        )
        self._write = session.prepare(
            "INSERT INTO target_blocks (tenant, version, bucket, store, block) VALUES (?, ?, ?, ?, ?)"
        )
        self._remove = session.prepare("DELETE FROM target_blocks WHERE tenant = ? AND version = ? AND bucket = ?")

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

        def stage(version: str, before: Any) -> Sequence[int]:  # noqa: ANN401 - a row of the driver
            kept = "" if replace or before is None else before.version
            return (self._stage(tenant, version, targets, kept),)

        loaded = self.load_version(tenant, stage)
        [count] = loaded.counts
        return TargetSet(tenant, loaded.version, count, loaded.loaded_at)

    def all(self, tenant: str) -> tuple[TargetSet | None, Iterator[tuple[str, StoreTargets]]]:
        """Return the current version, None if none was ever loaded, and its targets by store, in no fixed order."""
        row = self.current(tenant)
        if row is None:
            return None, iter(())
        current = TargetSet(tenant, row.version, row.count, row.loaded_at.replace(tzinfo=UTC))
        return current, self._of(tenant, row.version)

    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all blocks of a version."""
        for bucket in range(BUCKETS):
            self._session.execute(self._remove, (tenant, version, bucket))

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
