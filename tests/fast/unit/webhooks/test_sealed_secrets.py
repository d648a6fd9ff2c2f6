"""The secrets of webhooks are encrypted in Cassandra, each for its own row."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from deploy.webhooks.endpoints import AsyncEndpoints
from master_dataset.secrets_key import SealedTextError, SecretsKey
from master_dataset.webhooks.endpoint import Endpoint, new_secret
from master_dataset.webhooks.endpoint_table import EndpointTable
from tests.support.cassandra_rows import Rows

if TYPE_CHECKING:
    from cassandra.cluster import Session

NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
SECRETS_KEY = SecretsKey("x" * 43)
ONE = Endpoint("e1", "acme", "https://acme.example/", new_secret(), 50, int(NOW.timestamp() * 1000))


@pytest.fixture
def rows() -> Rows:
    keys = {"webhook_endpoints": ("id",), "webhook_states": ("id",), "webhook_skips": ("id",)}
    return Rows(keys)


def table_of(rows: Rows, key: SecretsKey = SECRETS_KEY) -> EndpointTable:
    return EndpointTable(cast("Session", rows), key)


def row(rows: Rows, id_: str = "e1") -> dict[str, Any]:
    return rows.tables["webhook_endpoints"][id_,]


def write_in_clear(rows: Rows, secret: str) -> None:
    """As a former release does."""
    rows.execute(
        "INSERT INTO webhook_endpoints (id, tenant, url, secret, most_alerts, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        ("e1", "acme", ONE.url, secret, 50, NOW),
    )


def test_a_secret_is_nowhere_in_the_table_and_is_read_as_it_was(rows: Rows) -> None:
    table_of(rows).add(ONE, NOW)

    assert ONE.secret not in str(rows.tables)
    assert table_of(rows).find("e1").endpoint == ONE


def test_a_new_secret_replaces_one_in_clear(rows: Rows) -> None:
    write_in_clear(rows, "whsec_old")
    renewed = Endpoint("e1", "acme", ONE.url, new_secret(), 50, ONE.made_ms)

    table_of(rows).renew(renewed)

    assert row(rows)["secret"] is None
    assert renewed.secret not in str(rows.tables)
    assert table_of(rows).find("e1").endpoint == renewed


def test_a_secret_of_a_former_release_is_read_and_encrypted_by_the_dispatcher(rows: Rows) -> None:
    write_in_clear(rows, ONE.secret)
    endpoints = AsyncEndpoints(table_of(rows))

    before = asyncio.run(endpoints.desired())
    after = asyncio.run(endpoints.desired())

    assert [each.endpoint for each in (*before, *after)] == [ONE, ONE]
    assert ONE.secret not in str(rows.tables)


def test_a_secret_that_an_old_process_replaces_meanwhile_is_not_lost(rows: Rows) -> None:
    write_in_clear(rows, "whsec_old")
    table = table_of(rows)
    read = table.find("e1")
    write_in_clear(rows, ONE.secret)

    table.encrypt(read.endpoint)

    assert table.find("e1").endpoint.secret == ONE.secret


def test_an_endpoint_with_the_secret_of_another_row_or_another_key_is_not_called(rows: Rows) -> None:
    table_of(rows).add(ONE, NOW)
    table_of(rows).add(Endpoint("e2", "evil", "https://evil.example/", new_secret(), 1, ONE.made_ms), NOW)
    row(rows, "e2")["sealed_secret"] = row(rows)["sealed_secret"]

    found = {each.endpoint.id: each for each in table_of(rows).all()}
    with_another_key = table_of(rows, SecretsKey("y" * 43)).find("e1")

    assert (found["e1"].word, found["e2"].word, with_another_key.word) == ("ok", "suspended", "suspended")
    assert found["e2"].endpoint.secret == with_another_key.endpoint.secret == ""


def test_a_removed_endpoint_has_no_secret_left(rows: Rows) -> None:
    table = table_of(rows)
    table.add(ONE, NOW)

    table.remove("e1", NOW)

    assert (row(rows)["secret"], row(rows)["sealed_secret"]) == (None, None)


@pytest.mark.parametrize("sealed", ["", "1:", "1:AAAA", "whsec_x", "1:ä", "2:AAAA"])
def test_what_was_never_sealed_cannot_be_opened(sealed: str) -> None:
    with pytest.raises(SealedTextError):
        SECRETS_KEY.open(sealed, "e1")


def test_the_same_secret_is_sealed_differently_each_time_and_the_key_is_never_shown() -> None:
    sealed = {SECRETS_KEY.seal("a", "e1") for _ in range(3)}

    assert len(sealed) == 3
    assert "xxxx" not in f"{SECRETS_KEY!r} {SECRETS_KEY.fingerprint}"
