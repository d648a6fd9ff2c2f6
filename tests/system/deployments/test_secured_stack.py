"""A secured stack: every process does its work with its own user, and nobody is let in without one."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pg8000.native
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from deploy.airflow.client import REBUILD, AirflowClient
from deploy.airflow.component import airflow
from deploy.cassandra import Address, Login, connect
from deploy.checks import kafka as kafka_checks
from deploy.checks.deployment import deployment_groups
from deploy.checks.finding import Finding
from deploy.local.authority import Authority
from deploy.local.ports import free_ports
from deploy.local.rights import RIGHTS
from deploy.local.security import BROKER, CASSANDRA, PROCESSES, Security
from deploy.local.supervisor import Supervisor
from deploy.secret_files import write_private
from deploy.settings import Settings
from galatea.client import Client
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of, until, watched

pytestmark = pytest.mark.nightly

COUNT = 20
QUIET_SECONDS = 5.0


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
    receipts = [receipt(number) for number in range(COUNT)]
    for sent in (
        *receipts,
        *receipts[:5],
    ):  # only the same bytes are the same receipt
        producer.produce("pos_transactions", sent, b"1")
    assert producer.flush(PATIENCE_SECONDS) == 0

    stack.galatea("rebuild", "--wait")
    verified = stack.galatea("verify")

    assert verified["cells"] > 0
    assert verified["differing"] == 0
    shown = stack.get("/v1/metrics/total_transactions_count", **around_now(), grain="total")
    assert [point["value"] for series in shown["series"] for point in series["points"]] == [COUNT]
    assert "not allow" not in logs(stack)
    assert "AUTHORIZATION" not in logs(stack)


def test_time_passes_for_alerts_while_nothing_arrives(stack: Stack) -> None:
    rule = {"kind": "silence", "id": "quiet", "source": "pos_transactions", "minutes": 2, "hours": "always"}
    rules = stack.settings.home / "rules.yaml"
    rules.write_text(json.dumps({"rules": [rule]}))
    consumer = Consumer({**stack.settings.kafka.connection.client(), "group.id": "galatea.lag"})

    def end() -> int:
        metadata = consumer.list_topics("pos_transactions", PATIENCE_SECONDS).topics["pos_transactions"]
        places = [TopicPartition("pos_transactions", number) for number in metadata.partitions]
        return sum(consumer.get_watermark_offsets(place, PATIENCE_SECONDS)[1] for place in places)

    stack.run("alerts", "apply", str(rules))
    before = end()
    until(lambda: end() > before, "no tick is written")

    consumer.close()
    assert "tick_failed" not in logs(stack)


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


def test_only_nodes_can_join_a_cluster(stack: Stack) -> None:
    """Whoever has the certificate of the API is no controller of Kafka, and no node of Cassandra."""
    security, settings = Security(stack.settings.home), stack.settings
    of_api = security.certificate, security.key
    brokers, nodes = security.key_and_certificate(BROKER), security.key_and_certificate(CASSANDRA)

    def is_let_in(port: int, files: tuple[Path, Path | None] | None) -> bool:
        context = ssl.create_default_context(cafile=str(security.authority))
        if files is not None:
            context.load_cert_chain(*files)
        plain = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as node:
                node.settimeout(QUIET_SECONDS)
                node.recv(1)
        except TimeoutError:  # it waits for a request
            return True
        except (ssl.SSLError, ConnectionResetError):
            return False
        return False

    for port, own in ((settings.kafka.controller_port, brokers), (settings.cassandra.storage_port, nodes)):
        assert [is_let_in(port, files) for files in ((own, None), of_api, None)] == [True, False, False], port


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


def test_the_doctor_finds_no_fault_and_every_process_has_its_rights(stack: Stack) -> None:
    findings = {each["check"]: each for each in stack.galatea("doctor", "--deployment")["findings"]}

    assert {name for name in PROCESSES if findings[f"rights of {name}"]["ok"]} == set(PROCESSES)
    kafka, cassandra = stack.settings.kafka.port, stack.settings.cassandra.port
    for check in (f"certificate of 127.0.0.1:{kafka}", f"certificate of 127.0.0.1:{cassandra}", "private files"):
        assert findings[check]["ok"], findings[check]
    assert {check for check, each in findings.items() if each["blocks"]} == set()


def test_the_doctor_names_a_wrong_password_and_another_authority(stack: Stack, tmp_path: Path) -> None:
    password = tmp_path / "wrong.password"
    write_private(password, "wrong")
    own = Authority.new("another", timedelta(days=1)).own.certificate_text
    authority = tmp_path / "another.pem"
    authority.write_text(own)
    refused = faults(stack.settings.replace(kafka_password_file=str(password), cassandra_password_file=str(password)))
    untrusted = faults(stack.settings.replace(kafka_ca_file=str(authority), cassandra_ca_file=str(authority)))

    server = f"server 127.0.0.1:{stack.settings.kafka.port}"
    assert "rejects the user `operator`" in refused[server].found
    assert "GALATEA_KAFKA_PASSWORD" in refused[server].do
    assert "rejects the user `operator`" in refused["contact point 127.0.0.1"].found
    assert "GALATEA_CASSANDRA_PASSWORD" in refused["contact point 127.0.0.1"].do
    for check in (server, "contact point 127.0.0.1"):
        assert "is not signed by an authority in" in untrusted[check].found
        assert "_CA_FILE" in untrusted[check].do
        assert untrusted[check].blocks
    assert not [each for each in (*refused.values(), *untrusted.values()) if "Traceback" in each.found or not each.do]


def test_the_doctor_names_the_rights_that_a_user_lacks(stack: Stack) -> None:
    session = connect(replace(stack.settings.cassandra.address, keyspace=None))
    try:
        session.execute('REVOKE SELECT ON TABLE galatea.stores FROM "sql"')
        lacking = faults(stack.settings, "sql")
    finally:
        session.execute('GRANT SELECT ON TABLE galatea.stores TO "sql"')
        session.cluster.shutdown()
    of_another = kafka_checks.rights_finding("alerts", stack.settings.as_user("dispatcher"), RIGHTS["alerts"])

    assert lacking["rights of sql"].found == "the role `sql` lacks SELECT on `stores`"
    assert "rights-in-cassandra" in lacking["rights of sql"].do
    assert of_another.found.startswith("the user `dispatcher` may not READ ")
    assert "`pos_transactions`" in of_another.found
    assert "`alerts`" in of_another.found.partition("not WRITE ")[2]
    assert "transactional ids that begin with `galatea.alerts.`" in of_another.found


def test_the_doctor_names_a_topic_that_does_not_follow_the_rules(stack: Stack) -> None:
    admin = AdminClient(stack.settings.kafka.connection.client())

    def set_options(options: dict[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in options.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, "weather_observations", incremental_configs=entries)
        [done] = admin.incremental_alter_configs([resource]).values()
        done.result(PATIENCE_SECONDS)

    set_options({"message.timestamp.type": "CreateTime", "retention.ms": "86400000"})
    try:
        finding = faults(stack.settings)["topic weather_observations"]
    finally:
        set_options({"message.timestamp.type": "LogAppendTime", "retention.ms": "1209600000"})

    assert finding.blocks
    assert "the cut needs the broker's time (LogAppendTime)" in finding.found
    assert "retention.ms=86400000: less than GALATEA_SPEED_TTL_DAYS" in finding.found
    assert "galatea migrate" in finding.do
    assert "topic weather_observations" not in faults(stack.settings)


def test_airflow_serves_tls_and_its_tasks_trust_it(stack: Stack) -> None:
    settings = stack.settings.replace(airflow_port=free_ports(1)[0], airflow_url="")
    client = AirflowClient.of(settings)
    with Supervisor(settings.home / "scheduling", [airflow(settings)]) as running, watched(running):
        client.begin_rebuild("secured", "a test")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (state := client.state("secured", REBUILD)) not in {"success", "failed"}:
            assert time.monotonic() < deadline, state
            time.sleep(1)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{settings.airflow.port}/api/v2/version", trust_env=False)

    assert settings.airflow.url.startswith("https://")
    assert state == "success"


def faults(settings: Settings, process: str = "") -> dict[str, Finding]:
    """What the doctor finds that is not good."""
    return {
        each.check: each for group in deployment_groups(settings, process) for each in group.findings if not each.ok
    }
