"""A session of Cassandra that keeps rows in memory, for the few forms of statements that tables of single rows need."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

_SELECT = re.compile(r"SELECT (?P<columns>.+?) FROM (?P<table>\w+)(?: WHERE (?P<where>.+))?")
_INSERT = re.compile(r"INSERT INTO (?P<table>\w+) \((?P<columns>.+?)\) VALUES \(.+?\)(?P<once> IF NOT EXISTS)?")
_UPDATE = re.compile(r"UPDATE (?P<table>\w+) SET (?P<set>.+?) WHERE (?P<where>.+?)(?: IF (?P<once>.+))?")
_DELETE = re.compile(r"DELETE FROM (?P<table>\w+) WHERE (?P<where>.+)")


class Result(list[Any]):
    """The rows of an answer."""

    def one(self) -> Any:
        return self[0] if self else None


@dataclass
class Rows:
    """`tables`: by name, the rows as the columns that they have."""

    keys: Mapping[str, Sequence[str]]
    tables: dict[str, dict[tuple[object, ...], dict[str, Any]]] = field(default_factory=dict)

    def prepare(self, cql: str) -> str:
        return cql

    def execute(self, cql: str, values: Sequence[Any] = ()) -> Result:
        left = iter(values)
        if found := _SELECT.fullmatch(cql):
            return self._select(found, left)
        if found := _INSERT.fullmatch(cql):
            row = {name: _kept(next(left)) for name in found["columns"].split(", ")}
            key = tuple(row[name] for name in self.keys[found["table"]])
            rows = self._rows(found["table"])
            if found["once"] and key in rows:
                return Result([SimpleNamespace(applied=False)])
            rows.setdefault(key, {}).update(row)
        elif found := _UPDATE.fullmatch(cql):
            changed = _terms(found["set"], ", ", left)
            where, must_exist = _terms(found["where"], " AND ", left), found["once"] == "EXISTS"
            wanted = {} if must_exist else _terms(found["once"] or "", " AND ", left)
            if must_exist and tuple(where.values()) not in self._rows(found["table"]):
                return Result([SimpleNamespace(applied=False)])
            row = self._rows(found["table"]).setdefault(tuple(where.values()), dict(where))
            if any(row.get(name) != value for name, value in wanted.items()):
                return Result([SimpleNamespace(applied=False)])
            row.update(changed)
        elif found := _DELETE.fullmatch(cql):
            self._rows(found["table"]).pop(tuple(_terms(found["where"], " AND ", left).values()), None)
        else:
            raise AssertionError(f"these rows know no such statement: {cql}")
        return Result([SimpleNamespace(applied=True)])

    async def rows(self, cql: str, *values: Any) -> list[Any]:
        """As AsyncSession."""
        return [tuple(vars(row).values()) for row in self.execute(cql, values)]

    def _rows(self, table: str) -> dict[tuple[object, ...], dict[str, Any]]:
        return self.tables.setdefault(table, {})

    def _select(self, found: re.Match[str], left: Any) -> Result:
        where = _terms(found["where"] or "", " AND ", left)
        rows = [row for row in self._rows(found["table"]).values() if all(row.get(n) == v for n, v in where.items())]
        return Result([SimpleNamespace(**{n: row.get(n) for n in found["columns"].split(", ")}) for row in rows])


def _terms(text: str, between: str, left: Any) -> dict[str, Any]:
    terms = [term.split(" = ") for term in text.split(between) if term]
    return {
        name: _kept(next(left)) if value == "?" else None if value == "null" else value.strip("'")
        for name, value in terms
    }


def _kept(value: Any) -> Any:
    """As Cassandra returns it: instants in milliseconds, without a zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)
    return value
