"""One object says how every client reaches Kafka, in the words of each, and shows no secret."""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.spark import SECRETS
from master_dataset.kafka.client_settings import SET_BY_GALATEA
from master_dataset.kafka.connection import (
    CERTIFICATES,
    KEYS,
    KafkaConnection,
    OAuthLogin,
    PasswordLogin,
    pem_blocks,
)
from master_dataset.tls import Tls
from tests.fast.house.tree import named, product, tree
from tests.support.secured_servers import Authority

CANARY = "canary-1f3a"
SCRAM = PasswordLogin("SCRAM-SHA-512", "galatea", CANARY)
OAUTH = OAuthLogin("https://idp.example/token", "galatea", CANARY, "kafka metrics", "/etc/galatea/idp.pem")
SECURED = KafkaConnection("kafka-1:9093", Tls("/etc/galatea/ca.pem"), SCRAM, (("client.rack", "a"),))
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
PASSWORDS = ('a"b', r"a\b", r"a\\\"b", "end\\", '";x="y', "  a  ", "tab\tnew\nline\r", "ü€😀'")
PROTOCOLS = {
    "PLAINTEXT": KafkaConnection("kafka-1:9092"),
    "SSL": KafkaConnection("kafka-1:9093", Tls()),
    "SASL_PLAINTEXT": KafkaConnection("kafka-1:9092", login=SCRAM),
    "SASL_SSL": SECURED,
}


def unescaped(text: str) -> str:
    """As Java reads the escapes of C in a quoted value of JAAS, and those of a value of `java.util.Properties`."""

    def character(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else ESCAPES.get(found[2], found[2])

    units = re.sub(r"\\(?:u([0-9a-f]{4})|(.))", character, text, flags=re.DOTALL)
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def jaas_of(options: dict[str, str]) -> dict[str, str]:
    found = re.findall(r' ([\w.]+)="((?:[^"\\]|\\.)*)"', options["kafka.sasl.jaas.config"])
    return {name: unescaped(value) for name, value in found}


def properties_of(text: str) -> dict[str, str]:
    lines = [line.partition("=") for line in text.splitlines()]
    return {name: unescaped(value) for name, _, value in lines}


def test_a_connection_on_loopback_is_its_brokers_alone() -> None:
    plain = KafkaConnection("127.0.0.1:9092")

    assert plain.client() == {"bootstrap.servers": "127.0.0.1:9092"}
    assert plain.spark() == {"kafka.bootstrap.servers": "127.0.0.1:9092"}
    assert plain.java_properties() == "bootstrap.servers=127.0.0.1:9092\n"


@pytest.mark.parametrize(("protocol", "connection"), PROTOCOLS.items())
def test_every_client_is_told_the_same_protocol(protocol: str, connection: KafkaConnection) -> None:
    assert connection.protocol == protocol
    assert connection.client().get("security.protocol", "PLAINTEXT") == protocol
    assert connection.spark().get("kafka.security.protocol", "PLAINTEXT") == protocol


def test_a_user_with_a_password_logs_in_to_librdkafka_and_to_java() -> None:
    assert SECURED.client() == {
        "bootstrap.servers": "kafka-1:9093",
        "client.rack": "a",
        "security.protocol": "SASL_SSL",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.location": "/etc/galatea/ca.pem",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "galatea",
        "sasl.password": CANARY,
    }
    assert SECURED.spark() == {
        "kafka.bootstrap.servers": "kafka-1:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.endpoint.identification.algorithm": "https",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/etc/galatea/ca.pem",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="galatea" password="{CANARY}";',
    }


def test_plain_has_a_module_of_its_own_in_java() -> None:
    plain = KafkaConnection("kafka-1:9092", login=PasswordLogin("PLAIN", "galatea", CANARY))

    assert plain.spark()["kafka.sasl.jaas.config"].startswith(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
    )


def test_an_oauth_client_gets_its_tokens_from_the_same_place_in_both() -> None:
    connection = KafkaConnection("kafka-1:9093", Tls(), OAUTH)
    spark = connection.spark()

    assert connection.client() == {
        "bootstrap.servers": "kafka-1:9093",
        "security.protocol": "SASL_SSL",
        "enable.ssl.certificate.verification": True,
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
        "sasl.oauthbearer.client.id": "galatea",
        "sasl.oauthbearer.client.secret": CANARY,
        "sasl.oauthbearer.scope": "kafka metrics",
        "https.ca.location": "/etc/galatea/idp.pem",
    }
    assert spark["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://idp.example/token"
    assert spark["kafka.sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    assert jaas_of(spark) == {
        "clientId": "galatea",
        "clientSecret": CANARY,
        "scope": "kafka metrics",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/galatea/idp.pem",
    }


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_reaches_java_as_it_is(password: str) -> None:
    connection = KafkaConnection("kafka-1:9092", login=PasswordLogin("PLAIN", 'me\\"', password))

    read = properties_of(connection.java_properties())

    assert jaas_of(connection.spark()) == {"username": 'me\\"', "password": password}
    assert {f"kafka.{name}": value for name, value in read.items()} == connection.spark()
    assert connection.java_properties().isascii()


def test_a_client_certificate_is_a_file_for_librdkafka_and_a_text_for_java(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("client", password=CANARY)
    connection = KafkaConnection("kafka-1:9093", Tls(authority.file, issued.certificate, issued.key, CANARY))
    own, spark = connection.client(), connection.spark()

    assert (own["ssl.certificate.location"], own["ssl.key.location"]) == issued
    assert own["ssl.key.password"] == spark["kafka.ssl.key.password"] == CANARY
    assert spark["kafka.ssl.keystore.type"] == "PEM"
    chain, key = spark["kafka.ssl.keystore.certificate.chain"], spark["kafka.ssl.keystore.key"]
    assert re.fullmatch(r"-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----", chain)
    assert re.fullmatch(r"-----BEGIN ENCRYPTED PRIVATE KEY-----\n[^-]+-----END ENCRYPTED PRIVATE KEY-----", key)


def test_of_a_file_with_several_blocks_those_are_taken_that_were_asked_for() -> None:
    one = "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----"
    key = "-----BEGIN PRIVATE KEY-----\nB\n-----END PRIVATE KEY-----"
    text = f"Bag Attributes\n{key}\nsubject=x\n{one}\n{one}\n"

    assert pem_blocks(text, CERTIFICATES) == f"{one}\n{one}"
    assert pem_blocks(text, KEYS) == key
    assert pem_blocks("nothing", KEYS) == ""


@pytest.mark.parametrize("login", [SCRAM, OAUTH])
def test_a_connection_shows_no_secret(login: PasswordLogin | OAuthLogin) -> None:
    further = (("sasl.oauthbearer.assertion.private.key.passphrase", CANARY),)
    connection = KafkaConnection("kafka-1:9093", Tls(key_password=CANARY), login, further)

    assert CANARY not in f"{connection} {connection!r} {[connection]} {login} {connection.tls}"


def test_a_connection_equals_itself_after_pickling_and_another_one_with_another_password_does_not() -> None:
    sent = pickle.dumps(SECURED)
    other = KafkaConnection("kafka-1:9093", SECURED.tls, PasswordLogin("SCRAM-SHA-512", "galatea", "other"))

    assert {SECURED, pickle.loads(sent), pickle.loads(sent)} == {SECURED}  # noqa: S301 - as Spark sends it
    assert other != SECURED


def test_further_options_replace_none_of_ours() -> None:
    connection = KafkaConnection("kafka-1:9092", client_options=(("bootstrap.servers", "elsewhere:1"), ("debug", "x")))

    assert connection.client() == {"bootstrap.servers": "kafka-1:9092", "debug": "x"}


def test_spark_hides_every_option_that_has_a_secret_and_shows_the_brokers(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("client", password=CANARY)
    tls = Tls("/etc/galatea/ca.pem", issued.certificate, issued.key, CANARY)
    secret = {"kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.key.password"}

    options = KafkaConnection("kafka-1:9093", tls, SCRAM).spark()

    assert {name for name in options if re.search(SECRETS, name)} == secret


def settings_of_clients() -> Iterator[str]:
    """Every option in a dictionary that a client of the product is made from."""
    for path in product():
        if named(path).startswith("lab/"):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Dict):
                yield from (
                    each.value
                    for each in node.keys
                    if isinstance(each, ast.Constant)
                    and isinstance(each.value, str)
                    and any(ast.unparse(value).endswith((".client()", "_QUIET", "usual")) for value in node.values)
                )


def test_an_operator_cannot_set_what_a_client_sets() -> None:
    found = {*settings_of_clients(), *SECURED.client(), *KafkaConnection("", Tls(), OAUTH).client()} - {"client.rack"}

    assert {"group.id", "acks", "log_level", "isolation.level"} <= found
    assert found <= SET_BY_GALATEA
