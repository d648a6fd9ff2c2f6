"""A secured stack: every process does its work with its own user, and nobody is let in without one."""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pg8000.native
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from deploy.cassandra import Address, Login, connect
from deploy.local.security import PROCESSES, Security
from galatea.client import Client
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of

pytestmark = pytest.mark.nightly

COUNT = 20


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings, environment = settings_of(tmp_path_factory.mktemp("secured") / "home", GALATEA_SECURE="true")
    stack = Stack(settings, environment)
    try:
        stack.run("up", "--secure", "--detach", "--without-airflow")
        yield stack
    finally:
        stack.run("down")


def receipt(number: int) -> bytes:
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": "1",
        "transaction_id": number,
        "vendor_fiscal_module": 1,
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 1, "sku": "8580001"}],
    }
    return json.dumps(body).encode()


def logs(stack: Stack) -> str:
    return "".join((stack.settings.home / "logs" / f"{name}.log").read_text() for name in PROCESSES if name != "batch")


def test_events_become_answers_that_a_recompute_confirms_and_no_right_is_missing(stack: Stack) -> None:
    stack.run("stores", "load", str(_stores(stack)))
    producer = Producer({**stack.settings.kafka.connection.client(), "enable.idempotence": True})
    for number in (*range(COUNT), *range(5)):
        producer.produce("pos_transactions", receipt(number), b"1")
    assert producer.flush(PATIENCE_SECONDS) == 0

    stack.galatea("rebuild", "--wait")
    verified = stack.galatea("verify")

    assert verified["cells"] > 0
    assert verified["differing"] == 0
    shown = stack.get("/v1/metrics/total_transactions_count", **around_now(), grain="total")
    assert [point["value"] for series in shown["series"] for point in series["points"]] == [COUNT]
    assert "not allow" not in logs(stack)
    assert "AUTHORIZATION" not in logs(stack)


def test_what_rest_starts_is_done_by_users_of_their_own(stack: Stack) -> None:
    settings, home = stack.settings, stack.settings.home
    with Client(settings.api_url, key_file=home / "operator.key", ca_file=settings.api.ca_file) as client:
        before = client.freshness().publication
        recompute = client.wait(client.recompute(reason="a test", full=True), at_most=PATIENCE_SECONDS)
        assert (recompute.state, recompute.problem) == ("published", None)
        client.rollback(before, reason="a test")
        assert client.freshness().publication == before + 2
        assert client.ingest("pos_transactions", [receipt(1000)]).accepted == 1
    stack.galatea("keys", "create", "--tenant", "default", "--scope", "read", "--name", "a test")
    assert "not allow" not in logs(stack)
    assert "AUTHORIZATION" not in logs(stack)


def test_sql_answers_over_tls(stack: Stack) -> None:
    settings = stack.settings
    key = (settings.home / "operator.key").read_text()
    place = {"host": "127.0.0.1", "port": settings.sql.port, "database": "galatea", "user": "default", "password": key}

    with pg8000.native.Connection(**place, ssl_context=settings.api_trust) as connection:
        assert connection.run("select 1") == [[1]]
    with pytest.raises(pg8000.native.DatabaseError, match="28000"):
        pg8000.native.Connection(**place, ssl_context=False)


def test_nobody_is_let_in_without_a_login_or_encryption(stack: Stack) -> None:
    settings = stack.settings
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": settings.kafka.bootstrap, "log_level": 0}).list_topics(timeout=5)
    with pytest.raises(CassandraUnavailableError):
        connect(Address(("127.0.0.1",), settings.cassandra.port))
    with pytest.raises(CassandraAccessError, match="asks for a login"):
        connect(replace(settings.cassandra.address, login=None))
    delivered = Login("cassandra", "cassandra")
    with pytest.raises(CassandraAccessError, match="rejects the user `cassandra`"):
        connect(replace(settings.cassandra.address, login=delivered))
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{settings.api.port}/healthz", trust_env=False)


def test_a_controller_asks_for_a_certificate(stack: Stack) -> None:
    context = ssl.create_default_context(cafile=str(Security(stack.settings.home).authority))
    plain = socket.create_connection(("127.0.0.1", stack.settings.kafka.controller_port), PATIENCE_SECONDS)
    with (
        pytest.raises(ssl.SSLError, match=r"BAD_CERTIFICATE|CERTIFICATE_REQUIRED"),
        context.wrap_socket(plain, server_hostname="127.0.0.1") as controller,
    ):
        controller.recv(1)


def test_a_process_cannot_do_the_work_of_another(stack: Stack) -> None:
    dispatcher = stack.settings.as_user("dispatcher")
    session = connect(dispatcher.cassandra.address)
    try:
        with pytest.raises(CassandraAccessError, match=r"no SELECT permission on <table galatea\.api_keys>"):
            session.execute("SELECT * FROM api_keys")
    finally:
        session.cluster.shutdown()
    refused: list[str] = []

    def acknowledged(error: KafkaError | None, _message: Message) -> None:
        refused.append("" if error is None else str(error.name()))

    producer = Producer({**dispatcher.kafka.connection.client(), "log_level": 0})
    producer.produce("pos_transactions", receipt(99), b"1", on_delivery=acknowledged)
    producer.flush(PATIENCE_SECONDS)
    assert refused == ["TOPIC_AUTHORIZATION_FAILED"]


def test_passwords_are_in_their_files_alone(stack: Stack) -> None:
    security = Security(stack.settings.home)
    everywhere = logs(stack) + json.dumps(stack.galatea("status")) + json.dumps(stack.galatea("doctor"))

    assert not [user for user, password in security.passwords().items() if password in everywhere]


def _stores(stack: Stack) -> Path:
    file = stack.settings.home.parent / "stores.yaml"
    file.write_text('stores:\n  - {id: "1", name: Corner, timezone: UTC, currency: EUR}\n')
    return file
