"""The settings with which every client reaches Kafka and Cassandra: addresses, encryption, logins, consistency.

Secrets are never shown: not in a `repr`, and not in an error. Only `Settings.environment` passes them on.
"""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from deploy.local.nodes import HOSTS, THREE, Nodes, addresses, is_exposed
from deploy.secret_files import check_certificates, checked_tls, secret_of
from deploy.sections import JsonObject, Port, PortOrZero, Section, absolute, key_conflicts
from master_dataset.kafka.client_settings import COMPRESSION, SET_BY_GALATEA
from master_dataset.kafka.connection import OAUTH, KafkaConnection, OAuthLogin, PasswordLogin
from master_dataset.tls import Tls

if TYPE_CHECKING:
    from deploy.cassandra import Address

NO_SECRET = SecretStr("")
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
LOCAL_QUORUM = "LOCAL_QUORUM"
CONSISTENT = ("QUORUM", LOCAL_QUORUM, "EACH_QUORUM")
"""Levels at which a read sees every acknowledged write: reads and writes share a replica."""
KEYSPACE = "galatea"
_DATA_CENTRE = re.compile(r"[\w.-]+", re.ASCII)


def _as_text(value: object) -> object:
    """As JSON has it: `true`, not `True`."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


class KafkaSettings(Section):
    """Kafka.

    The brokers and topics.
    """

    prefix = "kafka_"

    port: Port = 9092
    """Port of the brokers of the local stack."""
    controller_port: PortOrZero = 0
    """Port of the local brokers' KRaft controllers; 0: `GALATEA_KAFKA_PORT` + 1."""
    brokers: int = Field(default=0, ge=0, le=THREE)
    """Brokers of the local stack, 1 or 3; 0: as many as the home was created with, 1 for a new one."""
    bootstrap: str = ""
    """Bootstrap servers, host:port; if empty, the brokers of the local stack."""
    partitions: int = Field(default=2, ge=1)
    """Partitions of each source's topic. Once it exists, `galatea migrate` can only multiply them."""
    retention_days: int = Field(default=14, ge=1, le=365)
    """Days that topics keep records: at least the lifetime of speed rows plus D. Alerts look 13 days back."""
    compression: Literal["snappy", "uncompressed"] = COMPRESSION
    """How topics are compressed. With `uncompressed` they take several times the disk space, and the limit of 1.25 MiB
    for a batch applies to the batches that readers get."""
    security_protocol: Protocol = "PLAINTEXT"
    """How clients connect: `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
    sasl_mechanism: Mechanism = ""
    """How clients log in: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`."""
    user: str = ""
    """User for `PLAIN` and SCRAM."""
    password: SecretStr = NO_SECRET
    """Password of that user."""
    password_file: str = ""
    """File with that password."""
    oauth_token_url: str = ""
    """Token endpoint of the identity provider for `OAUTHBEARER`. Without TLS only on this machine."""
    oauth_client_id: str = ""
    """Id of the client at the identity provider."""
    oauth_client_secret: SecretStr = NO_SECRET
    """Secret of that client."""
    oauth_client_secret_file: str = ""
    """File with that secret."""
    oauth_scope: str = ""
    """Scopes to ask for, separated by blanks."""
    oauth_ca_file: str = ""
    """CA certificates (PEM) that the identity provider is verified with; if empty, the system's."""
    ca_file: str = ""
    """CA certificates (PEM) that the brokers are verified with; if empty, the system's."""
    certificate_file: str = ""
    """Certificate of the client, PEM, for brokers that ask for one."""
    key_file: str = ""
    """Private key of that certificate, PEM (PKCS #8)."""
    key_password: SecretStr = NO_SECRET
    """Password of an encrypted key."""
    key_password_file: str = ""
    """File with that password."""
    client_options: Annotated[dict[str, Annotated[SecretStr, BeforeValidator(_as_text)]], JsonObject] = Field(
        default_factory=dict
    )
    """Further options of the Python clients (librdkafka) as a JSON object. Those that Galatea sets are refused."""

    @field_validator("client_options")
    @classmethod
    def _not_ours(cls, options: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name in (name for name in options if name in SET_BY_GALATEA):
            raise ValueError(f"`{name}` is set by Galatea itself")
        return options

    @field_validator("oauth_token_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if url and not url.startswith(("https://", "http://")):
            raise ValueError("not a URL that begins with https:// or http://")
        return url

    @property
    def retention(self) -> timedelta:
        """How long the topics keep records."""
        return timedelta(days=self.retention_days)

    @cached_property
    def connection(self) -> KafkaConnection:
        """The way to the brokers, for every client. Reads files; OperatorError if one cannot be used."""
        options = tuple((name, value.get_secret_value()) for name, value in sorted(self.client_options.items()))
        tls = _tls_of("GALATEA_KAFKA", self, in_java=True) if self.security_protocol.endswith("SSL") else None
        return KafkaConnection(self.bootstrap, tls, self._login(), options)

    def _login(self) -> PasswordLogin | OAuthLogin | None:
        if self.sasl_mechanism == "":
            return None
        if self.sasl_mechanism == OAUTH:
            secret = secret_of(
                "GALATEA_KAFKA_OAUTH_CLIENT_SECRET", self.oauth_client_secret, self.oauth_client_secret_file
            )
            if self.oauth_ca_file:
                check_certificates("GALATEA_KAFKA_OAUTH_CA_FILE", self.oauth_ca_file)
            return OAuthLogin(self.oauth_token_url, self.oauth_client_id, secret, self.oauth_scope, self.oauth_ca_file)
        password = secret_of("GALATEA_KAFKA_PASSWORD", self.password, self.password_file)
        return PasswordLogin(self.sasl_mechanism, self.user, password)

    def resolved(self, kept: Nodes) -> Self:
        """Fill in the defaults of the local stack. `kept`: the nodes that the home was created with."""
        brokers = self.brokers or kept.brokers
        files = ("password_file", "oauth_client_secret_file", "oauth_ca_file", *_TLS_FILES)
        return self.model_copy(
            update={
                "brokers": brokers,
                "controller_port": self.controller_port or self.port + 1,
                "bootstrap": self.bootstrap or addresses(HOSTS[:brokers], self.port),
                **absolute(self, files),
            }
        )

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        given = self.given()
        protocol = f"GALATEA_KAFKA_SECURITY_PROTOCOL={self.security_protocol}"
        if not self.security_protocol.startswith("SASL"):
            yield from (f"{name} has no effect with {protocol}" for name in self.names_of(_SASL) if name in given)
        elif not self.sasl_mechanism:
            yield f"{protocol} needs GALATEA_KAFKA_SASL_MECHANISM"
        elif self.sasl_mechanism == OAUTH:
            yield from self._oauth_conflicts()
        else:
            yield from self._password_conflicts()
        if not self.security_protocol.endswith("SSL"):
            yield from (f"{name} has no effect with {protocol}" for name in self.names_of(_TLS) if name in given)
        else:
            yield from key_conflicts(self)

    def _password_conflicts(self) -> Iterator[str]:
        given, mechanism = self.given(), f"GALATEA_KAFKA_SASL_MECHANISM={self.sasl_mechanism}"
        yield from (f"{name} has no effect with {mechanism}" for name in self.names_of(_OAUTH) if name in given)
        if not self.user:
            yield f"{mechanism} needs GALATEA_KAFKA_USER"
        yield from _one_of(given, mechanism, "GALATEA_KAFKA_PASSWORD")

    def _oauth_conflicts(self) -> Iterator[str]:
        given, mechanism = self.given(), f"GALATEA_KAFKA_SASL_MECHANISM={self.sasl_mechanism}"
        yield from (f"{name} has no effect with {mechanism}" for name in self.names_of(_PASSWORD) if name in given)
        for name in self.names_of(("oauth_token_url", "oauth_client_id")):
            if name not in given:
                yield f"{mechanism} needs {name}"
        yield from _one_of(given, mechanism, "GALATEA_KAFKA_OAUTH_CLIENT_SECRET")
        if self.oauth_ca_file and not self.oauth_token_url.startswith("https:"):
            yield "GALATEA_KAFKA_OAUTH_CA_FILE has no effect without a GALATEA_KAFKA_OAUTH_TOKEN_URL of https"
        if is_exposed(self.oauth_token_url):
            yield "GALATEA_KAFKA_OAUTH_TOKEN_URL must be https, except on this machine: others could read the secret"


class CassandraSettings(Section):
    """Cassandra."""

    prefix = "cassandra_"

    port: Port = 9042
    """Port of Cassandra's native protocol."""
    storage_port: PortOrZero = 0
    """Port between the nodes of the local stack; 0: `GALATEA_CASSANDRA_PORT` + 1."""
    nodes: int = Field(default=0, ge=0, le=THREE)
    """Cassandra nodes of the local stack, 1 or 3; 0: as many as the home was created with, 1 for a new one."""
    contact_points: str = ""
    """Hosts of Cassandra, separated by commas; if empty, those of the local stack."""
    user: str = ""
    """User (role) of all processes and commands; if empty, they do not log in."""
    password: SecretStr = NO_SECRET
    """Password of that user."""
    password_file: str = ""
    """File with that password."""
    tls: bool = False
    """Whether connections are encrypted. `GALATEA_CASSANDRA_CA_FILE` implies it."""
    ca_file: str = ""
    """CA certificates (PEM) that Cassandra's nodes are verified with; if empty, the system's."""
    certificate_file: str = ""
    """Certificate of the client, PEM, for nodes that ask for one."""
    key_file: str = ""
    """Private key of that certificate, PEM."""
    key_password: SecretStr = NO_SECRET
    """Password of an encrypted key."""
    key_password_file: str = ""
    """File with that password."""
    local_dc: str = ""
    """Data centre whose nodes all processes use; if empty, the nodes of every one. It must be the same for all."""
    consistency: str = ""
    """`QUORUM`, `LOCAL_QUORUM` or `EACH_QUORUM`; if empty, `LOCAL_QUORUM` with a local data centre, else `QUORUM`."""
    replication: Annotated[dict[str, int], JsonObject] = Field(default_factory=dict)
    """Copies of each row by data centre, as a JSON object, for a new keyspace; if empty, one on each local node."""

    @field_validator("consistency")
    @classmethod
    def _is_consistent(cls, level: str) -> str:
        if level and level not in CONSISTENT:
            raise ValueError(
                f"with `{level}`, a process might not read what was just written, and results must be exact: use "
                f"{', '.join(CONSISTENT[:-1])} or {CONSISTENT[-1]}"
            )
        return level

    @field_validator("replication")
    @classmethod
    def _is_replication(cls, copies: dict[str, int]) -> dict[str, int]:
        for name, number in copies.items():
            if not _DATA_CENTRE.fullmatch(name) or number < 1:
                raise ValueError('not data centres with their number of copies, such as {"dc1": 3}')
        return copies

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.tls or bool(self.ca_file)

    @cached_property
    def address(self) -> "Address":
        """The way to the cluster and to Galatea's keyspace. Reads files; OperatorError if one cannot be used."""
        from deploy.cassandra import Address, Login  # noqa: PLC0415 - the driver is slow to import

        password = secret_of("GALATEA_CASSANDRA_PASSWORD", self.password, self.password_file)
        return Address(
            tuple(each.strip() for each in self.contact_points.split(",")),
            self.port,
            KEYSPACE,
            login=Login(self.user, password) if self.user else None,
            tls=_tls_of("GALATEA_CASSANDRA", self, in_java=False) if self.is_encrypted else None,
            local_dc=self.local_dc,
            consistency=self.consistency or (LOCAL_QUORUM if self.local_dc else CONSISTENT[0]),
        )

    def resolved(self, kept: Nodes) -> Self:
        """Fill in the defaults of the local stack. `kept`: the nodes that the home was created with."""
        nodes = self.nodes or kept.cassandra
        return self.model_copy(
            update={
                "nodes": nodes,
                "storage_port": self.storage_port or self.port + 1,
                "contact_points": self.contact_points or ",".join(HOSTS[:nodes]),
                **absolute(self, ("password_file", *_TLS_FILES)),
            }
        )

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        given = self.given()
        if self.user:
            yield from _one_of(given, "GALATEA_CASSANDRA_USER", "GALATEA_CASSANDRA_PASSWORD")
        else:
            for name in self.names_of(("password", "password_file")):
                if name in given:
                    yield f"{name} needs GALATEA_CASSANDRA_USER"
        if self.is_encrypted:
            yield from key_conflicts(self)
        else:
            for name in self.names_of(_TLS):
                if name in given:
                    yield f"{name} needs GALATEA_CASSANDRA_CA_FILE, or GALATEA_CASSANDRA_TLS=true"
        if self.consistency == LOCAL_QUORUM and not self.local_dc:
            yield "GALATEA_CASSANDRA_CONSISTENCY=LOCAL_QUORUM needs GALATEA_CASSANDRA_LOCAL_DC"
        if self.local_dc and self.replication and self.local_dc not in self.replication:
            yield f"GALATEA_CASSANDRA_REPLICATION has no copies in `{self.local_dc}` of GALATEA_CASSANDRA_LOCAL_DC"


_TLS_FILES = ("ca_file", "certificate_file", "key_file", "key_password_file")
_TLS = (*_TLS_FILES, "key_password")
_PASSWORD = ("user", "password", "password_file")
_OAUTH = (
    "oauth_token_url",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_client_secret_file",
    "oauth_scope",
    "oauth_ca_file",
)
_SASL = ("sasl_mechanism", *_PASSWORD, *_OAUTH)
_Cluster = KafkaSettings | CassandraSettings


def _tls_of(prefix: str, section: _Cluster, *, in_java: bool) -> Tls:
    password = secret_of(f"{prefix}_KEY_PASSWORD", section.key_password, section.key_password_file)
    tls = Tls(section.ca_file, section.certificate_file, section.key_file, password)
    return checked_tls(prefix, tls, in_java=in_java)


def _one_of(given: frozenset[str], what: str, secret: str) -> Iterator[str]:
    """A secret comes from the environment or from a file."""
    if not {secret, f"{secret}_FILE"} & given:
        yield f"{what} needs {secret} or {secret}_FILE"
    elif {secret, f"{secret}_FILE"} <= given:
        yield f"{secret} and {secret}_FILE are both set"
