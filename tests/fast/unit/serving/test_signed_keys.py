"""A row of `api_keys` is a key only if this deployment has written it, as it is."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.secrets_key import SecretsKey
from serving_layer.errors import InvalidApiKeyError
from serving_layer.keys.authenticator import KeyCache
from serving_layer.keys.key import Key
from serving_layer.tables import AsyncSession, KeyTables
from tests.support.cassandra_rows import Rows

NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
SECRETS_KEY = SecretsKey("x" * 43)
FORMER_COLUMNS = ("id", "digest", "tenant", "scopes", "name", "created_at", "expires_at", "revoked_at")


@pytest.fixture
def rows() -> Rows:
    return Rows({"api_keys": ("id",), "secrets_key": ("name",)})


def tables_of(rows: Rows, key: SecretsKey = SECRETS_KEY) -> KeyTables:
    return KeyTables(cast("AsyncSession", rows), key)


def write(rows: Rows, key: Key) -> None:
    """As a former release, or somebody with a client of Cassandra."""
    values: list[Any] = [getattr(key, name) for name in FORMER_COLUMNS]
    values[3] = set(key.scopes)
    marks = ", ".join("?" * len(values))
    rows.execute(f"INSERT INTO api_keys ({', '.join(FORMER_COLUMNS)}) VALUES ({marks})", values)  # noqa: S608 - our own names


def new_key(tenant: str = "acme") -> tuple[str, Key]:
    return Key.new(tenant, ("read", "ingest"), "Anna", NOW, NOW + timedelta(days=1))


def keys(rows: Rows, key: SecretsKey = SECRETS_KEY) -> Sequence[Key]:
    return asyncio.run(tables_of(rows, key).keys())


def opens(rows: Rows, text: str) -> bool:
    cache = KeyCache(tables_of(rows), "", "", lambda: 0.0, lambda: NOW)
    try:
        asyncio.run(cache.caller(f"Bearer {text}"))
    except InvalidApiKeyError:
        return False
    return True


def test_a_key_that_this_deployment_has_written_opens_it(rows: Rows) -> None:
    text, key = new_key()

    asyncio.run(tables_of(rows).keep(key))

    assert opens(rows, text)
    assert keys(rows)[0].is_signed


def test_a_row_that_somebody_else_has_written_is_listed_and_opens_nothing(rows: Rows) -> None:
    text, key = new_key("*")

    write(rows, key)

    assert not opens(rows, text)
    assert [(each.id, each.is_signed) for each in keys(rows)] == [(key.id, False)]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tenant", "*"),
        ("scopes", {"read", "ingest", "operate"}),
        ("digest", b"another"),
        ("expires_at", None),
        ("name", "Berta"),
        ("created_at", datetime(2026, 11, 20)),  # noqa: DTZ001 - as the driver returns it
    ],
)
def test_a_key_whose_row_somebody_has_changed_opens_nothing(rows: Rows, column: str, value: object) -> None:
    text, key = new_key()
    asyncio.run(tables_of(rows).keep(key))

    rows.tables["api_keys"][key.id,][column] = value

    assert not opens(rows, text)


def test_a_revoked_key_cannot_be_unrevoked_in_the_table(rows: Rows) -> None:
    text, key = new_key()
    asyncio.run(tables_of(rows).keep(key.revoked(NOW)))

    rows.tables["api_keys"][key.id,]["revoked_at"] = None

    assert not opens(rows, text)


def test_the_signature_of_another_key_or_another_deployment_is_worth_nothing(rows: Rows) -> None:
    text, key = new_key()
    other_text, other = new_key("*")
    asyncio.run(tables_of(rows).keep(key))
    asyncio.run(tables_of(rows, SecretsKey("y" * 43)).keep(other))
    forged, forged_key = new_key("*")
    write(rows, forged_key)
    rows.tables["api_keys"][forged_key.id,]["mac"] = rows.tables["api_keys"][key.id,]["mac"]

    assert [opens(rows, each) for each in (text, other_text, forged)] == [True, False, False]


def test_half_a_row_of_somebody_else_keeps_nobody_out(rows: Rows) -> None:
    text, key = new_key()
    asyncio.run(tables_of(rows).keep(key))

    rows.execute("INSERT INTO api_keys (id, name) VALUES (?, ?)", ("0" * 12, "half"))

    assert opens(rows, text)


def test_the_keys_of_a_former_release_are_signed_once_and_stay_valid(rows: Rows) -> None:
    text, key = new_key()
    write(rows, key)

    signed = asyncio.run(tables_of(rows).sign_former())

    assert [each.id for each in signed] == [key.id]
    assert opens(rows, text)
    assert asyncio.run(tables_of(rows).sign_former()) == []


def test_a_row_that_comes_after_the_migration_is_never_signed_by_a_later_one(rows: Rows) -> None:
    write(rows, new_key()[1])
    asyncio.run(tables_of(rows).sign_former())
    text, forged = new_key("*")
    write(rows, forged)

    again = asyncio.run(tables_of(rows).sign_former())
    del rows.tables["secrets_key"]  # somebody wants the first migration back
    once_more = asyncio.run(tables_of(rows).sign_former())

    assert (again, once_more, opens(rows, text)) == ([], [], False)


def test_a_migration_that_was_killed_is_completed_without_what_came_in_between(rows: Rows) -> None:
    made = [new_key() for _ in range(3)]
    for _, key in made:
        write(rows, key)
    written = 0

    def die(cql: str) -> None:
        nonlocal written
        written += cql.startswith("UPDATE api_keys")
        if written == 2:
            raise CassandraUnavailableError("killed", do="again")

    rows.before = die
    with pytest.raises(CassandraUnavailableError):
        asyncio.run(tables_of(rows).sign_former())
    rows.before = lambda _: None
    forged_text, forged = new_key("*")
    write(rows, forged)

    asyncio.run(tables_of(rows).sign_former())

    assert [opens(rows, text) for text, _ in made] == [True] * 3
    assert not opens(rows, forged_text)


def test_a_row_that_was_changed_while_the_migration_was_interrupted_is_not_signed(rows: Rows) -> None:
    text, key = new_key()
    write(rows, key)

    def die(cql: str) -> None:
        if cql.startswith("UPDATE api_keys"):
            raise CassandraUnavailableError("killed", do="again")

    rows.before = die
    with pytest.raises(CassandraUnavailableError):
        asyncio.run(tables_of(rows).sign_former())
    rows.before = lambda _: None
    write(rows, replace(key, tenant="*"))

    assert asyncio.run(tables_of(rows).sign_former()) == []
    assert not opens(rows, text)
