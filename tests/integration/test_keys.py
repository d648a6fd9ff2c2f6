"""Keys in real Cassandra, as the command line makes and ends them and the API reads them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cassandra.cluster import Session

from deploy.cassandra import connect
from deploy.clusters import KEYSPACE
from master_dataset.secrets_key import SecretsKey
from serving_layer.keys.key import Key
from serving_layer.tables import AsyncSession, KeyTables
from tests.integration.conftest import Stack
from tests.integration.test_lag import until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_key_is_read_as_it_was_kept(shared_cassandra: Session) -> None:
    _, key = Key.new("acme", ("ingest", "read"), "Anna's notebook", NOW, NOW + timedelta(days=1))
    lasting = replace(key, id="0" * 12, expires_at=None)
    revoked = lasting.revoked(NOW)

    async def kept() -> list[Key]:
        tables = KeyTables(AsyncSession(shared_cassandra), SecretsKey("k" * 43))
        await tables.keep(key)
        await tables.keep(lasting)
        assert await tables.end(lasting.id, lambda found: found.revoked(NOW)) == revoked
        return [each for each in await tables.keys() if each.tenant == "acme"]

    assert sorted(asyncio.run(kept()), key=lambda each: each.id) == sorted([key, revoked], key=lambda each: each.id)


def status(stack: Stack, key: str) -> int:
    return stack.request("GET", "/v1/stores", key=key).status_code


def test_a_key_lives_from_its_creation_to_its_revocation(stack: Stack) -> None:
    made = stack.galatea("keys", "create", "--tenant", "acme", "--scope", "read", "--name", "a test")
    until(lambda: status(stack, made["key"]) == 200)

    rotated = stack.galatea("keys", "rotate", made["id"], "--overlap", "1")
    until(lambda: status(stack, rotated["key"]) == 200)
    assert status(stack, made["key"]) == 200

    stack.galatea("keys", "revoke", rotated["id"])
    until(lambda: status(stack, rotated["key"]) == 401)

    listed = {key["id"]: key for key in stack.galatea("keys", "list")["keys"]}
    assert (listed[rotated["id"]]["state"], listed[made["id"]]["state"]) == ("revoked", "good")
    assert "key" not in listed[made["id"]]


def test_a_shell_can_keep_what_the_command_prints(stack: Stack) -> None:
    key = stack.run("keys", "create", "--tenant", "acme", "--scope", "read").removesuffix("\n")

    until(lambda: status(stack, key) == 200)


def test_a_row_that_a_client_of_cassandra_has_written_is_no_key_until_an_operator_signs_it(stack: Stack) -> None:
    text, key = Key.new("acme", ("read",), "somebody else", NOW, None)
    with connect(stack.settings.cassandra.address).cluster as cluster:
        cluster.connect(KEYSPACE).execute(
            "INSERT INTO api_keys (id, digest, tenant, scopes, created_at) VALUES (%s, %s, %s, %s, %s)",
            (key.id, key.digest, key.tenant, set(key.scopes), key.created_at),
        )

    until(lambda: key.id in {each["id"] for each in stack.galatea("keys", "list")["keys"]})
    before = status(stack, text)
    [signed] = stack.galatea("keys", "sign", key.id)["keys"]

    assert (before, signed["state"]) == (401, "good")
    until(lambda: status(stack, text) == 200)
