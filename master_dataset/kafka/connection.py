"""How clients reach Kafka: the brokers, encryption, and how they prove who they are. Imports no driver.

The same facts have three forms, because each kind of client has its own names: librdkafka, which Python uses; Spark's
Kafka source; and Kafka's command line tools, which are in Java as Spark is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from master_dataset.tls import Tls

PasswordMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
OAUTH: Final = "OAUTHBEARER"
PLAINTEXT: Final = "PLAINTEXT"
OAUTH_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""System property of Java without which a client asks no URL for tokens."""
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
CERTIFICATES, KEYS = frozenset({"CERTIFICATE"}), frozenset({"PRIVATE KEY", "ENCRYPTED PRIVATE KEY"})
"""Kinds of PEM blocks that Java reads. Of keys these are PKCS #8."""


@dataclass(frozen=True)
class PasswordLogin:
    """A user with a password (SASL PLAIN or SCRAM)."""

    mechanism: PasswordMechanism
    user: str
    password: str = field(repr=False)

    def client(self) -> Mapping[str, Any]:
        """Return the options of librdkafka."""
        return {"sasl.mechanism": self.mechanism, "sasl.username": self.user, "sasl.password": self.password}

    def java(self) -> Mapping[str, str]:
        """Return the options of Java clients."""
        jaas = _jaas(_LOGIN_MODULES[self.mechanism], {"username": self.user, "password": self.password})
        return {"sasl.mechanism": self.mechanism, "sasl.jaas.config": jaas}


@dataclass(frozen=True)
class OAuthLogin:
    """A client that gets tokens from an identity provider with its id and secret (OIDC, client credentials).

    Attributes:
        token_url: The provider's token endpoint.
        client_id: Id of the client.
        client_secret: Its secret.
        scope: Scopes to ask for, separated by blanks; may be empty.
        ca_file: Certificates of the authorities to trust for the provider, PEM; if empty, the system's.
    """

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    ca_file: str = ""

    def client(self) -> Mapping[str, Any]:
        """Return the options of librdkafka."""
        further = {"sasl.oauthbearer.scope": self.scope, "https.ca.location": self.ca_file}
        return {
            "sasl.mechanism": OAUTH,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.oauthbearer.client.id": self.client_id,
            "sasl.oauthbearer.client.secret": self.client_secret,
            **{name: value for name, value in further.items() if value},
        }

    def java(self) -> Mapping[str, str]:
        """Return the options of Java clients. Their TLS options for the provider are part of the JAAS text."""
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file} if self.ca_file else {}
        scope = {"scope": self.scope} if self.scope else {}
        known = {"clientId": self.client_id, "clientSecret": self.client_secret, **scope, **trust}
        return {
            "sasl.mechanism": OAUTH,
            "sasl.jaas.config": _jaas(_OAUTH_MODULE, known),
            "sasl.login.callback.handler.class": _OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
        }


@dataclass(frozen=True)
class KafkaConnection:
    """The way to one cluster, for every client of it. Without TLS and login, as on loopback, it is the brokers alone.

    Equal connections have equal hashes, so a connection can be the key of a cache. Secrets are never in its `repr`.

    Attributes:
        bootstrap: `host:port` of brokers, separated by commas.
        tls: None for an unencrypted connection.
        login: None if brokers know the client by its certificate, or not at all.
        client_options: Further options of librdkafka. Those that are set here take precedence.
    """

    bootstrap: str
    tls: Tls | None = None
    login: PasswordLogin | OAuthLogin | None = None
    client_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def protocol(self) -> str:
        """Kafka's name for how the client connects: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        encryption = PLAINTEXT if self.tls is None else "SSL"
        return encryption if self.login is None else f"SASL_{encryption}"

    @property
    def identity(self) -> str:
        """Who the client is, in the words of an error."""
        if isinstance(self.login, PasswordLogin):
            return f"the user `{self.login.user}`"
        if self.login is not None:
            return f"the OAuth client `{self.login.client_id}`"
        if self.tls is not None and self.tls.certificate_file:
            return f"the client with the certificate `{self.tls.certificate_file}`"
        return "a client without a login"

    def client(self) -> dict[str, Any]:
        """Return the options of a librdkafka client; further ones of this client may be added."""
        options: dict[str, Any] = {**dict(self.client_options), "bootstrap.servers": self.bootstrap}
        if self.tls is None and self.login is None:
            return options
        options["security.protocol"] = self.protocol
        if self.tls is not None:
            files = {
                "ssl.ca.location": self.tls.ca_file,
                "ssl.certificate.location": self.tls.certificate_file,
                "ssl.key.location": self.tls.key_file,
                "ssl.key.password": self.tls.key_password,
            }
            options |= {"enable.ssl.certificate.verification": True, "ssl.endpoint.identification.algorithm": "https"}
            options |= {name: value for name, value in files.items() if value}
        if self.login is not None:
            options |= self.login.client()
        return options

    def spark(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source. Reads the client's certificate and key, if it has them.

        The file of authorities must have the same path on every executor.
        """
        return {f"kafka.{name}": value for name, value in self._java().items()}

    def java_properties(self) -> str:
        """Return the text of a file for `--command-config` of Kafka's tools. It contains the secrets."""
        return "".join(f"{name}={_property(value)}\n" for name, value in self._java().items())

    def _java(self) -> dict[str, str]:
        options = {"bootstrap.servers": self.bootstrap}
        if self.tls is None and self.login is None:
            return options
        options["security.protocol"] = self.protocol
        if self.tls is not None:
            options |= _java_tls(self.tls)
        if self.login is not None:
            options |= self.login.java()
        return options


def _java_tls(tls: Tls) -> Mapping[str, str]:
    """The client's certificate and key are texts: as a file, Java reads only one that has both."""
    options = {"ssl.endpoint.identification.algorithm": "https"}
    if tls.ca_file:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca_file}
    if tls.certificate_file:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": pem_blocks(Path(tls.certificate_file).read_text(), CERTIFICATES),
            "ssl.keystore.key": pem_blocks(Path(tls.key_file).read_text(), KEYS),
        }
    if tls.key_password:
        options["ssl.key.password"] = tls.key_password
    return options


def pem_blocks(text: str, kinds: frozenset[str]) -> str:
    """Return the blocks of these kinds, without the text around them; empty if there is none."""
    return "\n".join(found[0] for found in _PEM_BLOCK.finditer(text) if found[1] in kinds)


def _jaas(module: str, options: Mapping[str, str]) -> str:
    """Return a JAAS configuration. Java reads its quoted values with the escapes of C."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
    values = "".join(f' {name}="{value.translate(escapes)}"' for name, value in options.items())
    return f"{module} required{values};"


def _property(value: str) -> str:
    """Escape a value as `java.util.Properties` reads it, in Latin-1."""
    escapes = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}
    text = "".join(escapes.get(each, each) for each in value)
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    escaped = "".join(chr(each) if " " <= chr(each) <= "~" else f"\\u{each:04x}" for each in codes)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
