"""A secured home: files for its owner alone, settings that find them, and the rights of each process."""

import json
import re
import socket
import ssl
import stat
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from deploy.airflow.component import airflow
from deploy.local import authority
from deploy.local import security as module
from deploy.local.authority import Authority as IssuingAuthority
from deploy.local.authority import end_if_issued
from deploy.local.cassandra import cassandra_nodes
from deploy.local.kafka import brokers
from deploy.local.nodes import HOSTS, record_nodes
from deploy.local.rights import RIGHTS, SOURCES, Rights, kafka_rules
from deploy.local.security import BROKER, CASSANDRA, PROCESSES, SERVER, Security
from deploy.local.stack import components, status
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import PasswordLogin
from serving_layer.tables import readers
from tests.support.secured_servers import Authority, serving
from views.control.speed_layout import CELL_TABLES

SCHEMA = Path("deploy/schema")


@pytest.fixture
def security(tmp_path: Path) -> Security:
    """A home that `galatea up --secure` has made."""
    home = tmp_path / "home"
    home.mkdir()
    settings = Settings(home=home, secure=True)
    record_nodes(home, settings.nodes)
    (home / "kafka").mkdir()
    made = Security(home)
    made.prepare()
    return made


def test_every_file_is_for_its_owner_alone(security: Security) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in security.folder.iterdir()}

    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(security.folder.stat().st_mode) == 0o700
    assert modes.keys() >= {"ca.pem", "ca.key", "server.pem", "server.key", "operator.password", "speed.password"}


def test_passwords_differ_and_are_kept(security: Security) -> None:
    before = {path.name: path.read_text() for path in security.folder.iterdir()}

    security.prepare()

    assert {path.name: path.read_text() for path in security.folder.iterdir()} == before
    passwords = [text for name, text in before.items() if name.endswith(".password")]
    assert len(set(passwords)) == len(passwords) == len(PROCESSES) + 2


def test_the_certificate_is_trusted_at_every_address_of_the_stack(security: Security) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(security.certificate, security.key)
    client = ssl.create_default_context(cafile=security.authority)

    with serving(context) as port:
        for host in ("127.0.0.1", "localhost"):
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                client.wrap_socket(plain, server_hostname=host),
            ):
                pass


def test_a_certificate_that_ends_soon_is_issued_again_by_the_same_authority(
    security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [security.certificate, *map(security.key_and_certificate, (BROKER, CASSANDRA))]
    authority, first = security.authority.read_bytes(), [file.read_bytes() for file in files]
    monkeypatch.setattr(module, "RENEWED_BEFORE", timedelta(days=400))

    security.prepare()

    assert security.authority.read_bytes() == authority
    for file, before in zip(files, first, strict=True):
        assert file.read_bytes() != before
        renewed = x509.load_pem_x509_certificate(file.read_bytes())
        assert renewed.not_valid_after_utc > datetime.now(UTC) + timedelta(days=390)


@pytest.mark.parametrize(("begins", "lasts"), [(timedelta(days=365), 3650), (timedelta(days=-9), -1)])
def test_an_authority_that_a_wrong_clock_made_is_named(
    security: Security, monkeypatch: pytest.MonkeyPatch, begins: timedelta, lasts: int
) -> None:
    with monkeypatch.context() as clock:
        clock.setattr(authority, "_BEFORE", -begins)
        made = IssuingAuthority.new("Galatea local authority", timedelta(days=lasts)).own
    security.authority.write_text(made.certificate_text)

    with pytest.raises(OperatorError, match=r"`.*ca.pem` is valid from ") as refused:
        security.prepare()

    assert "correct the clock" in refused.value.do


def test_a_certificate_that_was_made_while_the_clock_was_ahead_is_issued_again(
    security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    security.certificate.unlink()
    with monkeypatch.context() as clock:
        clock.setattr(authority, "_BEFORE", timedelta(days=-300))
        security.prepare()
    before = security.certificate.read_text()

    security.prepare()

    assert security.certificate.read_text() != before
    assert end_if_issued(security.authority, SERVER, security.certificate, security.key) is not None


@pytest.mark.parametrize(("name", "is_node"), [(BROKER, True), (CASSANDRA, True), (SERVER, False)])
def test_only_nodes_can_prove_who_they_are_by_a_certificate(security: Security, *, name: str, is_node: bool) -> None:
    """Brokers let in whoever has a certificate as a controller, and nodes of Cassandra as another node."""
    node = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    node.load_cert_chain(security.key_and_certificate(BROKER))
    node.load_verify_locations(security.authority)
    node.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=security.authority)
    files = (security.certificate, security.key) if name == SERVER else (security.key_and_certificate(name),)
    client.load_cert_chain(*files)

    accepted = nullcontext() if is_node else pytest.raises(ssl.SSLError)

    with (
        serving(node, lambda connection: connection.sendall(b"x")) as port,
        socket.create_connection(("127.0.0.1", port)) as plain,
        accepted,
        client.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        assert wrapped.read() == b"x"

    assert end_if_issued(security.authority, name, files[0], files[-1])


def test_a_home_whose_servers_had_the_certificate_of_the_brokers_gets_others(security: Security) -> None:
    issued = own(security).issue(BROKER, HOSTS, timedelta(days=397))
    security.certificate.write_text(issued.certificate_text)
    security.key.write_text(issued.key_text)
    former = security.folder / "server-with-key.pem"
    former.write_text(issued.key_text + issued.certificate_text)
    for name in (BROKER, CASSANDRA):
        security.key_and_certificate(name).unlink()

    security.prepare()

    assert_current(security)
    assert not former.exists()


@pytest.mark.parametrize("missing", ["server.key", "server.pem", "broker-with-key.pem", "cassandra-with-key.pem"])
@pytest.mark.parametrize("text", [None, "no PEM"])
def test_a_certificate_that_is_missing_or_cannot_be_read_is_issued_again(
    security: Security, missing: str, text: str | None
) -> None:
    if text is None:
        (security.folder / missing).unlink()
    else:
        (security.folder / missing).write_text(text)

    security.prepare()

    assert_current(security)


def test_a_start_that_was_interrupted_between_key_and_certificate_is_repaired(security: Security) -> None:
    security.key.write_text(own(security).issue(SERVER, HOSTS, timedelta(days=397)).key_text)

    security.prepare()

    assert_current(security)


def test_a_start_that_has_nothing_to_issue_does_not_need_the_key_of_the_authority(security: Security) -> None:
    (security.folder / "ca.key").unlink()

    security.prepare()


def assert_current(security: Security) -> None:
    """Each certificate is of the one it is for, and fits its key."""
    assert end_if_issued(security.authority, SERVER, security.certificate, security.key)
    for name in (BROKER, CASSANDRA):
        file = security.key_and_certificate(name)
        assert end_if_issued(security.authority, name, file, file)


def own(security: Security) -> IssuingAuthority:
    """The authority of a home."""
    return IssuingAuthority.read(security.authority, security.folder / "ca.key")


def test_commands_are_the_operator_and_every_process_is_itself(security: Security) -> None:
    settings = Settings(home=security.home)

    assert settings.kafka.connection.protocol == "SASL_SSL"
    assert isinstance(settings.kafka.connection.login, PasswordLogin)
    assert settings.kafka.connection.login.user == "operator"
    assert settings.cassandra.address.login is not None
    assert settings.cassandra.address.login.user == "operator"
    speed = settings.as_user("speed")
    assert isinstance(speed.kafka.connection.login, PasswordLogin)
    assert speed.kafka.connection.login == PasswordLogin("SCRAM-SHA-512", "speed", security.password("speed"))
    assert speed.cassandra.address.login is not None
    assert speed.cassandra.address.login.password == security.password("speed")


def test_a_child_process_has_the_same_settings(security: Security, monkeypatch: pytest.MonkeyPatch) -> None:
    speed = Settings(home=security.home).as_user("speed")
    for name, value in speed.environment().items():
        monkeypatch.setenv(name, value)

    assert Settings().values() == speed.values()


def test_addresses_are_those_of_tls(security: Security) -> None:
    shown = {each["name"]: each for each in status(Settings(home=security.home))["components"]}

    assert shown["api"]["url"] == "https://127.0.0.1:8000"
    assert security.password("operator") not in json.dumps(shown)


def test_each_component_has_its_own_user_in_its_environment(security: Security) -> None:
    found = {each.name: dict(each.environment) for each in components(Settings(home=security.home))}

    for name in ("archive", "speed", "alerts", "dispatcher", "api", "sql"):
        assert found[name]["GALATEA_KAFKA_USER"] == found[name]["GALATEA_CASSANDRA_USER"] == name
        assert not any(security.password(user) in text for user in PROCESSES for text in found[name].values())


def test_clusters_of_your_own_keep_their_own_logins(security: Security) -> None:
    settings = Settings(home=security.home, kafka_bootstrap="kafka.example:9093")

    assert settings.kafka.connection.login is None
    assert settings.as_user("speed").kafka.connection.login is None
    assert settings.cassandra.address.login is not None


def test_a_home_keeps_whether_it_is_secured(tmp_path: Path, security: Security) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    record_nodes(plain, Settings(home=plain).nodes)
    (plain / "kafka").mkdir()

    with pytest.raises(OperatorError, match="without security"):
        record_nodes(plain, Settings(home=plain, secure=True).nodes)
    record_nodes(security.home, Settings(home=security.home).nodes)


def test_brokers_and_nodes_ask_for_logins(security: Security) -> None:
    settings = Settings(home=security.home)
    (security.home / "kafka" / "data").mkdir()
    (security.home / "kafka" / "data" / "meta.properties").write_text("cluster.id=x\n")
    brokers(settings)[0].prepare()
    cassandra_nodes(settings)[0].prepare()

    properties = security.home / "kafka" / "server.properties"
    assert stat.S_IMODE(properties.stat().st_mode) == 0o600
    assert "PLAINTEXT" not in properties.read_text()
    assert "StandardAuthorizer" in properties.read_text()
    nodes = (security.home / "cassandra" / "cassandra.yaml").read_text()
    assert "PasswordAuthenticator" in nodes
    assert "internode_encryption: all" in nodes


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"api_host": "0.0.0.0"}, "GALATEA_API_HOST needs GALATEA_TLS_CERTIFICATE_FILE, or GALATEA_API_PROXIES"),  # noqa: S104
        ({"sql_host": "::"}, "GALATEA_SQL_HOST needs GALATEA_TLS_CERTIFICATE_FILE"),
        ({"api_host": "10.0.0.7"}, "GALATEA_API_HOST needs"),
        ({"tls_certificate_file": "/x.pem"}, "GALATEA_TLS_CERTIFICATE_FILE needs GALATEA_TLS_KEY_FILE"),
    ],
)
def test_what_leaves_this_machine_is_encrypted_or_refused(given: dict[str, str], missing: str) -> None:
    with pytest.raises(InvalidSettingsError, match=missing):
        Settings(**given)


def test_an_address_of_others_is_accepted_behind_a_proxy_or_with_a_certificate(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("server")
    encrypted = Settings(
        api_host="0.0.0.0",  # noqa: S104
        sql_host="0.0.0.0",  # noqa: S104
        tls_certificate_file=issued.certificate,
        tls_key_file=issued.key,
    )

    assert encrypted.api_url == "https://127.0.0.1:8000"
    assert Settings(api_host="10.0.0.7", api_proxies="10.0.0.0/8").api_url == "http://10.0.0.7:8000"
    assert Settings(api_url="https://galatea.example/").api_url == "https://galatea.example"


def tables() -> set[str]:
    """All that the schema creates and does not drop for good."""
    found = set[str]()
    for file in sorted(SCHEMA.glob("*.cql")):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:2] == ["CREATE", "TABLE"]:
                found.add(words[5])
            elif words[:2] == ["DROP", "TABLE"]:
                found.discard(words[4].rstrip(";"))
    return found


def test_rights_name_tables_that_exist_and_leave_none_out() -> None:
    named = {table for rights in RIGHTS.values() for table in (*rights.reads, *rights.writes)}

    assert named == tables() | {"migrations"}


@pytest.mark.parametrize("user", ["api", "sql"])
def test_who_answers_may_read_every_table_that_answers_are_read_from(user: str) -> None:
    text = Path(readers.__file__).read_text()
    named = set(re.findall(r"\bFROM ([a-z_]+)\b", text)) | set(CELL_TABLES)

    assert {"lag", "batch_cells", "publications"} <= named
    assert named - {*RIGHTS[user].reads, *RIGHTS[user].writes} == set()


def test_a_secured_stack_shows_nothing_without_a_key_unless_a_tenant_is_named(security: Security) -> None:
    assert Settings(home=security.home).api.tenant_without_key == ""
    assert Settings(home=security.home, anonymous_tenant="shown").api.tenant_without_key == "shown"


@pytest.mark.parametrize("user", [user for user in PROCESSES if user not in ("api", "sql")])
def test_only_who_checks_keys_reads_them(user: str) -> None:
    assert "api_keys" not in (*RIGHTS[user].reads, *RIGHTS[user].writes)


def test_sql_and_the_archive_change_no_views() -> None:
    assert RIGHTS["sql"].writes == ("process_releases",)
    assert not {"speed_cells", "batch_cells", "publications"} & set(RIGHTS["archive"].writes)


def test_access_in_kafka_is_by_name_and_groups_by_prefix() -> None:
    rights = Rights(consumes=(SOURCES, "alerts"), produces=("alerts",), groups=("galatea.x",), transactions=("tx.",))

    rules = kafka_rules(rights, "somebody", ["a", "b"])

    said = {tuple(map(_name, (each.restype, each.name, each.operation, each.resource_pattern_type))) for each in rules}
    assert said == {
        *(
            ("TOPIC", name, operation, "LITERAL")
            for name in ("a", "b", "alerts")
            for operation in ("READ", "DESCRIBE_CONFIGS")
        ),
        ("TOPIC", "alerts", "WRITE", "LITERAL"),
        ("GROUP", "galatea.x", "READ", "PREFIXED"),
        ("TRANSACTIONAL_ID", "tx.", "WRITE", "PREFIXED"),
    }
    assert {each.principal for each in rules} == {"User:somebody"}


def _name(of: object) -> str:
    return str(getattr(of, "name", of))


def test_the_airflow_of_the_stack_serves_tls_and_its_tasks_trust_it(security: Security) -> None:
    settings = Settings(home=security.home, airflow_port=18080)
    given = airflow(settings).environment or {}

    assert (settings.airflow.url, settings.airflow.ca_file) == ("https://127.0.0.1:18080", str(security.authority))
    assert given["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "https://127.0.0.1:18080/execution/"
    assert security.authority.read_text() in Path(given["AIRFLOW__API__SSL_CERT"]).read_text()
    assert json.loads(given["AIRFLOW_CONN_GALATEA"])["extra"]["airflow_ca_file"] == str(security.authority)


def test_an_airflow_of_your_own_is_asked_as_the_settings_say(security: Security) -> None:
    settings = Settings(home=security.home, airflow_url="https://airflow.example:8080")

    assert (settings.airflow.url, settings.airflow.ca_file) == ("https://airflow.example:8080", "")
