"""What Kafka rejects is said in a sentence that names the setting: with librdkafka itself, and a broker of the test."""

import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from master_dataset.errors import BrokerAccessError, BrokerUnavailableError, OperatorError
from master_dataset.kafka import client_errors, ingest, topics
from master_dataset.kafka.client_errors import ClientErrors, explained, rejection_in
from master_dataset.kafka.connection import KafkaConnection, OAuthLogin, PasswordLogin
from master_dataset.kafka.topics import Topics
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.tls import Tls
from tests.support.secured_servers import HOST, UNSUPPORTED_MECHANISM, Authority, rejecting, serving

CANARY = "canary-1f3a"
LOGIN = PasswordLogin("SCRAM-SHA-512", "galatea", CANARY)
SECURED = KafkaConnection("kafka-1:9093", Tls(), LOGIN)
PLAIN = KafkaConnection("kafka-1:9092")


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_REACH_SECONDS", 1)
    monkeypatch.setattr(topics, "_TIMEOUT_SECONDS", 1)
    monkeypatch.setattr(ingest, "METADATA_SECONDS", 1)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def refusal(connection: KafkaConnection, call: Callable[[Topics], object] = Topics.reach) -> BrokerUnavailableError:
    with pytest.raises(BrokerUnavailableError) as refused:
        call(Topics(connection))
    assert CANARY not in f"{refused.value} {refused.value.do} {refused.value.__cause__!r}"
    return refused.value


def over_tls(context: ssl.SSLContext, tls: Tls) -> BrokerUnavailableError:
    with serving(context, rejecting()) as port:
        return refusal(KafkaConnection(f"{HOST}:{port}", tls))


@pytest.mark.parametrize(
    "call",
    [Topics.reach, lambda own: own.partitions("t"), lambda own: own.check("t", {2}), lambda own: own.end_offsets("t")],
)
def test_a_rejected_password_names_the_settings_of_the_login(call: Callable[[Topics], object]) -> None:
    with serving(handler=rejecting()) as port:
        error = refusal(KafkaConnection(f"{HOST}:{port}", login=LOGIN), call)

    assert isinstance(error, BrokerAccessError)
    assert "Kafka rejects the user `galatea`" in error.message
    assert "Invalid username or password" in error.message
    assert error.do == "correct GALATEA_KAFKA_USER and GALATEA_KAFKA_PASSWORD, or its file"


def test_a_rejection_that_mentions_the_mechanism_names_the_settings_of_the_login() -> None:
    text = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
    with serving(handler=rejecting(text=text)) as port:
        error = refusal(KafkaConnection(f"{HOST}:{port}", login=LOGIN))

    assert "invalid credentials" in error.message
    assert error.do == "correct GALATEA_KAFKA_USER and GALATEA_KAFKA_PASSWORD, or its file"


def test_an_ingest_with_a_rejected_password_says_so_before_anything_is_sent() -> None:
    acknowledged: list[object] = []
    with (
        serving(handler=rejecting()) as port,
        pytest.raises(BrokerAccessError, match="cannot send anything") as refused,
    ):
        ingest.ingest(POS_TRANSACTIONS, [b"{}"], KafkaConnection(f"{HOST}:{port}", login=LOGIN), acknowledged.append)

    assert "GALATEA_KAFKA_PASSWORD" in refused.value.do
    assert acknowledged == []


def test_a_mechanism_that_the_broker_does_not_offer_is_named() -> None:
    with serving(handler=rejecting(UNSUPPORTED_MECHANISM)) as port:
        error = refusal(KafkaConnection(f"{HOST}:{port}", login=LOGIN))

    assert isinstance(error, BrokerAccessError)
    assert error.do == "set GALATEA_KAFKA_SASL_MECHANISM to one that the broker offers"


def test_an_unknown_authority_names_the_setting_of_the_authority(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")

    error = over_tls(authority.issue("broker").server(), Tls(other.file))

    assert isinstance(error, BrokerAccessError)
    assert f"is not signed by an authority in `{other.file}`" in error.message
    assert error.do.startswith("set GALATEA_KAFKA_CA_FILE to the certificate of the authority")


def test_a_wrong_name_names_the_setting_of_the_brokers(authority: Authority) -> None:
    error = over_tls(authority.issue("broker", "kafka.example").server(), Tls(authority.file))

    assert isinstance(error, BrokerAccessError)
    assert "is for another name" in error.message
    assert "GALATEA_KAFKA_BOOTSTRAP" in error.do


def test_an_expired_certificate_is_waited_for_because_others_renew_it(authority: Authority) -> None:
    expired = authority.issue("broker", lasts=-timedelta(hours=1)).server()

    error = over_tls(expired, Tls(authority.file))

    assert not isinstance(error, OperatorError)
    assert "has expired" in error.message
    assert error.do == "renew it on the server"


def test_a_missing_client_certificate_names_its_settings(authority: Authority) -> None:
    error = over_tls(authority.issue("broker").server(authority.file), Tls(authority.file))

    assert isinstance(error, BrokerAccessError)
    assert "rejects a client without a certificate" in error.message
    assert "GALATEA_KAFKA_CERTIFICATE_FILE" in error.do


def test_a_broker_that_is_away_is_not_a_matter_of_settings() -> None:
    error = refusal(KafkaConnection(f"{HOST}:1", login=LOGIN))

    assert not isinstance(error, OperatorError)
    assert error.message == f"cannot connect: Kafka at `{HOST}:1` does not respond"


class _NoTokens(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"error": "invalid_client"}')

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def provider() -> Iterator[str]:
    """An identity provider that knows no client."""
    with HTTPServer((HOST, 0), _NoTokens) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_an_identity_provider_that_gives_no_token_is_named(provider: str) -> None:
    with serving(handler=rejecting()) as port:
        error = refusal(KafkaConnection(f"{HOST}:{port}", login=OAuthLogin(provider, "galatea", CANARY)))

    assert "the OAuth client `galatea` gets no token" in error.message
    assert "invalid_client" in error.message
    assert "GALATEA_KAFKA_OAUTH_CLIENT_ID" in error.do


@pytest.mark.parametrize(
    "options", [(("no.such.option", "1"),), (("socket.timeout.ms", "soon"),)], ids=["unknown", "not a number"]
)
def test_an_option_that_the_client_does_not_know_is_an_error_of_the_setting(
    options: tuple[tuple[str, str], ...],
) -> None:
    with pytest.raises(OperatorError, match=options[0][0]) as refused:
        Topics(KafkaConnection("kafka-1:9092", client_options=options))

    assert "GALATEA_KAFKA_CLIENT_OPTIONS" in refused.value.do


@pytest.mark.parametrize("code", sorted(client_errors.NO_RIGHT))
def test_a_missing_right_names_who_lacks_it_and_what_for(code: int) -> None:
    error = explained(KafkaError(code), SECURED, "read the topic `t`")

    assert isinstance(error, BrokerAccessError)
    assert error.message.startswith("cannot read the topic `t`: Kafka does not allow it to the user `galatea`")
    assert error.do == "grant the right: docs/how-to/secured-clusters.md#rights-in-kafka"


def test_a_topic_that_is_not_there_may_only_be_hidden_from_whoever_lacks_a_right() -> None:
    missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    hidden, plain = explained(missing, SECURED, "read the topic `t`"), explained(missing, PLAIN, "read the topic `t`")

    assert hidden.message == "cannot read the topic `t`: it does not exist, or the user `galatea` may not see it"
    assert (plain.message, plain.do) == ("cannot read the topic `t`: it does not exist", "galatea up")


def test_other_errors_of_the_broker_stay_as_they_are() -> None:
    error = explained(KafkaError(KafkaError.POLICY_VIOLATION), SECURED, "create the topic `t`")

    assert error.message == "cannot create the topic `t`: Broker: Policy violation"


def test_an_old_reason_does_not_explain_a_new_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, silent = ClientErrors(SECURED), KafkaException(KafkaError(KafkaError._TRANSPORT))  # noqa: SLF001 - its name
    errors.note(KafkaError(KafkaError._AUTHENTICATION))  # noqa: SLF001 - its name

    now = errors.translated(silent, "connect")
    monkeypatch.setattr(client_errors, "_RECENT_SECONDS", -1.0)
    later = errors.translated(silent, "connect")

    assert isinstance(now, BrokerAccessError)
    assert not isinstance(later, BrokerAccessError)


def test_a_client_reports_only_what_says_why() -> None:
    errors = ClientErrors(PLAIN)
    made: list[dict[str, Any]] = []

    errors.connect(made.append, {"client.id": "test"})
    for code in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE):  # noqa: SLF001 - its names
        made[0]["error_cb"](KafkaError(code))

    failed = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - its name
    assert made[0]["bootstrap.servers"] == "kafka-1:9092"
    assert errors.translated(failed, "connect").message == "cannot connect: Kafka at `kafka-1:9092` does not respond"


def test_a_producer_gets_the_options_of_its_connection() -> None:
    errors = ClientErrors(KafkaConnection("nowhere:1", client_options=(("client.rack", "a"),)))

    producer: Producer = errors.connect(Producer, {"test.mock.num.brokers": 1})

    assert producer.list_topics(timeout=10).brokers


OF_SPARK = "[STREAM_FAILED] Query [id = 1] terminated with exception: java.util.concurrent.ExecutionException: "


@pytest.mark.parametrize(
    ("java", "message", "do"),
    [
        ("GroupAuthorizationException: Not authorized to access group: s", "access group: s", "#rights-in-kafka"),
        ("TopicAuthorizationException", "TopicAuthorization", "#rights-in-kafka"),
        ("SaslAuthenticationException: Authentication failed", "Authentication failed", "GALATEA_KAFKA_PASSWORD"),
        ("SslAuthenticationException: SSL handshake failed", "SSL handshake failed", "GALATEA_KAFKA_CA_FILE"),
    ],
)
def test_what_kafka_rejects_in_spark_is_found_in_its_text(java: str, message: str, do: str) -> None:
    error = rejection_in(f"{OF_SPARK}org.apache.kafka.common.errors.{java}\n\tat java.base/java.lang.Thread.run")

    assert error is not None
    assert error.message.startswith("Kafka rejects Spark: ")
    assert error.message.endswith(message)
    assert do in error.do


def test_other_failures_of_spark_are_no_matter_of_rights() -> None:
    assert rejection_in(f"{OF_SPARK}org.apache.kafka.common.errors.TimeoutException: no metadata") is None
