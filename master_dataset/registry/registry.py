"""The registered stores, in Cassandra, in versions.

A load writes all stores of a new version, and switches to it by compare-and-set: readers see all of it or nothing. The
version changes with every load, so a reader checks one small row per second and reads the stores only if they have
changed. `save` returns once every reader has seen the stores: later records are parsed with them.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cassandra.concurrent import execute_concurrent_with_args

from master_dataset.errors import CassandraUnavailableError, RequestError, StoresChangedError
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.registry.tenants import ALL_TENANTS
from master_dataset.registry.versions import VersionedTables

if TYPE_CHECKING:
    from cassandra.cluster import Session

TermsOf = Callable[[str], Terms]
"""The terms by which the records of a store are parsed, by its id."""
TenantOf = Callable[[str], str | None]
"""The tenant of a store, by its id; None if it is not registered."""

REFRESH_SECONDS = 1.0
"""How old a reader's copy may be before it checks the version again."""

SELECT_VERSION = f"SELECT version, count FROM store_sets WHERE tenant = '{ALL_TENANTS}'"  # noqa: S608 - our own name
SELECT_STORES = f"SELECT body FROM registered_stores WHERE tenant = '{ALL_TENANTS}' AND version = ?"  # noqa: S608 - likewise
SELECT_FORMER_VERSION = "SELECT version FROM registry_versions WHERE name = 'stores'"
SELECT_FORMER_STORES = "SELECT body FROM stores"
"""Where a release before versions has written them; they count until the first load of this one."""
_TRIES = 3
"""A version can be removed while it is read, after two more loads."""
_IN_FLIGHT = 32


class StoreTables(VersionedTables):
    """Loads stores. All methods raise CassandraUnavailableError."""

    kind, versions, counts = "stores", "store_sets", ("count",)
    blocks, partition, changed = "registered_stores", ("tenant", "version"), StoresChangedError

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        super().__init__(session)
        self._stores = session.prepare(SELECT_STORES)
        self._write = session.prepare("INSERT INTO registered_stores (tenant, version, id, body) VALUES (?, ?, ?, ?)")
        self._remove = session.prepare("DELETE FROM registered_stores WHERE tenant = ? AND version = ?")

    def load(self, stores: Iterable[Store], removed: Collection[str] = ()) -> None:
        """Register stores, or change registered ones, and remove others: all of it or nothing.

        Raises:
            StoresChangedError: Another load was faster.
        """

        def stage(version: str, before: Any) -> Sequence[int]:  # noqa: ANN401 - a row of the driver
            known = self.of(before) if before else self._former()
            kept = {id_: store for id_, store in known.items() if id_ not in removed}
            wanted = kept | {store.id: store for store in stores}
            rows = [(ALL_TENANTS, version, store.id, store.to_json()) for store in wanted.values()]
            execute_concurrent_with_args(self._session, self._write, rows, concurrency=_IN_FLIGHT)
            return (len(wanted),)

        self.load_version(ALL_TENANTS, stage)

    def of(self, row: Any) -> Mapping[str, Store]:  # noqa: ANN401 - a row of the driver
        """The stores of a version. CassandraUnavailableError if some of them are missing."""
        found = _by_id(self._session.execute(self._stores, (row.version,)))
        if len(found) != row.count:
            message = f"{len(found)} of {row.count} registered stores were read."
            raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")
        return found

    def version(self) -> str:
        """The version that counts; of a release before versions, its number."""
        row = self.current(ALL_TENANTS)
        if row is not None:
            return str(row.version)
        former = self._session.execute(SELECT_FORMER_VERSION).one()
        return str(former.version if former else 0)

    def all(self) -> Mapping[str, Store]:
        """Every registered store by id."""
        for _ in range(_TRIES):
            row = self.current(ALL_TENANTS)
            if row is None:
                return self._former()
            try:
                return self.of(row)
            except CassandraUnavailableError as error:
                failed = error
        raise failed

    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all stores of a version."""
        self._session.execute(self._remove, (tenant, version))

    def overtaken(self, tenant: str) -> RequestError:  # noqa: ARG002 - there is one registry
        """See `VersionedTables`."""
        message = "Another load has changed the registered stores in the meantime."
        return self.changed(message, do="Load the stores again; nothing of this load was kept.")

    def _former(self) -> Mapping[str, Store]:
        return _by_id(self._session.execute(SELECT_FORMER_STORES))


def _by_id(rows: Iterable[Any]) -> Mapping[str, Store]:
    return {store.id: store for store in (Store.from_json(row.body) for row in rows)}


class Registry:
    """The registered stores, at most REFRESH_SECONDS old."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._tables = StoreTables(session)
        self._checked_at = float("-inf")
        self._version = ""
        self._stores: Mapping[str, Store] = {}
        self._terms: Mapping[str, Terms] = {}

    def stores(self) -> Mapping[str, Store]:
        """Return id to store.

        Raises:
            Exception: Any error of the driver. An old copy is never used instead: a currency in it may be wrong.
        """
        if time.monotonic() - self._checked_at >= REFRESH_SECONDS:
            version = self._tables.version()
            if version != self._version:
                self._stores = self._tables.all()
                self._terms = {store.id: store.terms for store in self._stores.values()}
                self._version = version
            self._checked_at = time.monotonic()
        return self._stores

    def terms_of(self, store: str) -> Terms:
        """Return the terms of a store as of the last `stores()`; the default terms if it is not registered."""
        return self._terms.get(store, DEFAULT_TERMS)

    def tenant_of(self, store: str) -> str | None:
        """Return the tenant of a store as of the last `stores()`; None if it is not registered."""
        known = self._stores.get(store)
        return known.tenant if known else None

    def save(self, stores: Iterable[Store], *, removed: Collection[str] = ()) -> None:
        """Register stores and remove others, all or none. Returns after 2 x REFRESH_SECONDS, when every reader knows.

        Raises:
            StoresChangedError: Another load was faster.
        """
        self._tables.load(stores, removed)
        time.sleep(2 * REFRESH_SECONDS)


_registries: dict["Session", Registry] = {}
"""By session, of which a process has one. Never by the callable that Spark unpickles for each task: no two are equal,
so that each task would keep another registry."""


def store_terms(connect: "Callable[[], Session]") -> TermsOf:
    """Return how records are parsed as of now, for a Spark worker.

    Args:
        connect: Returns the one session of this process, the same one at each call; it is pickled with the task.

    Returns:
        The terms of a store by its id, refreshed if they are older than `REFRESH_SECONDS`.
    """
    return _fresh(connect).terms_of


def store_tenants(connect: "Callable[[], Session]") -> TenantOf:
    """Return the tenants of stores as of now, for a Spark worker; otherwise as `store_terms`."""
    return _fresh(connect).tenant_of


def _fresh(connect: "Callable[[], Session]") -> Registry:
    session = connect()
    registry = _registries.get(session)
    if registry is None:
        registry = _registries[session] = Registry(session)
    registry.stores()
    return registry
