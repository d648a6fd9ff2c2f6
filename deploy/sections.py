"""The sections of the settings: every setting, its unit and its default."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from deploy.local.nodes import HOSTS, LOOPBACK, THREE, Nodes, addresses
from master_dataset.failpoints import parse_plan
from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.visits.visit import VisitRules
from serving_layer.api.limits import LIMITS, RANGES, Limits, Ranges

if TYPE_CHECKING:
    from deploy.cassandra import Address
    from serving_layer.http.connections import ConnectionLimits

PREFIX = "GALATEA_"
BUFFER = BufferLimits()
Networks = Sequence[IPv4Network | IPv6Network]
Port = Annotated[int, Field(ge=1, le=65535)]
PortOrZero = Annotated[int, Field(ge=0, le=65535)]


class InvalidSettingsError(ValueError):
    """Settings that cannot be used."""

    def __init__(self, problems: Sequence[str]) -> None:
        """`problems`: one sentence per variable, which it names."""
        super().__init__("; ".join(problems))
        self.problems = problems


class Section(BaseModel):
    """Settings that belong together.

    The name of a setting is the section's prefix and the field's name, or the field's alias if it has one. The variable
    is `GALATEA_` and that name, in capitals.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)
    prefix: ClassVar[str] = ""

    @classmethod
    def names(cls) -> Mapping[str, str]:
        """Return the field of each setting, by the setting's name."""
        return {str(field.validation_alias or f"{cls.prefix}{name}"): name for name, field in cls.model_fields.items()}

    @classmethod
    def read(cls, overrides: Mapping[str, Any]) -> Self:
        """Read the environment. `overrides`, by setting name, take precedence. InvalidSettingsError."""
        environment = {name.lower(): value for name, value in os.environ.items()}
        given = {f"{PREFIX}{name}".lower(): value for name, value in overrides.items()}
        values = {
            str(cls.model_fields[field].validation_alias or field): known[variable]
            for name, field in cls.names().items()
            for known in (environment, given)
            if (variable := f"{PREFIX}{name}".lower()) in known
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = ((cls._variable(str(wrong["loc"][0])), wrong["msg"]) for wrong in error.errors())
            raise InvalidSettingsError([f"`{variable}`: {what}" for variable, what in problems]) from error

    @classmethod
    def _variable(cls, location: str) -> str:
        """Return the variable of a field that pydantic names by its name or its alias."""
        places = {field: name for name, field in cls.names().items()}
        return f"{PREFIX}{places.get(location, location)}".upper()


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

    prefix = "cassandra_"

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

    prefix = "spark_"

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

    @field_validator("conf", mode="before")
    @classmethod
    def _from_json(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError("not a JSON object") from error


class AirflowSettings(Section):
    """Airflow, and when it rebuilds."""

    prefix = "airflow_"

    port: Port = 8080
    """Port of the local stack's Airflow web server."""
    url: str = ""
    """URL of Airflow; if empty, that of the local stack."""
    user: str = "admin"
    """Airflow user of Galatea's commands and REST interface."""
    password_file: str = ""
    """File with that user's password; if empty, `airflow.password` in the home."""
    rebuild_schedule: str = Field(default="0 * * * *", validation_alias="rebuild_schedule")
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

    prefix = "archive_"

    metrics_port: PortOrZero = 0
    """Prometheus port of the archive; 0: any free port, written to `run/archive.targets.json`."""
    seconds: float = Field(default=10.0, ge=0)
    """How often the archive writes, in seconds."""


class SpeedSettings(Section):
    """The speed layer."""

    prefix = "speed_"

    metrics_port: PortOrZero = 0
    """Prometheus port of the speed layer; 0: any free port, written to `run/speed.targets.json`."""
    ttl_days: int = Field(default=7, ge=2)
    """How long speed rows live, in days."""
    partitions: int = Field(default=1, ge=1)
    """Tasks that share the stores: 1 is fastest on one machine, on a cluster use one per core."""
    receipts_ttl_days: int = Field(default=35, ge=1, validation_alias="receipts_ttl_days")
    """How long `raw_pos_transactions` keeps a receipt after it happened, in days. The master dataset keeps all."""
    oldest_hours: int = Field(default=23, validation_alias="oldest_hours")
    """A: the speed layer counts events up to this age on arrival, in hours."""
    remembered_hours: int = Field(default=24, validation_alias="remembered_hours")
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

    prefix = "api_"

    port: Port = 8000
    """Port of the REST interface."""
    metrics_port: PortOrZero = 0
    """Prometheus port of the REST interface; 0: any free port, written to `run/api.targets.json`."""
    anonymous_tenant: str = Field(default="default", validation_alias="anonymous_tenant")
    """Tenant whose stores are visible without a key; if empty, every request needs one."""
    reads_per_second: int = Field(default=20, ge=1, validation_alias="reads_per_second")
    """Reads per second that a tenant's key may make of each process."""
    ingests_per_second: int = Field(default=50, ge=1, validation_alias="ingests_per_second")
    """Requests with events per second that a tenant's key may make of each process."""


class LimitSettings(Section):
    """They hold for each process. Limits of an event itself are the parser's, and the same over REST and Kafka."""

    header_bytes: int = Field(default=16_384, ge=1024, le=262_144)
    """Bytes of the request line and header fields together."""
    header_fields: int = Field(default=100, ge=20)
    """Header fields of a request."""
    receive_seconds: float = Field(default=10.0, gt=0)
    """Seconds until a request has arrived completely."""
    idle_seconds: float = Field(default=30.0, ge=1)
    """Seconds that a connection may be idle between requests, or its client may read nothing of a response."""
    connections: int = Field(default=4_096, ge=16)
    """Open connections. One more closes the one that has been idle the longest."""
    unsent_bytes: int = Field(default=128_000_000, ge=1_000_000)
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
    def connection_limits(self) -> "ConnectionLimits":
        """Limits of connections, before there is a request. Their defaults are repeated above: they import slowly."""
        from serving_layer.http.connections import ConnectionLimits  # noqa: PLC0415 - slow to import

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

    prefix = "alerts_"

    metrics_port: PortOrZero = 0
    """Prometheus port of the alert relay; 0: any free port, written to `run/alerts.targets.json`."""
    stuck_seconds: float = Field(default=45.0, gt=0)
    """Seconds without progress after which the alert relay is killed and restarted."""
    tick_seconds: float = Field(default=15.0, gt=0, le=60)
    """How often time advances for alert rules whose topics receive nothing, in seconds."""
    identities_mb: int = Field(default=256, ge=1)
    """Memory of the alert relay for the event identities of the last day, in MB. Beyond it, the relay stops."""
    rules_seconds: float = Field(default=60.0, ge=1, validation_alias="alert_rules_seconds")
    """Seconds after a version of a rule is written until it takes effect. More than the skew."""
    rules_per_tenant: int = Field(default=100, ge=1, le=10_000, validation_alias="alert_rules_per_tenant")
    """Most alert rules per tenant."""


class WebhookSettings(Section):
    """Webhooks for alerts."""

    prefix = "webhook_"

    networks: str = ""
    """Networks that webhooks may call although they are not public, separated by commas; also without TLS."""
    suspend_hours: float = Field(default=24.0, gt=0, le=720)
    """Hours of failed calls after which a webhook endpoint is suspended, until it is resumed."""
    per_tenant: int = Field(default=10, ge=1, le=1000, validation_alias="webhooks_per_tenant")
    """Most webhook endpoints per tenant. Each is a consumer group of its own."""
    metrics_port: PortOrZero = Field(default=0, validation_alias="dispatcher_metrics_port")
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
        parse_plan(text)
        return text


def _rooted(uri: str) -> str:
    """Make a folder absolute; leave a URI as it is."""
    scheme, colon, _ = uri.partition("://")
    if colon and scheme != "file":
        return uri.rstrip("/")
    return str(Path(uri.removeprefix("file://")).expanduser().resolve())


def _networks(text: str) -> Networks:
    return [ip_network(each.strip()) for each in text.split(",") if each.strip()]
