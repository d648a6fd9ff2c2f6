"""Every setting, its unit and its default. Only `deploy/` reads the environment; everything else takes arguments."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, get_origin

from pydantic import Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as NotJsonError

from deploy.local.nodes import HOSTS, LOOPBACK, ONE, THREE, Nodes, addresses, recorded_nodes
from master_dataset.failpoints import planned
from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.parsing.parse import FUTURE_US
from master_dataset.visits.visit import VisitRules
from serving_layer.api.limits import LIMITS, RANGES, Limits, Ranges
from serving_layer.http.connections import ConnectionLimits

if TYPE_CHECKING:
    from deploy.cassandra import Address

PREFIX = "GALATEA_"
CONNECTION, BUFFER = ConnectionLimits(), BufferLimits()
Networks = Sequence[IPv4Network | IPv6Network]
Port = Annotated[int, Field(ge=1, le=65535)]
PortOrZero = Annotated[int, Field(ge=0, le=65535)]


class InvalidSettingsError(ValueError):
    """Settings that cannot be used."""

    def __init__(self, problems: Sequence[str]) -> None:
        """`problems`: one sentence per variable, which it names."""
        super().__init__("; ".join(problems))
        self.problems = problems


class Section(BaseSettings):
    """Settings that belong together.

    The variable of a field is the section's prefix and the field's name, in capitals; a field whose variable does not
    follow this pattern names it as its alias.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", use_attribute_docstrings=True)

    @classmethod
    def names(cls) -> Mapping[str, str]:
        """Return the field of each setting, by the setting's name: its variable in lower case, without prefix."""
        prefix = cls.model_config.get("env_prefix", "")
        variables = {name: field.validation_alias or f"{prefix}{name}" for name, field in cls.model_fields.items()}
        return {str(variable).upper().removeprefix(PREFIX).lower(): name for name, variable in variables.items()}

    @classmethod
    def read(cls, overrides: Mapping[str, Any]) -> Self:
        """Read the environment. `overrides`, by setting name, take precedence. InvalidSettingsError."""
        own = {field: overrides[name] for name, field in cls.names().items() if name in overrides}
        try:
            return cls(**{str(cls.model_fields[field].validation_alias or field): own[field] for field in own})
        except NotJsonError as error:
            objects = [name for name, field in cls.model_fields.items() if get_origin(field.annotation) is dict]
            raise InvalidSettingsError([f"`{cls._variable(name)}`: not a JSON object" for name in objects]) from error
        except ValidationError as error:
            problems = ((str(wrong["loc"][0]), wrong["msg"]) for wrong in error.errors())
            raise InvalidSettingsError([f"`{cls._variable(name)}`: {what}" for name, what in problems]) from error

    @classmethod
    def _variable(cls, location: str) -> str:
        """Variable of a field that pydantic names by its name or its alias."""
        known = location if location not in cls.model_fields else f"{cls.model_config.get('env_prefix')}{location}"
        return known.upper()


class PathSettings(Section):
    """Where data is kept."""

    home: Path = Path(".galatea")
    """Folder that holds all state: master dataset, checkpoints, logs, and the data of the local stack."""
    master_uri: str = ""
    """Root of the tables of the master dataset, a folder or URI; if empty, `master` in the home."""
    corrected_uri: str = ""
    """Root of the tables of corrected views, a folder or URI; if empty, `corrected` in the home."""
    checkpoint_uri: str = ""
    """Root of the checkpoints of the streams, a folder or URI; if empty, `checkpoints` in the home."""

    def resolved(self) -> Self:
        """Make every path absolute, so that it is the same one wherever a process was started."""
        home = self.home.expanduser().resolve()
        return self.model_copy(
            update={
                "home": home,
                "master_uri": _rooted(self.master_uri or str(home / "master")),
                "corrected_uri": _rooted(self.corrected_uri or str(home / "corrected")),
                "checkpoint_uri": _rooted(self.checkpoint_uri or str(home / "checkpoints")),
            }
        )


class JarSettings(Section):
    """Where jars come from, and where they are cached."""

    maven_url: str = "https://repo1.maven.org/maven2"
    """Maven repository that jars are fetched from, once."""
    cache_dir: Path = Field(default_factory=lambda: Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "galatea")
    """Folder where jars are cached for all homes of this user."""


class KafkaSettings(Section):
    """The brokers and topics."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}KAFKA_")

    port: Port = 9092
    """Port of the brokers of the local stack."""
    controller_port: PortOrZero = 0
    """Port of the local brokers' KRaft controllers; 0: `GALATEA_KAFKA_PORT` + 1."""
    brokers: int = Field(default=0, ge=0, le=THREE)
    """Brokers of the local stack, 1 or 3; 0: as many as the home was created with, 1 for a new one."""
    bootstrap: str = ""
    """Bootstrap servers, host:port; if empty, the brokers of the local stack."""
    partitions: int = Field(default=2, ge=1)
    """Partitions of each source's topic. Fixed once the topic exists."""
    retention_days: int = Field(default=14, ge=1)
    """Days that topics keep records: at least the life of speed rows plus D. Alerts look 13 days back."""

    @property
    def retention(self) -> timedelta:
        """How long the topics keep records."""
        return timedelta(days=self.retention_days)

    def resolved(self, kept: Nodes) -> Self:
        """Fill in the defaults of the local stack. `kept`: the nodes that the home was created with."""
        brokers = self.brokers or kept.brokers
        return self.model_copy(
            update={
                "brokers": brokers,
                "controller_port": self.controller_port or self.port + 1,
                "bootstrap": self.bootstrap or addresses(brokers, self.port),
            }
        )


class CassandraSettings(Section):
    """The Cassandra cluster."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}CASSANDRA_")

    port: Port = 9042
    """Port of Cassandra's native protocol."""
    storage_port: PortOrZero = 0
    """Port between the nodes of the local stack; 0: `GALATEA_CASSANDRA_PORT` + 1."""
    nodes: int = Field(default=0, ge=0, le=THREE)
    """Cassandra nodes of the local stack, 1 or 3; 0: as many as the home was created with, 1 for a new one."""
    contact_points: str = ""
    """Hosts of Cassandra, separated by commas; if empty, those of the local stack."""

    @cached_property
    def address(self) -> "Address":
        """Contact points, port and Galatea's keyspace."""
        from deploy.cassandra import Address  # noqa: PLC0415 - the driver is slow to import

        return Address(tuple(self.contact_points.split(",")), self.port, "galatea")

    def resolved(self, kept: Nodes) -> Self:
        """Fill in the defaults of the local stack. `kept`: the nodes that the home was created with."""
        nodes = self.nodes or kept.cassandra
        return self.model_copy(
            update={
                "nodes": nodes,
                "storage_port": self.storage_port or self.port + 1,
                "contact_points": self.contact_points or ",".join(HOSTS[:nodes]),
            }
        )


class SparkSettings(Section):
    """How Spark processes run."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}SPARK_")

    master: str = "local[2]"
    """Spark master URL of every Spark process."""
    cores: int = Field(default=2, ge=1)
    """Cores that each Spark process takes of a cluster. `local[N]` has its own number."""
    executor_memory_mb: int = Field(default=1024, ge=512)
    """Heap of each executor on a cluster, in MB. Its Python workers need more besides."""
    driver_host: str = ""
    """Address at which executors reach a driver; if empty, loopback for a master there, else Spark's choice."""
    python: str = ""
    """Python of a cluster's executors, with this package installed; if empty, the same path as the driver's."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Further options of Spark, as a JSON object, for example of a cluster manager. Galatea's own take precedence."""


class AirflowSettings(Section):
    """Airflow, and when it rebuilds."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}AIRFLOW_")

    port: Port = 8080
    """Port of the local stack's Airflow web server."""
    url: str = ""
    """URL of Airflow; if empty, that of the local stack."""
    user: str = "admin"
    """Airflow user of Galatea's commands and REST interface."""
    password_file: str = ""
    """File with that user's password; if empty, `airflow.password` in the home."""
    rebuild_schedule: str = Field(default="0 * * * *", validation_alias="galatea_rebuild_schedule")
    """When the local stack's Airflow rebuilds: a cron expression, in UTC."""

    def resolved(self, home: Path) -> Self:
        """Fill in the defaults of the local stack in `home`."""
        return self.model_copy(
            update={
                "url": self.url.rstrip("/") or f"http://{LOOPBACK}:{self.port}",
                "password_file": self.password_file or str(home / "airflow.password"),
            }
        )


class LayerSettings(Section):
    """What archive, speed layer and batch layer have in common."""

    epoch_seconds: int = Field(default=300, ge=1, le=3600)
    """Length of a receipt epoch, in seconds. A cut is a multiple of it."""
    visit_gap_seconds: int = Field(default=1800, ge=6, le=6600)
    """G: an absence longer than this ends a visit, in seconds. The other thresholds of visits follow from it."""
    skew_seconds: float = Field(default=5.0, ge=0)
    """How far clocks may differ, in seconds."""
    records_per_batch: int = Field(default=50_000, ge=1)
    """Most records per micro-batch and topic."""

    @property
    def epoch(self) -> timedelta:
        """Length of a receipt epoch."""
        return timedelta(seconds=self.epoch_seconds)

    @property
    def visits(self) -> VisitRules:
        """When sightings form a visit."""
        return VisitRules.of_gap(timedelta(seconds=self.visit_gap_seconds))

    @property
    def skew(self) -> timedelta:
        """How far clocks may differ."""
        return timedelta(seconds=self.skew_seconds)


class ArchiveSettings(Section):
    """The archive process."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}ARCHIVE_")

    metrics_port: PortOrZero = 0
    """Prometheus port of the archive; 0: any free port, written to `run/archive.targets.json`."""
    seconds: float = Field(default=10.0, ge=0)
    """How often the archive writes, in seconds."""


class SpeedSettings(Section):
    """The speed layer."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}SPEED_")

    metrics_port: PortOrZero = 0
    """Prometheus port of the speed layer; 0: any free port, written to `run/speed.targets.json`."""
    ttl_days: int = Field(default=7, ge=2)
    """How long speed rows live, in days."""
    partitions: int = Field(default=1, ge=1)
    """Tasks that share the stores: 1 is fastest on one machine, on a cluster use one per core."""
    receipts_ttl_days: int = Field(default=35, ge=1, validation_alias="galatea_receipts_ttl_days")
    """How long `raw_pos_transactions` keeps a receipt after it happened, in days. The master dataset keeps all."""
    oldest_hours: int = Field(default=23, validation_alias="galatea_oldest_hours")
    """A: the speed layer counts events up to this age on arrival, in hours."""
    remembered_hours: int = Field(default=24, validation_alias="galatea_remembered_hours")
    """D: how far before the cut a new generation of the speed layer starts to read, in hours."""

    @property
    def ttl(self) -> timedelta:
        """How long speed rows live."""
        return timedelta(days=self.ttl_days)

    @property
    def receipts_ttl(self) -> timedelta:
        """How long raw receipts are kept."""
        return timedelta(days=self.receipts_ttl_days)

    @property
    def oldest(self) -> timedelta:
        """A of R5: the greatest age on arrival of an event that speed counts."""
        return timedelta(hours=self.oldest_hours)

    @property
    def remembered(self) -> timedelta:
        """D of R5: an event that speed counts repeats nothing older."""
        return timedelta(hours=self.remembered_hours)


class BatchSettings(Section):
    """Rebuilds, and what is kept of their results."""

    cut_timeout_seconds: float = 300.0
    """How long a rebuild waits until the archive has passed its markers, in seconds."""
    vacuum_days: int = Field(default=7, ge=7)
    """Days that files of Delta tables are kept after a compaction or export replaced them."""
    keep_publications: int = Field(default=30, ge=1)
    """Newest publications that garbage collection keeps complete."""
    keep_days: int = Field(default=7, ge=1)
    """Days that garbage collection keeps a publication complete after it was last current; also of previews."""

    @property
    def cut_timeout(self) -> timedelta:
        """How long a rebuild waits for the archive."""
        return timedelta(seconds=self.cut_timeout_seconds)


class ApiSettings(Section):
    """The REST interface, and who may use it."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}API_")

    port: Port = 8000
    """Port of the REST interface."""
    metrics_port: PortOrZero = 0
    """Prometheus port of the REST interface; 0: any free port, written to `run/api.targets.json`."""
    anonymous_tenant: str = Field(default="default", validation_alias="galatea_anonymous_tenant")
    """Tenant whose stores are visible without a key; if empty, every request needs one."""
    reads_per_second: int = Field(default=20, ge=1, validation_alias="galatea_reads_per_second")
    """Reads per second that a tenant's key may make of each process."""
    ingests_per_second: int = Field(default=50, ge=1, validation_alias="galatea_ingests_per_second")
    """Requests with events per second that a tenant's key may make of each process."""


class LimitSettings(Section):
    """They hold for each process. Limits of an event itself are the parser's, and the same over REST and Kafka."""

    header_bytes: int = Field(default=CONNECTION.header_bytes, ge=1024, le=262_144)
    """Bytes of the request line and header fields together."""
    header_fields: int = Field(default=CONNECTION.header_fields, ge=20)
    """Header fields of a request."""
    receive_seconds: float = Field(default=CONNECTION.receive_seconds, gt=0)
    """Seconds until a request has arrived completely."""
    idle_seconds: float = Field(default=CONNECTION.idle_seconds, ge=1)
    """Seconds that a connection may be idle between requests, or its client may read nothing of a response."""
    connections: int = Field(default=CONNECTION.connections, ge=16)
    """Open connections. One more closes the one that has been idle the longest."""
    unsent_bytes: int = Field(default=CONNECTION.unsent_bytes, ge=1_000_000)
    """Bytes of responses that clients have not read yet, all connections together."""
    body_bytes: int = Field(default=LIMITS.body_bytes, ge=1024)
    """Bytes of a body with events, as sent."""
    unfolded_bytes: int = Field(default=LIMITS.unfolded_bytes, ge=1024)
    """Bytes of such a body after decompression."""
    unfolding: int = Field(default=LIMITS.unfolding, ge=1)
    """How many times larger than sent a body may be after decompression, if it then exceeds `GALATEA_BODY_BYTES`."""
    request_events: int = Field(default=LIMITS.request_events, ge=1, le=10_000)
    """Events in a request."""
    question_bytes: int = Field(default=LIMITS.question_bytes, ge=1024)
    """Bytes of a body without events."""
    bodies_bytes: int = Field(default=LIMITS.bodies_bytes, ge=1_000_000)
    """Bytes of all bodies that are being received or processed."""
    requests_in_flight: int = Field(default=LIMITS.requests_in_flight, ge=1)
    """Requests in process at once."""
    ingests_in_flight: int = Field(default=LIMITS.ingests_in_flight, ge=1)
    """Requests with events in process at once."""
    requests_per_key: int = Field(default=LIMITS.requests_per_key, ge=1)
    """Requests of one tenant's key in process at once."""
    live_followers: int = Field(default=LIMITS.live_followers, ge=1)
    """Clients that follow live answers at once."""
    live_followers_per_key: int = Field(default=LIMITS.live_followers_per_key, ge=1)
    """Clients that follow live answers at once with one tenant's key."""
    courier_records: int = Field(default=BUFFER.records, ge=1)
    """Events sent to the broker and not acknowledged yet."""
    courier_bytes: int = Field(default=BUFFER.size, ge=1_000_000)
    """Bytes of these events."""
    range_fine_days: int = Field(default=RANGES.fine_days, ge=1)
    """Days in the range of a query with a grain of 15 minutes or an hour."""
    range_days: int = Field(default=RANGES.coarse_days, ge=1)
    """Days in the range of a query with any other grain."""
    disk_free_percent: float = Field(default=10.0, ge=0, lt=100)
    """Free space that the home's disk needs for events to be accepted, in percent; 0: no check."""
    disk_free_mb: int = Field(default=1000, ge=0)
    """The same in MB; 0: no check."""

    @property
    def request_limits(self) -> Limits:
        """Limits of requests and bodies."""
        return Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})

    @property
    def connection_limits(self) -> ConnectionLimits:
        """Limits of connections, before there is a request."""
        return ConnectionLimits(**{each.name: getattr(self, each.name) for each in fields(ConnectionLimits)})

    @property
    def ranges(self) -> Ranges:
        """Longest ranges of queries."""
        return Ranges(self.range_fine_days, self.range_days)

    @property
    def producer_limits(self) -> BufferLimits:
        """Limits of events that the broker has not acknowledged yet."""
        return BufferLimits(self.courier_records, self.courier_bytes)


class AlertSettings(Section):
    """Alerts and their rules."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}ALERTS_")

    metrics_port: PortOrZero = 0
    """Prometheus port of the alert relay; 0: any free port, written to `run/alerts.targets.json`."""
    stuck_seconds: float = Field(default=45.0, gt=0)
    """Seconds without progress after which the alert relay is killed and restarted."""
    tick_seconds: float = Field(default=15.0, gt=0, le=60)
    """How often time advances for alert rules whose topics receive nothing, in seconds."""
    identities_mb: int = Field(default=256, ge=1)
    """Memory of the alert relay for the event identities of the last day, in MB. Beyond it, the relay stops."""
    rules_seconds: float = Field(default=60.0, ge=1, validation_alias="galatea_alert_rules_seconds")
    """Seconds after a version of a rule is written until it takes effect. More than the skew."""
    rules_per_tenant: int = Field(default=100, ge=1, le=10_000, validation_alias="galatea_alert_rules_per_tenant")
    """Most alert rules per tenant."""


class WebhookSettings(Section):
    """Webhooks for alerts."""

    model_config = SettingsConfigDict(env_prefix=f"{PREFIX}WEBHOOK_")

    networks: str = ""
    """Networks that webhooks may call although they are not public, separated by commas; also without TLS."""
    suspend_hours: float = Field(default=24.0, gt=0, le=720)
    """Hours of failed calls after which a webhook endpoint is suspended, until it is resumed."""
    per_tenant: int = Field(default=10, ge=1, le=1000, validation_alias="galatea_webhooks_per_tenant")
    """Most webhook endpoints per tenant. Each is a consumer group of its own."""
    metrics_port: PortOrZero = Field(default=0, validation_alias="galatea_dispatcher_metrics_port")
    """Prometheus port of the webhook dispatcher; 0: any free port, written to `run/dispatcher.targets.json`."""

    @field_validator("networks")
    @classmethod
    def _known_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def allowed_networks(self) -> Networks:
        """Networks that webhooks may call although they are not public."""
        return _networks(self.networks)


class FailpointSettings(Section):
    """Fault tests."""

    crash_at: str = ""
    """For fault tests: points at which processes end as by `kill -9`, `name:n,name:n`; the n-th pass, once per home."""

    @field_validator("crash_at")
    @classmethod
    def _known_points(cls, text: str) -> str:
        planned(text)
        return text


@dataclass(frozen=True, init=False)
class Settings:
    """All settings of a deployment, by section."""

    paths: PathSettings
    api: ApiSettings
    limits: LimitSettings
    kafka: KafkaSettings
    cassandra: CassandraSettings
    spark: SparkSettings
    layers: LayerSettings
    archive: ArchiveSettings
    speed: SpeedSettings
    batch: BatchSettings
    airflow: AirflowSettings
    alerts: AlertSettings
    webhooks: WebhookSettings
    jars: JarSettings
    failpoints: FailpointSettings

    def __init__(self, **overrides: Any) -> None:  # noqa: ANN401 - whatever pydantic takes for the field
        """Read the environment.

        Args:
            overrides: Values that take precedence, by setting name: the variable in lower case without `GALATEA_`, as
                in `Settings(kafka_port=9192)`.

        Raises:
            InvalidSettingsError: A value, or a combination of them, cannot be used.
        """
        if unknown := overrides.keys() - self.catalogue().keys():
            raise TypeError(f"there is no setting {', '.join(sorted(unknown))}")
        problems: list[str] = []
        for name, section in sections().items():
            try:
                object.__setattr__(self, name, section.read(overrides))
            except InvalidSettingsError as error:
                problems += error.problems
        if problems:
            raise InvalidSettingsError(problems)
        self._resolve()
        if broken := list(self._broken_rules()):
            raise InvalidSettingsError(broken)

    def _resolve(self) -> None:
        """Replace defaults that depend on other settings or on the home by their values."""
        paths = self.paths.resolved()
        kept = recorded_nodes(paths.home) or Nodes()
        cache_dir = self.jars.cache_dir.expanduser().resolve()
        known = {
            "paths": paths,
            "kafka": self.kafka.resolved(kept),
            "cassandra": self.cassandra.resolved(kept),
            "airflow": self.airflow.resolved(paths.home),
            "jars": self.jars.model_copy(update={"cache_dir": cache_dir}),
        }
        for name, section in known.items():
            object.__setattr__(self, name, section)

    def _broken_rules(self) -> Iterator[str]:
        """Rules between settings that these ones break."""
        if self.speed.oldest + timedelta(microseconds=FUTURE_US) > self.speed.remembered:
            yield "GALATEA_OLDEST_HOURS must be at least an hour less than GALATEA_REMEMBERED_HOURS"
        if self.kafka.retention < self.speed.ttl + self.speed.remembered:
            yield "GALATEA_KAFKA_RETENTION_DAYS must cover GALATEA_SPEED_TTL_DAYS and GALATEA_REMEMBERED_HOURS"
        if self.alerts.rules_seconds <= self.layers.skew_seconds:
            yield "GALATEA_ALERT_RULES_SECONDS must be more than GALATEA_SKEW_SECONDS"
        if self.layers.visits.longest_known >= self.speed.remembered:
            yield "GALATEA_REMEMBERED_HOURS must be more than 14 times GALATEA_VISIT_GAP_SECONDS"
        if not {self.kafka.brokers, self.cassandra.nodes} <= {ONE, THREE}:
            yield "GALATEA_KAFKA_BROKERS and GALATEA_CASSANDRA_NODES must be 1 or 3: of 2 none may be lost"

    @staticmethod
    def catalogue() -> Mapping[str, FieldInfo]:
        """Return the field of every setting, by the setting's name."""
        return {
            name: section.model_fields[field]
            for section in sections().values()
            for name, field in section.names().items()
        }

    def values(self) -> Mapping[str, Any]:
        """Return the value of every setting, by the setting's name."""
        return {
            name: getattr(getattr(self, own), field)
            for own, section in sections().items()
            for name, field in section.names().items()
        }

    def replace(self, **overrides: Any) -> "Settings":  # noqa: ANN401 - as in __init__
        """Return these settings with other values, by setting name. InvalidSettingsError."""
        return Settings(**{**self.values(), **overrides})

    def environment(self) -> dict[str, str]:
        """Return every setting as a variable, so that a child process has the same settings."""
        text = {
            name: json.dumps(value) if isinstance(value, dict) else str(value) for name, value in self.values().items()
        }
        return {f"{PREFIX}{name.upper()}": value for name, value in text.items()}

    @property
    def home(self) -> Path:
        """Folder that holds all state."""
        return self.paths.home

    @property
    def nodes(self) -> Nodes:
        """How many nodes the local stack has."""
        return Nodes(self.kafka.brokers, self.cassandra.nodes)

    @property
    def crash_folder(self) -> Path:
        """Folder that records which points of `crash_at` were hit."""
        return self.home / "crashed"

    @cached_property
    def definitions(self) -> Mapping[str, str]:
        """Hash of every view's definition under these settings, and of what all views share."""
        from views.registry import current_definitions  # noqa: PLC0415 - imports every view

        return current_definitions(self.layers.epoch_seconds, self.layers.visit_gap_seconds)


def sections() -> Mapping[str, type[Section]]:
    """Return the sections of the settings, by the attribute of `Settings` that holds them."""
    return {each.name: each.type for each in fields(Settings) if isinstance(each.type, type)}


def _rooted(uri: str) -> str:
    """Make a folder absolute; leave a URI as it is."""
    scheme, colon, _ = uri.partition("://")
    if colon and scheme != "file":
        return uri.rstrip("/")
    return str(Path(uri.removeprefix("file://")).expanduser().resolve())


def _networks(text: str) -> Networks:
    return [ip_network(each.strip()) for each in text.split(",") if each.strip()]
