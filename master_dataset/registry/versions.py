"""What is loaded from files, in versions: a load writes a new one beside the current one, and then switches to it.

The row of a tenant names its current version, and is switched by compare-and-set. So readers see all of a load or
nothing of it, and of two loads at once, one fails and leaves nothing behind.
"""

# ruff: noqa: S608 - names of our own tables and columns

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cassandra import ConsistencyLevel

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError, RequestError

if TYPE_CHECKING:
    from cassandra.cluster import Session

_ABANDONED = timedelta(days=1)
"""After this time, the blocks of a load that never switched are removed."""


class LoadedVersion(NamedTuple):
    """A version that is current now. `counts`: the values of its own columns."""

    version: str
    counts: Sequence[int]
    loaded_at: datetime


Stage = Callable[[str, Any], Sequence[int]]
"""Writes the blocks of a new version beside those of the former row (None: there is none); returns its counts."""


class VersionedTables(ABC):
    """The tables of one kind of data. All methods raise CassandraUnavailableError."""

    kind: ClassVar[str]
    """What is loaded, such as `products`."""
    versions: ClassVar[str]
    """The table with a row for each tenant."""
    counts: ClassVar[Sequence[str]]
    """The columns of that table which describe a version."""
    blocks: ClassVar[str]
    """The table of the blocks of all versions."""
    partition: ClassVar[Sequence[str]]
    """The partition key of that table, with `tenant` and `version`."""
    changed: ClassVar[type[RequestError]]
    """The error of a load that was overtaken by another one."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        fields = ["version", *self.counts, "loaded_at", "previous"]
        marks = ", ".join("?" * (1 + len(fields)))
        self._read = session.prepare(f"SELECT {', '.join(fields)} FROM {self.versions} WHERE tenant = ?")
        self._first = session.prepare(
            f"INSERT INTO {self.versions} (tenant, {', '.join(fields)}) VALUES ({marks}) IF NOT EXISTS"
        )
        changes = ", ".join(f"{field} = ?" for field in fields)
        self._switch = session.prepare(f"UPDATE {self.versions} SET {changes} WHERE tenant = ? IF version = ?")

    def current(self, tenant: str) -> Any:  # noqa: ANN401 - a row of the driver
        """The row of the tenant's current version; None if none was ever loaded."""
        return self._session.execute(self._read, (tenant,)).one()

    def load_version(self, tenant: str, stage: Stage) -> LoadedVersion:
        """Write a version, and make it the tenant's current one: all of it or nothing.

        Args:
            tenant: Whose data it is.
            stage: Writes the blocks.

        Returns:
            The new version, which readers see within a second.

        Raises:
            RequestError: What `stage` raises, or `changed` if another load was faster.
        """
        try:
            return self._load_version(tenant, stage)
        except CASSANDRA_UNAVAILABLE as error:
            message = f"Cassandra did not answer: {type(error).__name__}."
            do = f"Load the {self.kind} again; it is safe to repeat."
            raise CassandraUnavailableError(message, do=do) from error

    @abstractmethod
    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all blocks of a version."""

    def overtaken(self, tenant: str) -> RequestError:
        """The error of a load whose former version is no longer the current one."""
        message = f"Another load has changed the {self.kind} of tenant `{tenant}` in the meantime."
        return self.changed(message, do=f"Load the {self.kind} again; nothing of this load was kept.")

    def _load_version(self, tenant: str, stage: Stage) -> LoadedVersion:
        before = self.current(tenant)
        version = f"{time.time_ns() // 10**6:013d}-{uuid.uuid4().hex}"
        try:
            loaded = LoadedVersion(version, stage(version, before), datetime.now(UTC))
        except BaseException:
            self.remove_version(tenant, version)
            raise
        former = before.version if before else ""
        self._put(tenant, loaded, former)
        self._remove_old(tenant, {version, former}, before.previous if before else "")
        return loaded

    def _put(self, tenant: str, loaded: LoadedVersion, former: str) -> None:
        fields = (loaded.version, *loaded.counts, loaded.loaded_at, former)
        switch = self._switch.bind((*fields, tenant, former)) if former else self._first.bind((tenant, *fields))
        try:
            applied = self._session.execute(switch).one().applied
        except CASSANDRA_UNAVAILABLE:  # whether it was written is unknown; a serial read settles it
            applied = False
        if not applied:
            settle = self._session.prepare(f"SELECT version FROM {self.versions} WHERE tenant = ?")
            settle.consistency_level = ConsistencyLevel.SERIAL
            row = self._session.execute(settle, (tenant,)).one()
            if row is None or row.version != loaded.version:
                self.remove_version(tenant, loaded.version)
                raise self.overtaken(tenant)

    def _remove_old(self, tenant: str, kept: set[str], previous: str) -> None:
        """Remove the version before the one just replaced, which readers may still use, and abandoned ones."""
        oldest = f"{int((datetime.now(UTC) - _ABANDONED).timestamp() * 1000):013d}"
        rows: Any = self._session.execute(f"SELECT DISTINCT {', '.join(self.partition)} FROM {self.blocks}")
        old = {row.version for row in rows if row.tenant == tenant and row.version < oldest} - kept
        for version in old | ({previous} - {""}):
            self.remove_version(tenant, version)
