"""A migration can be repeated wherever it was killed, and an older release starts on tables that it can use."""

import re
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import pytest
from cassandra import InvalidRequest

from deploy import schema
from deploy.schema import USABLE_SINCE, migrate, pending, to_apply
from master_dataset.errors import CassandraUnavailableError, OperatorError

KEYSPACE = "k"
NEWER = "999_newer.cql"
CREATED = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)")
ADDED = re.compile(r"ALTER TABLE (\w+) ADD (IF NOT EXISTS )?(\w+)")
DROPPED = re.compile(r"DROP TABLE IF EXISTS (\w+)")


class Killed(BaseException):
    """The process has ended."""


class Rows(list[SimpleNamespace]):
    def one(self) -> SimpleNamespace | None:
        return self[0] if self else None


@dataclass
class Cassandra:
    """Tables with their columns, and the rows of `migrations`. As a session, its cluster, and its metadata.

    `ends_after`: the process that migrates is killed after a statement that begins so.
    """

    columns: dict[str, set[str]] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    ends_after: str | None = None
    statements: list[str] = field(default_factory=list)
    is_locked_by_others: bool = False

    @property
    def cluster(self) -> Self:
        return self

    @property
    def metadata(self) -> SimpleNamespace:
        return SimpleNamespace(keyspaces={KEYSPACE: SimpleNamespace(tables={"migrations"})})

    def refresh_keyspace_metadata(self, *_: object) -> None: ...

    def refresh_table_metadata(self, *_: object) -> None: ...

    def set_keyspace(self, _: str) -> None: ...

    def get_control_connection_host(self) -> str:
        return "node"

    def prepare(self, statement: str) -> str:
        return statement

    def execute(self, statement: str, values: tuple[Any, ...] = (), host: object = None) -> Rows:
        assert host in {None, "node"}
        self._change(statement, values)
        self.statements.append(statement)
        if self.ends_after is not None and statement.startswith(self.ends_after):
            self.ends_after = None
            raise Killed
        if statement.startswith("SELECT"):
            return Rows(SimpleNamespace(name=name, checksum=each) for name, each in self.rows.items())
        return Rows([SimpleNamespace(applied=not (self.is_locked_by_others and "USING TTL" in statement))])

    def _change(self, statement: str, values: tuple[Any, ...]) -> None:
        if statement.startswith("INSERT INTO migrations") and "USING TTL" not in statement:
            self.rows[values[0]] = values[1]
        elif created := CREATED.match(statement):
            self.columns.setdefault(created[1], set())
        elif dropped := DROPPED.match(statement):
            self.columns.pop(dropped[1], None)
        elif added := ADDED.match(statement):
            known = self.columns.setdefault(added[1], set())
            if added[3] in known and not added[2]:
                raise InvalidRequest(f"Column with name '{added[3]}' already exists")
            known.add(added[3])


def every_statement() -> list[str]:
    cassandra = Cassandra()
    migrate(cassandra, KEYSPACE)
    return [each for each in cassandra.statements if each.startswith(("ALTER", "DROP", "UPDATE publications"))]


@pytest.mark.parametrize("statement", every_statement())
def test_a_migration_can_be_repeated_after_it_was_killed(statement: str) -> None:
    cassandra = Cassandra(ends_after=statement)
    with pytest.raises(Killed):
        migrate(cassandra, KEYSPACE)

    migrate(cassandra, KEYSPACE)

    assert pending(cassandra, KEYSPACE) == []


def test_an_older_release_changes_nothing_in_tables_that_it_can_use() -> None:
    cassandra = Cassandra()
    migrate(cassandra, KEYSPACE)
    cassandra.rows[NEWER] = "x"
    before = dict(cassandra.rows)

    assert to_apply(cassandra, KEYSPACE) == []
    migrate(cassandra, KEYSPACE)

    assert cassandra.rows == before
    with pytest.raises(OperatorError, match="a newer release has applied"):
        pending(cassandra, KEYSPACE)


@pytest.mark.parametrize("usable_since", [NEWER, None])
def test_an_older_release_refuses_tables_that_it_cannot_use(usable_since: str | None) -> None:
    cassandra = Cassandra()
    migrate(cassandra, KEYSPACE)
    cassandra.rows[NEWER] = "x"
    del cassandra.rows["usable_since"]
    if usable_since:
        cassandra.rows["usable_since"] = usable_since

    with pytest.raises(OperatorError, match="a newer release has applied"):
        migrate(cassandra, KEYSPACE)


def test_what_older_releases_need_to_know_is_noted_before_anything_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cassandra = Cassandra()
    migrate(cassandra, KEYSPACE)
    newest = schema.newest()
    assert newest >= USABLE_SINCE
    del cassandra.rows[newest]
    monkeypatch.setattr(schema, "USABLE_SINCE", newest)
    cassandra.ends_after = "CREATE TABLE IF NOT EXISTS former_terms"

    with pytest.raises(Killed):
        migrate(cassandra, KEYSPACE)

    assert cassandra.rows["usable_since"] == newest
    assert newest not in cassandra.rows


def test_a_process_that_has_lost_the_lock_changes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cassandra = Cassandra()

    def a_long_one(_: str) -> list[str]:
        cassandra.is_locked_by_others = True
        return ["CREATE TABLE x"]

    monkeypatch.setattr(schema, "_statements", a_long_one)

    with pytest.raises(CassandraUnavailableError, match="another process may be changing the tables"):
        migrate(cassandra, KEYSPACE)

    assert cassandra.statements.count("CREATE TABLE x") == 1
