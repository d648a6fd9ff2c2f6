"""The tables of registered stores in memory, as much of a Cassandra session as `StoreTables` asks for."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from master_dataset.registry import registry
from master_dataset.registry.stores import Store

Values = Sequence[Any]


@dataclass
class Statement:
    """A prepared statement, and its values once it is bound."""

    query: str
    values: Values = ()
    consistency_level: int = 0

    def bind(self, values: Values) -> "Statement":
        return Statement(self.query, values)


class RegistryTables:
    """A session.

    `fails_at`: the row at which a load loses its connection. `meanwhile`: runs before a load switches.
    `switch_seconds`: how long that takes.
    """

    def __init__(self, *former: Store) -> None:
        """`former`: stores that a release before versions has written."""
        self.former = former
        self.current: SimpleNamespace | None = None
        self.rows: dict[str, dict[str, str]] = {}
        self.former_terms: dict[str, list[SimpleNamespace]] = {}
        self.changes: dict[str, SimpleNamespace] = {}
        self.switch_seconds = 0.0
        self.fails_at: int | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    @property
    def bodies(self) -> dict[str, str]:
        """What a process finds that starts now, by id."""
        return {id_: store.to_json() for id_, store in registry.StoreTables(self).read().stores.items()}

    def prepare(self, query: str) -> Statement:
        return Statement(query)

    def execute(self, statement: Statement | str, values: Values = ()) -> Any:
        query = statement if isinstance(statement, str) else statement.query
        said = values or (statement.values if isinstance(statement, Statement) else ())
        act = next(act for beginning, act in self._acts.items() if query.startswith(beginning))
        found = act(said)
        rows = list(found) if isinstance(found, Iterable) else [found]
        return _Rows(rows)

    @property
    def _acts(self) -> dict[str, Callable[[Values], Any]]:
        return {
            "SELECT DISTINCT tenant, version FROM registered_stores": lambda _: [
                SimpleNamespace(tenant="*", version=version) for version in self.rows
            ],
            "SELECT version, count": lambda _: [self.current] if self.current else [],
            "SELECT version FROM store_sets": lambda _: [self.current] if self.current else [],
            "SELECT version FROM registry_versions": lambda _: [SimpleNamespace(version=1)] if self.former else [],
            "SELECT body FROM registered_stores": lambda said: [
                SimpleNamespace(body=body) for body in self.rows.get(said[0], {}).values()
            ],
            "SELECT store, until, terms FROM former_terms": lambda said: self.former_terms.get(said[1], []),
            "INSERT INTO former_terms": self._insert_terms,
            "DELETE FROM former_terms": lambda said: self.former_terms.pop(said[1], None) and [],
            "SELECT takes_effect_at": lambda said: [self.changes[said[0]]] if said[0] in self.changes else [],
            "INSERT INTO registry_changes": self._announce,
            "UPDATE registry_changes": self._decide,
            "DELETE FROM registry_changes": lambda said: self.changes.pop(said[0], None) and [],
            "SELECT body FROM stores": lambda _: [SimpleNamespace(body=each.to_json()) for each in self.former],
            "INSERT INTO registered_stores": self._insert,
            "DELETE FROM registered_stores": lambda said: self.rows.pop(said[1], None) and [],
            "INSERT INTO store_sets": lambda said: self._switch(said[1:], None),
            "UPDATE store_sets": lambda said: self._switch(said[:5], said[-1]),
        }

    def _insert(self, said: Values) -> list[Any]:
        _, version, id_, body = said
        own = self.rows.setdefault(version, {})
        if self.fails_at == len(own):
            raise ConnectionError
        own[id_] = body
        return []

    def _insert_terms(self, said: Values) -> list[Any]:
        _, version, *columns = said
        row = SimpleNamespace(**dict(zip(("store", "until", "terms"), columns, strict=True)))
        self.former_terms.setdefault(version, []).append(row)
        return []

    def _announce(self, said: Values) -> list[Any]:
        version, at = said
        self.changes[version] = SimpleNamespace(takes_effect_at=at, is_confirmed=None)
        return []

    def _decide(self, said: Values) -> list[Any]:
        confirm, version, at = said
        change = self.changes.get(version)
        if change is not None and change.is_confirmed is None and change.takes_effect_at == at:
            change.is_confirmed = confirm
        return []

    def _switch(self, fields: Values, former: str | None) -> SimpleNamespace:
        run, self.meanwhile = self.meanwhile, lambda: None
        run()
        time.sleep(self.switch_seconds)
        applied = (self.current.version if self.current else None) == former
        if applied:
            self.current = SimpleNamespace(
                **dict(zip(("version", "count", "former_terms", "loaded_at", "previous"), fields, strict=True))
            )
        return SimpleNamespace(applied=applied)


class _Rows(list[Any]):
    def one(self) -> Any:
        return self[0] if self else None


def one_by_one(session: RegistryTables, statement: Statement, rows: Iterable[Values], **_: object) -> None:
    """`execute_concurrent_with_args`, without a network."""
    for values in rows:
        session.execute(statement, values)


def know_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers know of a load at once, and there is no network."""
    monkeypatch.setattr(registry, "REFRESH_SECONDS", 0)
    monkeypatch.setattr(registry, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(registry, "execute_concurrent_with_args", one_by_one)
