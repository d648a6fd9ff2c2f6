"""Webhook endpoints: what is stored, and what is not."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cassandra.cluster import Session

from master_dataset.errors import UnknownNameError
from master_dataset.secrets_key import SecretsKey
from master_dataset.webhooks.endpoint import BlockedRecord, Endpoint, EndpointState, new_secret
from master_dataset.webhooks.endpoint_table import EndpointTable
from serving_layer.health.watched import EndpointHealth
from serving_layer.tables import AsyncSession, WatchTables

SECRETS_KEY = SecretsKey("k" * 43)
NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
ONE = Endpoint("e1", "acme", "https://acme.example/", "secret", 50, int(NOW.timestamp() * 1000))
BLOCKING = BlockedRecord("alerts", 1, 42, "1", NOW, "the endpoint answered 503")
FAILING = EndpointState(NOW, 503, NOW, NOW, 7, NOW, (BLOCKING,))


def test_an_endpoint_is_kept_suspended_resumed_and_removed_with_its_secret(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)
    table.add(ONE, NOW)
    table.see("e1", FAILING, NOW)

    found = table.find("e1")
    table.suspend("e1", NOW)
    suspended = table.find("e1")
    table.resume("e1")
    renewed = new_secret()
    table.renew(replace(ONE, secret=renewed))
    table.change("e1", "https://acme.example/other", 3)
    resumed = table.find("e1")
    table.remove("e1", NOW)

    assert (found.endpoint, found.endpoint.made_ms, found.state) == (ONE, ONE.made_ms, replace(FAILING, seen_at=NOW))
    assert (found.word, suspended.word, resumed.word) == ("retrying", "suspended", "ok")
    assert resumed.endpoint == replace(ONE, secret=renewed, url="https://acme.example/other", batch=3)
    left = shared_cassandra.execute("SELECT secret, sealed_secret FROM webhook_endpoints WHERE id = 'e1'").one()
    assert (left.secret, left.sealed_secret) == (None, None)
    with pytest.raises(UnknownNameError):
        table.find("e1")


def test_what_a_new_process_does_not_know_yet_stays_as_the_one_before_has_seen_it(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)
    table.add(replace(ONE, id="e2"), NOW)
    table.see("e2", FAILING, NOW)

    table.see("e2", EndpointState(), NOW)
    begun = table.find("e2").state
    table.see("e2", EndpointState(status=None, answered_at=NOW), NOW)
    no_answer = table.find("e2").state

    assert (begun.status, begun.answered_at, begun.delivered_at) == (503, NOW, NOW)
    assert (begun.failing_since, begun.blocking, begun.records) == (None, (), 0)
    assert (no_answer.status, no_answer.delivered_at) == (None, NOW)


def test_endpoint_has_begun_until_an_operator_resumes_it(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)
    table.add(replace(ONE, id="e8"), NOW)

    new = table.find("e8")
    table.begin("e8", NOW)
    begun = table.find("e8")
    table.suspend("e8", NOW)
    table.resume("e8")

    assert (new.has_begun, begun.has_begun, table.find("e8").has_begun) == (False, True, False)


def test_what_is_skipped_is_known_by_endpoint_and_place(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)

    for id_, offset in (("e3", 1), ("e3", 2), ("e3", 1), ("e4", 1)):
        table.skip(id_, ("alerts", 0, offset), "somebody", NOW)

    assert table.skips() == {"e3": {("alerts", 0, 1), ("alerts", 0, 2)}, "e4": {("alerts", 0, 1)}}


def test_alarms_look_at_every_endpoint_that_is_not_removed(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)
    at = {id_: NOW + timedelta(hours=hours) for hours, id_ in enumerate(("e5", "e6", "e7"), 1)}
    for id_, made in at.items():
        table.add(replace(ONE, id=id_), made)
    table.see("e5", FAILING, NOW)
    table.suspend("e6", NOW)
    table.remove("e7", NOW)

    found = asyncio.run(WatchTables(AsyncSession(shared_cassandra)).endpoints())

    ours = {each for each in found if each.created_at in at.values()}
    assert ours == {EndpointHealth(at["e5"], None, NOW, NOW), EndpointHealth(at["e6"], NOW, None, None)}


def test_a_secret_in_clear_of_a_former_release_is_encrypted_in_place(shared_cassandra: Session) -> None:
    table = EndpointTable(shared_cassandra, SECRETS_KEY)
    table.add(replace(ONE, id="e9"), NOW)
    shared_cassandra.execute("UPDATE webhook_endpoints SET secret = 'whsec_clear' WHERE id = 'e9'")
    found = table.find("e9")

    table.encrypt(found.endpoint)

    row = shared_cassandra.execute("SELECT secret, sealed_secret FROM webhook_endpoints WHERE id = 'e9'").one()
    assert (found.is_in_clear, found.endpoint.secret, row.secret) == (True, "whsec_clear", None)
    assert SECRETS_KEY.open(row.sealed_secret, "e9", "acme") == "whsec_clear"
    table.remove("e9", NOW)
