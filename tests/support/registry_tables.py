"""The tables of registered stores in memory, as much of a Cassandra session as `StoreTables` asks for."""

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
    """A session. `fails_at`: the row at which a load loses its connection. `meanwhile`: runs before a load switches."""

    def __init__(self, *former: Store) -> None:
        """`former`: stores that a release before versions has written."""
        self.former = former
        self.current: SimpleNamespace | None = None
        self.rows: dict[str, dict[str, str]] = {}
        self.fails_at: int | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    @property
    def bodies(self) -> dict[str, str]:
        """What a process finds that starts now, by id."""
        return {id_: store.to_json() for id_, store in registry.StoreTables(self).all().items()}

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
            "SELECT body FROM stores": lambda _: [SimpleNamespace(body=each.to_json()) for each in self.former],
            "INSERT INTO registered_stores": self._insert,
            "DELETE FROM registered_stores": lambda said: self.rows.pop(said[1], None) and [],
            "INSERT INTO store_sets": lambda said: self._switch(said[1:], None),
            "UPDATE store_sets": lambda said: self._switch(said[:4], said[-1]),
        }

    def _insert(self, said: Values) -> list[Any]:
        _, version, id_, body = said
        own = self.rows.setdefault(version, {})
        if self.fails_at == len(own):
            raise ConnectionError
        own[id_] = body
        return []

    def _switch(self, fields: Values, former: str | None) -> SimpleNamespace:
        run, self.meanwhile = self.meanwhile, lambda: None
        run()
        applied = (self.current.version if self.current else None) == former
        if applied:
            self.current = SimpleNamespace(
                **dict(zip(("version", "count", "loaded_at", "previous"), fields, strict=True))
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
    monkeypatch.setattr(registry, "execute_concurrent_with_args", one_by_one)
