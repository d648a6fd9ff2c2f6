"""A row of `api_keys` is a key only if this deployment has written it, as it is."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from master_dataset.errors import CassandraUnavailableError, UnknownNameError
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
    return Rows({"api_keys": ("id",)})


def tables_of(rows: Rows, key: SecretsKey = SECRETS_KEY) -> KeyTables:
    return KeyTables(cast("AsyncSession", rows), key)


def write(rows: Rows, key: Key) -> None:
    """As a former release, or somebody with a client of Cassandra."""
    values: list[Any] = [getattr(key, name) for name in FORMER_COLUMNS]
    values[3] = set(key.scopes)
    marks = ", ".join("?" * len(values))
    rows.execute(f"INSERT INTO api_keys ({', '.join(FORMER_COLUMNS)}) VALUES ({marks})", values)  # noqa: S608 - our own names


def row_of(key: Key) -> dict[str, Any]:
    """As this deployment writes it."""
    elsewhere = Rows({"api_keys": ("id",)})
    asyncio.run(tables_of(elsewhere).keep(key))
    return elsewhere.tables["api_keys"][key.id,]


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


def test_a_former_row_of_a_key_does_not_bring_it_back_to_a_process_that_has_seen_its_end(rows: Rows) -> None:
    text, key = new_key()
    asyncio.run(tables_of(rows).keep(key))
    former = dict(rows.tables["api_keys"][key.id,])
    asyncio.run(tables_of(rows).keep(key.revoked(NOW)))
    clock = iter((0.0, 0.0, 10.0, 10.0))  # each is looked at before and in a read
    cache = KeyCache(tables_of(rows), "", "", lambda: next(clock), lambda: NOW)

    async def refused() -> None:
        with pytest.raises(InvalidApiKeyError):
            await cache.caller(f"Bearer {text}")

    async def scenario() -> None:
        await refused()
        rows.tables["api_keys"][key.id,] = former
        await refused()

    asyncio.run(scenario())
    assert next(clock, None) is None  # both have read the table


@pytest.fixture
def row_that_stays(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Callable[[Key], None]:
    """After a call, the row of the key stays as it is: somebody has written it with a later timestamp."""

    def stays(key: Key) -> None:
        row, write_row = dict(rows.tables["api_keys"][key.id,]), rows.rows

        async def without_effect(cql: str, *values: Any) -> list[Any]:
            found = await write_row(cql, *values)
            rows.tables["api_keys"][key.id,] = dict(row)
            return found

        monkeypatch.setattr(rows, "rows", without_effect)

    return stays


def test_a_revocation_that_the_table_does_not_take_is_an_error(
    rows: Rows, row_that_stays: Callable[[Key], None]
) -> None:
    _, key = new_key()
    asyncio.run(tables_of(rows).keep(key))
    row_that_stays(key)

    with pytest.raises(CassandraUnavailableError, match="is not what was just written"):
        asyncio.run(tables_of(rows).end(key.id, lambda found: found.revoked(NOW)))


def test_two_that_revoke_a_key_at_once_have_both_revoked_it(rows: Rows, row_that_stays: Callable[[Key], None]) -> None:
    text, key = new_key()
    asyncio.run(tables_of(rows).keep(key.revoked(NOW)))
    row_that_stays(key)

    asyncio.run(tables_of(rows).end(key.id, lambda found: found.revoked(NOW + timedelta(seconds=1))))

    assert not opens(rows, text)


def test_a_revocation_while_a_key_is_rotated_stays(rows: Rows) -> None:
    text, key = new_key()
    tables, sooner = tables_of(rows), NOW + timedelta(hours=1)
    asyncio.run(tables.keep(key))
    revoked = [row_of(key.revoked(NOW))]

    def ends_sooner(found: Key) -> Key:
        if revoked:  # the first time, somebody else is quicker
            rows.tables["api_keys"][key.id,] = revoked.pop()
        return replace(found, expires_at=sooner)

    ended = asyncio.run(tables.end(key.id, ends_sooner))

    assert ended.revoked_at is not None
    assert ended.expires_at == sooner.replace(microsecond=123000)
    assert not opens(rows, text)


def test_an_unknown_key_is_named_with_those_that_there_are(rows: Rows) -> None:
    _, key = new_key()
    asyncio.run(tables_of(rows).keep(key))

    with pytest.raises(UnknownNameError, match="unknown"):
        asyncio.run(tables_of(rows).end("unknown", lambda found: found))
