"""The stores that are registered, kept in Cassandra where every process finds them.

A version number changes with every load, so a reader asks for one small row a second and reads the stores only when
they changed. `save` returns after every reader must have noticed: later records are parsed with the new entries.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms

if TYPE_CHECKING:
    from cassandra.cluster import Session

TermsOf = Callable[[str], Terms]
"""How a store's records are read, by its id."""

REFRESH_SECONDS = 1.0
"""How old a reader's copy may be before it asks for the version again."""

_NAME = "stores"


class Registry:
    """The stores as one reader sees them: at most `REFRESH_SECONDS` old."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._version_query = session.prepare("SELECT version FROM registry_versions WHERE name = ?")
        self._asked_at = float("-inf")
        self._version = -1
        self._stores: Mapping[str, Store] = {}
        self._terms: Mapping[str, Terms] = {}

    def stores(self) -> Mapping[str, Store]:
        """Id to store. A driver error if Cassandra does not answer: an old copy could mean the wrong currency."""
        if time.monotonic() - self._asked_at >= REFRESH_SECONDS:
            row = self._session.execute(self._version_query, (_NAME,)).one()
            version = row.version if row else 0
            if version != self._version:
                bodies = self._session.execute("SELECT body FROM stores")
                self._stores = {store.id: store for store in (Store.from_json(row.body) for row in bodies)}
                self._terms = {store.id: store.terms for store in self._stores.values()}
                self._version = version
            self._asked_at = time.monotonic()
        return self._stores

    def terms_of(self, store: str) -> Terms:
        """How this store's records are read."""
        return self._terms.get(store, DEFAULT_TERMS)

    def save(self, stores: Iterable[Store]) -> None:
        """Write these entries and return once every reader must have seen them."""
        insert = self._session.prepare("INSERT INTO stores (id, body, effective_at) VALUES (?, ?, ?)")
        now = datetime.now(UTC)
        for store in stores:
            self._session.execute(insert, (store.id, store.to_json(), now))
        row = self._session.execute(self._version_query, (_NAME,)).one()
        bump = self._session.prepare("INSERT INTO registry_versions (name, version) VALUES (?, ?)")
        self._session.execute(bump, (_NAME, (row.version if row else 0) + 1))
        time.sleep(2 * REFRESH_SECONDS)


_registries: dict["Session", Registry] = {}
"""Of this process, by session: a callable that Spark unpickles for a task equals none that came before it."""


def store_terms(connect: "Callable[[], Session]") -> TermsOf:
    """Return how records are read as of now, for a Spark worker.

    Args:
        connect: Returns the one session of this process, the same one at each call; it is pickled with the task.

    Returns:
        The terms of a store by its id, refreshed if they are older than `REFRESH_SECONDS`.
    """
    session = connect()
    registry = _registries.get(session)
    if registry is None:
        registry = _registries[session] = Registry(session)
    registry.stores()
    return registry.terms_of
