"""Cassandra in memory for what speed writes: rows by key, and of two writes of a column the later timestamp."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import deploy.schema

SCHEMA = "\n".join(file.read_text() for file in sorted(Path(deploy.schema.__file__).parent.glob("*.cql")))
_INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\) VALUES \([^)]*\)(?: USING (.*))?")
_CREATE = re.compile(r"(CREATE TABLE IF NOT EXISTS|DROP TABLE IF EXISTS|DROP TABLE) (\w+)")
_KEY = re.compile(r"PRIMARY KEY \((.*?)\)\s*(?:\)|;|WITH)", re.DOTALL)


class Statement(NamedTuple):
    """A prepared one. `using`: what is said besides the row, in order."""

    table: str
    columns: Sequence[str]
    using: Sequence[str]


class Written(NamedTuple):
    """A value, and when it was written: by `USING TIMESTAMP`, or by the clock."""

    at: int
    value: Any


class Batch(list[tuple[Statement, tuple[Any, ...]]]):
    """An unlogged batch."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def add(self, bound: tuple[Statement, tuple[Any, ...]]) -> None:
        self.append(bound)


class Tables:
    """A session. `clock_us` moves with every write."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Written]]] = {}
        self.keys = _keys(SCHEMA)
        self.clock_us = 1_900_000_000_000_000

    def prepare(self, query: str) -> Statement:
        found = _INSERT.match(query)
        if found is None:
            return Statement(query.partition(" FROM ")[2].partition(" ")[0], (), ())
        using = re.findall(r"(TIMESTAMP|TTL)", found[3] or "")
        return Statement(found[1], [name.strip() for name in found[2].split(",")], using)

    def execute(self, statement: Statement, values: tuple[Any, ...]) -> None:
        self._write(statement, values)

    def execute_async(self, batch: Batch) -> Any:
        for statement, values in batch:
            self._write(statement, values)
        return SimpleNamespace(result=lambda: None)

    def _write(self, statement: Statement, values: tuple[Any, ...]) -> None:
        row = dict(zip(statement.columns, values, strict=False))
        extra = dict(zip(statement.using, values[len(statement.columns) :], strict=True))
        self.clock_us += 1
        at = extra.get("TIMESTAMP", self.clock_us)
        key = tuple(row[name] for name in self.keys[statement.table])
        own = self.rows.setdefault(statement.table, {}).setdefault(key, {})
        for name, value in row.items():
            if name not in own or own[name].at <= at:
                own[name] = Written(at, value)

    def of(self, table: str) -> list[dict[str, Any]]:
        rows = self.rows.get(table, {}).values()
        return [{name: written.value for name, written in row.items()} for row in rows]

    def first_deliveries(self, table: str, wanted_keys: Sequence[tuple[Any, ...]]) -> Iterator[tuple[bool, list[Any]]]:
        """What `FirstDeliveries` asks for, each question in turn."""
        names = ("generation", "topic", "store" if table == "first_deliveries" else "bucket", "day")
        for wanted in wanted_keys:
            key, identities = wanted[: len(names)], wanted[len(names) :]
            own = (row for row in self.of(table) if tuple(row[name] for name in names) == key)
            yield True, [SimpleNamespace(**row) for row in own if not identities or row["identity"] in identities[0]]


@contextmanager
def in_memory() -> Iterator[None]:
    """Speed's rows go to such tables, and its questions."""

    def read(tables: Tables, select: Statement, wanted_keys: Sequence[tuple[Any, ...]], **__: object) -> Any:
        return list(tables.first_deliveries(select.table, wanted_keys))

    with (
        patch("speed_layer.cassandra_batches.BatchStatement", Batch),
        patch("speed_layer.cassandra_batches.bind_of", lambda statement: lambda values: (statement, values)),
        patch("speed_layer.cassandra_batches.execute_concurrent_with_args", read),
    ):
        yield


def _keys(schema: str) -> dict[str, list[str]]:
    """The columns of each table's primary key; of a table that is made again, of the last one."""
    found: dict[str, list[str]] = {}
    for statement in schema.split(";"):
        created, key = _CREATE.search(statement), _KEY.search(statement + ";")
        if created and created[1].startswith("CREATE") and key:
            found[created[2]] = re.findall(r"\w+", key[1])
    return found
