"""The registered stores, in Cassandra.

A version number changes with every save, so a reader checks one small row per second and reads the stores only if they
have changed. `save` returns once every reader has seen the stores: later records are parsed with them.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms

if TYPE_CHECKING:
    from cassandra.cluster import Session

TermsOf = Callable[[str], Terms]
"""The terms by which the records of a store are parsed, by its id."""
TenantOf = Callable[[str], str | None]
"""The tenant of a store, by its id; None if it is not registered."""

REFRESH_SECONDS = 1.0
"""How old a reader's copy may be before it checks the version again."""

_NAME = "stores"


class Registry:
    """The registered stores, at most REFRESH_SECONDS old."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._version_query = session.prepare("SELECT version FROM registry_versions WHERE name = ?")
        self._checked_at = float("-inf")
        self._version = -1
        self._stores: Mapping[str, Store] = {}
        self._terms: Mapping[str, Terms] = {}

    def stores(self) -> Mapping[str, Store]:
        """Return id to store.

        Raises:
            Exception: Any error of the driver. An old copy is never used instead: a currency in it may be wrong.
        """
        if time.monotonic() - self._checked_at >= REFRESH_SECONDS:
            row = self._session.execute(self._version_query, (_NAME,)).one()
            version = row.version if row else 0
            if version != self._version:
                bodies = self._session.execute("SELECT body FROM stores")
                self._stores = {store.id: store for store in (Store.from_json(row.body) for row in bodies)}
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

    def save(self, stores: Iterable[Store]) -> None:
        """Write stores. Returns after 2 x REFRESH_SECONDS, when every reader has seen them."""
        insert = self._session.prepare("INSERT INTO stores (id, body, effective_at) VALUES (?, ?, ?)")
        now = datetime.now(UTC)
        for store in stores:
            self._session.execute(insert, (store.id, store.to_json(), now))
        row = self._session.execute(self._version_query, (_NAME,)).one()
        bump = self._session.prepare("INSERT INTO registry_versions (name, version) VALUES (?, ?)")
        self._session.execute(bump, (_NAME, (row.version if row else 0) + 1))
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
