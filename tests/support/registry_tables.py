"""The tables of registered stores in memory, as much of a Cassandra session as `StoreTables` asks for."""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import ConsistencyLevel

from master_dataset.registry import registry, store_tables
from master_dataset.registry.stores import Store

Values = Sequence[Any]
STORED = ("registered_stores", "replaced_stores", "former_terms")


@dataclass
class Statement:
    """A prepared statement, and its values once it is bound."""

    query: str
    values: Values = ()
    consistency_level: int = 0

    def bind(self, values: Values) -> "Statement":
        return Statement(self.query, values, self.consistency_level)


class RegistryTables:
    """A session.

    Attributes:
        former: Stores that a release before versions has written.
        current: The row of the version that counts.
        rows: Table to version to rows.
        changes: The row of each version in `registry_changes`.
        fails_at: The row of stores at which a load loses its connection.
        meanwhile: Runs before a load switches.
        before: Runs before each statement, with its text; what it raises, the statement raises.
        after: Runs after each statement was applied; likewise.
    """

    def __init__(self, *former: Store) -> None:
        self.former = former
        self.current: SimpleNamespace | None = None
        self.rows: dict[str, dict[str, list[SimpleNamespace]]] = {table: {} for table in STORED}
        self.changes: dict[str, SimpleNamespace] = {}
        self._unsettled: dict[str, SimpleNamespace] = {}  # what a replica says that has not heard of a decision
        self.fails_at: int | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[], None] = lambda: None

    @property
    def bodies(self) -> dict[str, str]:
        """What a process finds that starts now, by id."""
        return {id_: store.to_json() for id_, store in store_tables.StoreTables(self).read().stores().items()}

    @property
    def decisions(self) -> list[bool | None]:
        """Of each change that was announced, in their order, whether it counts."""
        return [row.is_confirmed for row in self.changes.values() if row.takes_effect_at is not None]

    def prepare(self, query: str) -> Statement:
        return Statement(query)

    def execute(self, statement: Statement | str, values: Values = ()) -> Any:
        bound = Statement(statement) if isinstance(statement, str) else statement
        query, said = bound.query, values or bound.values
        self.before(query)
        found = self._answer(query, said, bound.consistency_level)
        self.after()
        return _Rows(list(found) if isinstance(found, Iterable) else [found])

    def _answer(self, query: str, said: Values, level: int) -> Any:
        acts: dict[str, Callable[[], Any]] = {
            "SELECT DISTINCT tenant, version FROM registered_stores": lambda: [
                SimpleNamespace(tenant="*", version=version) for version in self.rows["registered_stores"]
            ],
            "SELECT version, count": lambda: [self.current] if self.current else [],
            "SELECT version FROM store_sets": lambda: [self.current] if self.current else [],
            "SELECT version FROM registry_versions": lambda: [SimpleNamespace(version=1)] if self.former else [],
            "SELECT toTimestamp(now())": lambda: SimpleNamespace(clock=datetime.now(UTC).replace(tzinfo=None)),
            "SELECT body FROM stores": lambda: [SimpleNamespace(body=each.to_json()) for each in self.former],
            "SELECT former_terms, replaced_stores": lambda: self._change(said[0], level),
            "INSERT INTO registry_changes": lambda: self._announce(query, said),
            "UPDATE registry_changes": lambda: self._decide(query, said),
            "DELETE FROM registry_changes": lambda: self.changes.pop(said[0], None) and [],
            "INSERT INTO store_sets": lambda: self._switch(said, None),
            "UPDATE store_sets": lambda: self._switch(said, said[-1]),
        }
        for beginning, act in acts.items():
            if query.startswith(beginning):
                return act()
        table = re.search(r"(?:FROM|INTO) (\w+)", query)
        assert table, query
        return self._of_version(query, self.rows[table[1]], said)

    def _of_version(self, query: str, table: dict[str, list[SimpleNamespace]], said: Values) -> list[Any]:
        if query.startswith("DELETE"):
            table.pop(said[-1], None)
        elif query.startswith("INSERT"):
            _, version, *columns = said
            own = table.setdefault(version, [])
            if table is self.rows["registered_stores"] and self.fails_at == len(own):
                raise ConnectionError
            own.append(SimpleNamespace(**dict(zip(_columns(query)[2:], columns, strict=True))))
        else:
            return list(table.get(said[-1], []))
        return []

    def _announce(self, query: str, said: Values) -> list[Any]:
        row = SimpleNamespace(**dict(zip(_columns(query), said, strict=True)), is_confirmed=None)
        self.changes[row.version] = self._unsettled[row.version] = row
        return []

    def _change(self, version: str, level: int) -> list[Any]:
        rows = self.changes if level == ConsistencyLevel.SERIAL else self._unsettled
        return [rows[version]] if version in self.changes else []

    def _decide(self, query: str, said: Values) -> list[Any]:
        confirm, version, *at = said
        row = self.changes.get(version)
        if row is None and "takes_effect_at = ?" not in query:  # `is_confirmed = null` is true of what is not there
            row = self.changes[version] = SimpleNamespace(is_confirmed=None, takes_effect_at=None)
        if row is not None and row.is_confirmed is None and row.takes_effect_at == at[0]:
            self.changes[version] = copy(row)
            self.changes[version].is_confirmed = confirm
        return []

    def settle(self) -> None:
        """Every replica has heard of every decision."""
        self._unsettled = dict(self.changes)

    def _switch(self, said: Values, former: str | None) -> SimpleNamespace:
        run, self.meanwhile = self.meanwhile, lambda: None
        run()
        applied = (self.current.version if self.current else None) == former
        if applied:
            fields = said[1:] if former is None else said[:-2]
            names = ("version", "count", "loaded_at", "previous")
            self.current = SimpleNamespace(**dict(zip(names, fields, strict=True)))
        return SimpleNamespace(applied=applied)


def _columns(query: str) -> list[str]:
    """The columns that an INSERT names."""
    return query[query.index("(") + 1 : query.index(")")].split(", ")


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
    monkeypatch.setattr(store_tables, "execute_concurrent_with_args", one_by_one)


def of_this_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are those of this release, no backup is being restored, and the clock is right."""
    monkeypatch.setattr("deploy.schema.pending", lambda *_: [])
    monkeypatch.setattr("deploy.backup.mark.refuse_unfinished_restore", lambda _: None)
    monkeypatch.setattr("deploy.cassandra.refuse_wrong_clock", lambda *_: None)


def takes(tables: RegistryTables, seconds: float) -> None:
    """From now on, loads switch so slowly."""

    def slowly(query: str) -> None:
        if query.startswith(("UPDATE store_sets", "INSERT INTO store_sets")):
            time.sleep(seconds)

    tables.before = slowly
