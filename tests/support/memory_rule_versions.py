"""The table `alert_versions` in memory, by the rules of Cassandra: compare-and-set, batches, and rows that expire."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from master_dataset.registry import rule_versions


class MemoryRow(NamedTuple):
    """A row as the driver gives it: its times have no time zone."""

    kind: str
    id: str
    number: int
    effective_at: datetime
    body: str


class Statement(str):
    """A prepared statement, whose consistency can be set."""

    __slots__ = ("consistency_level",)


class Batch:
    """Stands in for `cassandra.query.BatchStatement`."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, Sequence[Any]]] = []

    def add(self, statement: str, values: Sequence[Any]) -> None:
        self.parts.append((statement, values))


class Answer(list[Any]):
    """The rows of an answer."""

    def one(self) -> Any:
        return self[0] if self else None


class MemoryRuleVersions:
    """A session. `before`, `after`: called with the name of each step, when it is executed and when it has been.

    Steps: `allow` (the permit), `add` (the versions), `find` (a serial read of one), `read`.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        """`now`: the clock of Cassandra."""
        self._now = now
        self._rows: dict[tuple[str, str, int], tuple[MemoryRow, datetime | None]] = {}
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "MemoryRuleVersions":
        """Let the module make batches that this session can read."""
        monkeypatch.setattr(rule_versions, "BatchStatement", Batch)
        return self

    def prepare(self, cql: str) -> Statement:
        return Statement(cql)

    def execute(self, statement: Statement | Batch, values: Sequence[Any] = ()) -> Answer:
        step = self._step(statement)
        self.before(step)
        answer = self._execute(statement, values)
        self.after(step)
        return answer

    def rows(self) -> Sequence[MemoryRow]:
        """Those that have not expired, in the order of the table."""
        alive = [row for row, until in self._rows.values() if until is None or until > self._now()]
        return sorted(alive, key=lambda row: (row.kind, row.id, -row.number))

    def _step(self, statement: Statement | Batch) -> str:
        if isinstance(statement, Batch):
            return "add"
        if statement.startswith("UPDATE"):
            return "allow"
        return "find" if "id = ?" in statement else "read"

    def _execute(self, statement: Statement | Batch, values: Sequence[Any]) -> Answer:
        if isinstance(statement, Batch):
            return self._add(statement.parts)
        if statement.startswith("UPDATE"):
            seconds, effective_at, body, writer, unless = values
            found = self._found("permit", writer, 0)
            if found is not None and found.body == unless:
                return Answer([SimpleNamespace(applied=False)])
            row = MemoryRow("permit", writer, 0, effective_at.replace(tzinfo=None), body)
            self._rows[row[:3]] = row, self._now().replace(microsecond=0) + timedelta(seconds=seconds)
            return Answer([SimpleNamespace(applied=True)])
        return Answer([row for row in self.rows() if [row.kind, row.id][: len(values) - 1] == list(values[1:])])

    def _add(self, parts: Sequence[tuple[str, Sequence[Any]]]) -> Answer:
        (removal, (writer, token)), *additions = parts
        assert removal.startswith("DELETE")
        permit = self._found("permit", writer, 0)
        rows = [
            MemoryRow(kind, id_, number, effective_at.replace(tzinfo=None), body)
            for _, (_, kind, id_, number, effective_at, _, body) in additions
        ]
        is_free = all(self._found(*row[:3]) is None for row in rows)
        if permit is None or permit.body != token or not is_free:
            return Answer([SimpleNamespace(applied=False)])
        del self._rows[permit[:3]]
        self._rows |= {row[:3]: (row, None) for row in rows}
        return Answer([SimpleNamespace(applied=True)])

    def _found(self, kind: str, id_: str, number: int) -> MemoryRow | None:
        return next((row for row in self.rows() if row[:3] == (kind, id_, number)), None)
