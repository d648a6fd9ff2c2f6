"""Settings of secured clusters: combinations without sense are refused by name, and no secret is ever shown."""

import json
import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from pydantic import SecretStr

from deploy import secret_files
from deploy.airflow.component import airflow, connections
from deploy.cassandra import Address, Login
from deploy.checks.environment import remote_findings
from deploy.local.stack import components, status
from deploy.secret_files import checked_tls, write_private
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from deploy.spark import executor_options
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import KafkaConnection, OAuthLogin, PasswordLogin
from master_dataset.tls import Tls
from tests.support.secured_servers import HOST, Authority, rejecting, serving

CANARY = "canary-1f3a"
SCRAM = {
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "SCRAM-SHA-512",
    "kafka_user": "galatea",
    "kafka_password": CANARY,
}
OAUTH = {
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "OAUTHBEARER",
    "kafka_oauth_token_url": "https://idp.example/token",
    "kafka_oauth_client_id": "galatea",
    "kafka_oauth_client_secret": CANARY,
}
SECRETS = {
    **SCRAM,
    "kafka_client_options": {"client.rack": CANARY},
    "cassandra_user": "galatea",
    "cassandra_password": CANARY,
}


def private(file: Path, text: str = CANARY, mode: int = 0o600) -> str:
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def problems(**settings: Any) -> list[str]:
    with pytest.raises(InvalidSettingsError) as refused:
        Settings(**settings)
    assert CANARY not in traceback.format_exc()
    assert CANARY not in str(refused.value)
    return list(refused.value.problems)


def test_without_settings_both_clusters_are_plain_and_local() -> None:
    settings = Settings()

    assert settings.kafka.connection == KafkaConnection("127.0.0.1:9092")
    assert settings.cassandra.address == Address(("127.0.0.1",), 9042, "galatea")


def test_a_user_of_kafka_comes_from_the_settings(tmp_path: Path) -> None:
    by_file = {"kafka_password": "", "kafka_password_file": private(tmp_path / "password", f"{CANARY}\n")}
    given = KafkaConnection("kafka-1:9093", Tls(), PasswordLogin("SCRAM-SHA-512", "galatea", CANARY))

    assert Settings(**SCRAM, kafka_bootstrap="kafka-1:9093").kafka.connection == given
    assert Settings(**{**SCRAM, **by_file}, kafka_bootstrap="kafka-1:9093").kafka.connection == given


def test_an_oauth_client_of_kafka_comes_from_the_settings(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings = Settings(**OAUTH, kafka_oauth_scope="kafka", kafka_oauth_ca_file=authority.file)

    login = OAuthLogin("https://idp.example/token", "galatea", CANARY, "kafka", authority.file)
    assert settings.kafka.connection == KafkaConnection("127.0.0.1:9092", Tls(), login)


def test_a_client_certificate_of_kafka_comes_from_the_settings(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("client", password=CANARY)
    settings = Settings(
        kafka_security_protocol="SSL",
        kafka_ca_file=authority.file,
        kafka_certificate_file=issued.certificate,
        kafka_key_file=issued.key,
        kafka_key_password_file=private(tmp_path / "key.password"),
    )

    assert settings.kafka.connection.tls == Tls(authority.file, issued.certificate, issued.key, CANARY)


def test_a_secured_cassandra_comes_from_the_settings(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("client", form=PrivateFormat.TraditionalOpenSSL)  # Python reads it
    settings = Settings(
        cassandra_contact_points="cassandra-1, cassandra-2",
        cassandra_user="galatea",
        cassandra_password_file=private(tmp_path / "password"),
        cassandra_ca_file=authority.file,
        cassandra_certificate_file=issued.certificate,
        cassandra_key_file=issued.key,
        cassandra_local_dc="dc1",
    )

    assert settings.cassandra.address == Address(
        ("cassandra-1", "cassandra-2"),
        9042,
        "galatea",
        Login("galatea", CANARY),
        Tls(authority.file, issued.certificate, issued.key),
        "dc1",
        "LOCAL_QUORUM",
    )


@pytest.mark.parametrize(
    ("given", "consistency"),
    [
        ({}, "QUORUM"),
        ({"cassandra_local_dc": "dc1"}, "LOCAL_QUORUM"),
        ({"cassandra_local_dc": "dc1", "cassandra_consistency": "QUORUM"}, "QUORUM"),
        ({"cassandra_consistency": "EACH_QUORUM"}, "EACH_QUORUM"),
    ],
)
def test_reads_and_writes_are_a_quorum_of_the_local_data_centre_if_there_is_one(
    given: dict[str, str], consistency: str
) -> None:
    assert Settings(**given).cassandra.address.consistency == consistency


@pytest.mark.parametrize("level", ["ANY", "ONE", "TWO", "LOCAL_ONE", "ALL", "SERIAL", "LOCAL_SERIAL", "quorum"])
def test_a_consistency_that_could_miss_what_was_written_is_refused_with_the_reason(level: str) -> None:
    [problem] = problems(cassandra_consistency=level)

    assert problem.startswith("`GALATEA_CASSANDRA_CONSISTENCY`: ")
    assert f"with `{level}`, a process might not read what was just written" in problem
    assert problem.endswith("use QUORUM, LOCAL_QUORUM or EACH_QUORUM")


def test_replication_is_the_number_of_copies_by_data_centre() -> None:
    assert Settings(cassandra_replication='{"dc1": 3, "dc2": 2}').cassandra.replication == {"dc1": 3, "dc2": 2}


@pytest.mark.parametrize("value", ["[3]", "3", "dc1", '{"dc1": 0}', '{"dc\'1": 3}', '{"dc1": "many"}'])
def test_any_other_replication_is_refused(value: str) -> None:
    [problem] = problems(cassandra_replication=value)

    assert problem.startswith("`GALATEA_CASSANDRA_REPLICATION")


NO_SENSE: list[tuple[dict[str, Any], str]] = [
    ({"kafka_user": "me"}, "GALATEA_KAFKA_USER has no effect with GALATEA_KAFKA_SECURITY_PROTOCOL=PLAINTEXT"),
    ({"kafka_password": CANARY}, "GALATEA_KAFKA_PASSWORD has no effect with"),
    ({"kafka_sasl_mechanism": "PLAIN"}, "GALATEA_KAFKA_SASL_MECHANISM has no effect with"),
    ({"kafka_oauth_scope": "x"}, "GALATEA_KAFKA_OAUTH_SCOPE has no effect with"),
    ({"kafka_ca_file": "x"}, "GALATEA_KAFKA_CA_FILE has no effect with"),
    ({"kafka_key_password": CANARY}, "GALATEA_KAFKA_KEY_PASSWORD has no effect with"),
    ({"kafka_security_protocol": "SSL", "kafka_user": "me"}, "GALATEA_KAFKA_USER has no effect with"),
    ({"kafka_security_protocol": "SASL_SSL"}, "GALATEA_KAFKA_SECURITY_PROTOCOL=SASL_SSL needs GALATEA_KAFKA_SASL_"),
    ({**SCRAM, "kafka_user": ""}, "GALATEA_KAFKA_SASL_MECHANISM=SCRAM-SHA-512 needs GALATEA_KAFKA_USER"),
    ({**SCRAM, "kafka_password": ""}, "needs GALATEA_KAFKA_PASSWORD or GALATEA_KAFKA_PASSWORD_FILE"),
    ({**SCRAM, "kafka_password_file": "x"}, "GALATEA_KAFKA_PASSWORD and GALATEA_KAFKA_PASSWORD_FILE are both set"),
    ({**SCRAM, "kafka_oauth_client_id": "x"}, "GALATEA_KAFKA_OAUTH_CLIENT_ID has no effect with"),
    ({**SCRAM, "kafka_security_protocol": "SASL_PLAINTEXT", "kafka_ca_file": "x"}, "GALATEA_KAFKA_CA_FILE has no"),
    ({**OAUTH, "kafka_user": "me"}, "GALATEA_KAFKA_USER has no effect with GALATEA_KAFKA_SASL_MECHANISM=OAUTHBEARER"),
    ({**OAUTH, "kafka_oauth_token_url": ""}, "needs GALATEA_KAFKA_OAUTH_TOKEN_URL"),
    ({**OAUTH, "kafka_oauth_client_id": ""}, "needs GALATEA_KAFKA_OAUTH_CLIENT_ID"),
    ({**OAUTH, "kafka_oauth_client_secret": ""}, "needs GALATEA_KAFKA_OAUTH_CLIENT_SECRET or"),
    (
        {**OAUTH, "kafka_oauth_token_url": "http://idp.example/", "kafka_oauth_ca_file": "x"},
        "GALATEA_KAFKA_OAUTH_CA_FILE has no effect without",
    ),
    (
        {"kafka_security_protocol": "SSL", "kafka_certificate_file": "x"},
        "CERTIFICATE_FILE needs GALATEA_KAFKA_KEY_FILE",
    ),
    ({"kafka_security_protocol": "SSL", "kafka_key_file": "x"}, "KEY_FILE needs GALATEA_KAFKA_CERTIFICATE_FILE"),
    ({"kafka_security_protocol": "SSL", "kafka_key_password": CANARY}, "KEY_PASSWORD needs GALATEA_KAFKA_KEY_FILE"),
    (
        {
            "kafka_security_protocol": "SSL",
            "kafka_certificate_file": "x",
            "kafka_key_file": "x",
            "kafka_key_password": CANARY,
            "kafka_key_password_file": "x",
        },
        "GALATEA_KAFKA_KEY_PASSWORD and GALATEA_KAFKA_KEY_PASSWORD_FILE are both set",
    ),
    ({"cassandra_user": "me"}, "GALATEA_CASSANDRA_USER needs GALATEA_CASSANDRA_PASSWORD or"),
    ({"cassandra_password": CANARY}, "GALATEA_CASSANDRA_PASSWORD needs GALATEA_CASSANDRA_USER"),
    ({"cassandra_certificate_file": "x"}, "GALATEA_CASSANDRA_CERTIFICATE_FILE needs GALATEA_CASSANDRA_CA_FILE, or"),
    ({"cassandra_tls": True, "cassandra_certificate_file": "x"}, "CERTIFICATE_FILE needs GALATEA_CASSANDRA_KEY_FILE"),
    ({"cassandra_consistency": "LOCAL_QUORUM"}, "LOCAL_QUORUM needs GALATEA_CASSANDRA_LOCAL_DC"),
    ({"cassandra_local_dc": "dc1", "cassandra_replication": {"dc2": 3}}, "has no copies in `dc1`"),
    ({"airflow_ca_file": "x"}, "GALATEA_AIRFLOW_CA_FILE has no effect without a GALATEA_AIRFLOW_URL of https"),
]
EXPOSED: list[tuple[dict[str, Any], str]] = [
    ({}, "airflow_url"),
    (OAUTH, "kafka_oauth_token_url"),
    ({"traces_headers": CANARY}, "traces_endpoint"),
    ({"traces_headers_file": "x"}, "traces_endpoint"),
]


@pytest.mark.parametrize(("given", "name"), EXPOSED)
@pytest.mark.parametrize("host", ["example", "10.0.0.7:8080", "127.0.0.1@example", "127.0.0.1.example"])
def test_a_secret_is_not_sent_to_another_machine_without_encryption(
    given: dict[str, Any], name: str, host: str
) -> None:
    [problem] = problems(**{**given, name: f"http://{host}/x"})

    assert problem.startswith(f"GALATEA_{name.upper()} must be https, except on this machine: ")


@pytest.mark.parametrize(("given", "name"), EXPOSED)
@pytest.mark.parametrize(
    "place", ["https://example/x", "http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]/x", "http://[no-url"]
)
def test_a_secret_is_sent_with_encryption_or_to_this_machine_alone(
    given: dict[str, Any], name: str, place: str
) -> None:
    assert Settings(**{**given, name: place}).values()[name] == place


def test_traces_without_header_fields_may_be_sent_in_clear() -> None:
    assert Settings(traces_endpoint="http://collector:4318/v1/traces").traces.endpoint


@pytest.mark.parametrize(("given", "problem"), NO_SENSE)
def test_a_combination_without_sense_is_refused_by_name(given: dict[str, Any], problem: str) -> None:
    assert [each for each in problems(**given) if problem in each], problem


@pytest.mark.parametrize(
    "given",
    [
        {"kafka_security_protocol": "sasl_ssl"},
        {**SCRAM, "kafka_sasl_mechanism": "GSSAPI"},
        {**OAUTH, "kafka_oauth_token_url": "idp.example"},
        {"kafka_client_options": f'{{"client.rack": "{CANARY}"'},
        {"kafka_client_options": f'["{CANARY}"]'},
        {"kafka_client_options": f'{{"client.rack": ["{CANARY}"]}}'},
    ],
)
def test_an_unknown_value_is_refused_and_not_repeated(given: dict[str, Any]) -> None:
    assert problems(**given)


@pytest.mark.parametrize("name", ["bootstrap.servers", "group.id", "sasl.password", "ssl.ca.location", "acks"])
def test_options_that_galatea_sets_are_refused_by_name(name: str) -> None:
    assert f"`{name}` is set by Galatea itself" in problems(kafka_client_options={name: CANARY})[0]


def test_further_options_of_the_client_are_texts_as_librdkafka_reads_them() -> None:
    options = '{"socket.keepalive.enable": true, "socket.timeout.ms": 9000, "client.rack": "a"}'

    assert Settings(kafka_client_options=options).kafka.connection.client_options == (
        ("client.rack", "a"),
        ("socket.keepalive.enable", "true"),
        ("socket.timeout.ms", "9000"),
    )


def test_no_secret_is_shown_by_settings_or_by_what_is_made_of_them() -> None:
    settings = Settings(**SECRETS)
    shown = [settings, settings.values(), settings.kafka, settings.kafka.model_dump(), settings.kafka.model_dump_json()]
    shown += [settings.kafka.connection, settings.cassandra.address, settings.cassandra.address.login]

    assert [each for each in shown if CANARY in f"{each} {each!r}"] == []


def test_no_secret_is_in_the_status_or_in_the_components_of_the_stack(tmp_path: Path) -> None:
    settings = Settings(**SECRETS, home=tmp_path)

    assert CANARY not in json.dumps(status(settings))
    assert CANARY not in repr(components(settings, airflow=True))


def test_a_child_process_has_the_same_settings_with_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(**SECRETS, cassandra_tls=True, cassandra_replication={"dc1": 3})
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)

    child = Settings()

    assert child == settings
    assert child.kafka.connection == settings.kafka.connection
    assert child.cassandra.address == settings.cassandra.address
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 - as Spark sends it


def test_settings_with_another_value_keep_their_secrets() -> None:
    replaced = Settings(**SECRETS).replace(kafka_port=9192)

    assert replaced.kafka.password == SecretStr(CANARY)
    assert replaced.kafka.connection.client()["client.rack"] == CANARY


def test_files_are_found_wherever_a_process_was_started_and_links_stay_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    private(tmp_path / "first")
    Path("password").symlink_to("first")

    settings = Settings(**{**SCRAM, "kafka_password": "", "kafka_password_file": "password"})

    assert settings.kafka.password_file == str(tmp_path / "password")


FILES: list[tuple[Callable[[Path], object], str, str]] = [
    (Path.unlink, "cannot be read: No such file", "correct GALATEA_KAFKA_PASSWORD_FILE"),
    (lambda file: file.write_text("\n"), "is empty", "write the secret into it"),
    (lambda file: file.write_bytes(b"\xff"), "cannot be read: it is not text", "correct GALATEA_KAFKA_"),
    (lambda file: file.chmod(0o644), "can be read by others (mode 644)", "chmod 600"),
    (lambda file: file.chmod(0o660), "can be read by others (mode 660)", "chmod 600"),
]


@pytest.mark.parametrize(("spoil", "message", "do"), FILES)
def test_a_file_with_a_secret_that_cannot_be_used_names_its_setting_and_the_next_step(
    tmp_path: Path, spoil: Callable[[Path], object], message: str, do: str
) -> None:
    file = Path(private(tmp_path / "password"))
    settings = Settings(**{**SCRAM, "kafka_password": "", "kafka_password_file": str(file)})
    spoil(file)

    with pytest.raises(OperatorError) as refused:
        _ = settings.kafka.connection

    assert "GALATEA_KAFKA_PASSWORD_FILE" in refused.value.message
    assert message in refused.value.message
    assert do in refused.value.do


@pytest.mark.parametrize(("owner", "is_read"), [(os.getuid(), True), (os.getuid() + 1, False)])
def test_a_group_may_read_only_the_files_of_root_as_kubernetes_mounts_secrets(
    tmp_path: Path,
    owner: int,
    is_read: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(secret_files, "_ROOT", owner)  # as if this user were root, or not
    file = private(tmp_path / "password", mode=0o440)
    settings = Settings(**{**SCRAM, "kafka_password": "", "kafka_password_file": file})

    if is_read:
        assert settings.kafka.connection.login == PasswordLogin("SCRAM-SHA-512", "galatea", CANARY)
    else:
        with pytest.raises(OperatorError, match="can be read by others"):
            _ = settings.kafka.connection


def certificates(tmp_path: Path, **more: Any) -> Settings:
    authority = Authority(tmp_path)
    issued = authority.issue("client", **more)
    return Settings(
        kafka_security_protocol="SSL",
        kafka_ca_file=authority.file,
        kafka_certificate_file=issued.certificate,
        kafka_key_file=issued.key,
    )


def refused_files(settings: Settings) -> OperatorError:
    with pytest.raises(OperatorError) as refused:
        _ = settings.kafka.connection
    return refused.value


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    settings = certificates(tmp_path)
    Path(settings.kafka.key_file).chmod(0o640 if os.getuid() else 0o644)

    assert "of GALATEA_KAFKA_KEY_FILE can be read by others" in refused_files(settings).message


def test_a_key_that_java_cannot_read_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    error = refused_files(certificates(tmp_path, form=PrivateFormat.TraditionalOpenSSL))

    assert "has the format `EC PRIVATE KEY`" in error.message
    assert "openssl pkcs8 -topk8 -in" in error.do


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    error = refused_files(certificates(tmp_path, password=CANARY))

    assert error.do == "set GALATEA_KAFKA_KEY_PASSWORD or GALATEA_KAFKA_KEY_PASSWORD_FILE"


def test_a_wrong_password_of_a_key_is_refused(tmp_path: Path) -> None:
    settings = certificates(tmp_path, password=CANARY).replace(kafka_key_password=f"not {CANARY}")

    assert "GALATEA_KAFKA_KEY_PASSWORD" in refused_files(settings).do


def test_a_pair_that_is_just_renewed_is_waited_for(tmp_path: Path) -> None:
    other, kept = Authority(tmp_path, "other").issue("other-client"), tmp_path / "kept.key"
    tls = Tls("", other.certificate, str(kept))
    kept.write_bytes(Path(certificates(tmp_path).kafka.key_file).read_bytes())
    kept.chmod(0o600)
    renewal = Timer(0.2, lambda: write_private(kept, Path(other.key).read_text()))
    renewal.start()

    assert checked_tls("GALATEA_TLS", tls, in_java=False) == tls
    renewal.join()


def test_the_key_of_another_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "RENEWAL_SECONDS", 0.1)
    other = Authority(tmp_path, "other").issue("other-client")

    error = refused_files(certificates(tmp_path).replace(kafka_key_file=other.key))

    assert "GALATEA_KAFKA_KEY_FILE cannot be used" in error.message
    assert error.do.startswith("check that the key belongs to the certificate")


def test_a_missing_authority_of_the_identity_provider_is_named() -> None:
    with pytest.raises(OperatorError, match="GALATEA_KAFKA_OAUTH_CA_FILE names `/nowhere`, which"):
        _ = Settings(**OAUTH, kafka_oauth_ca_file="/nowhere").kafka.connection


@pytest.mark.parametrize("setting", ["ca_file", "certificate_file", "key_file"])
def test_a_file_without_a_certificate_or_key_in_pem_is_refused(tmp_path: Path, setting: str) -> None:
    settings = certificates(tmp_path)
    Path(getattr(settings.kafka, setting)).write_text("a certificate")

    error = refused_files(settings)

    assert f"GALATEA_KAFKA_{setting.upper()}" in error.message
    assert "in PEM" in error.message


def test_airflow_gets_secrets_as_variables_and_never_in_a_connection_that_it_shows() -> None:
    settings = Settings(**SECRETS)
    shown, environment = connections(settings), airflow(settings).environment

    assert CANARY not in json.dumps(dict(shown))
    assert settings.secrets() == {
        "GALATEA_KAFKA_PASSWORD": CANARY,
        "GALATEA_KAFKA_CLIENT_OPTIONS": f'{{"client.rack": "{CANARY}"}}',
        "GALATEA_CASSANDRA_PASSWORD": CANARY,
    }
    assert settings.secrets().items() <= environment.items()


def test_java_may_ask_the_identity_provider_of_the_settings_and_no_other() -> None:
    options = executor_options(Settings(**OAUTH, spark_master="spark://spark-1:7077"))

    allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://idp.example/token"
    assert options["spark.executor.defaultJavaOptions"].endswith(f" {allowed}")
    assert "oauthbearer" not in executor_options(Settings(spark_master="yarn"))["spark.executor.defaultJavaOptions"]


def test_the_doctor_says_why_a_cluster_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("master_dataset.kafka.topics._REACH_SECONDS", 1)
    with serving(handler=rejecting()) as port:
        given = {**SCRAM, "kafka_security_protocol": "SASL_PLAINTEXT", "kafka_bootstrap": f"{HOST}:{port}"}
        [finding] = remote_findings(Settings(**given))

    assert (finding.check, finding.ok) == ("kafka", False)
    assert "rejects the user `galatea`" in finding.found
    assert "GALATEA_KAFKA_PASSWORD" in finding.do
    assert CANARY not in repr(finding)
