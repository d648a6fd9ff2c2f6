"""Every setting, its unit and its default. Only `deploy/` reads the environment; everything else takes arguments."""

import json
import os
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from deploy.local.nodes import HOSTS, LOOPBACK, ONE, THREE, Nodes, addresses, kept_nodes
from master_dataset.failpoints import planned
from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.parsing.parse import FUTURE_US
from master_dataset.visits.visit import VisitRules
from serving_layer.api.limits import LIMITS, RANGES, Limits, Ranges
from serving_layer.http.connections import ConnectionLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.cassandra import Address

CONNECTION, COURIER = ConnectionLimits(), BufferLimits()


class LimitSettings(BaseSettings):
    """All are of one process. What an event itself may be is said by the parser, which is the same for every way in."""

    model_config = SettingsConfigDict(env_prefix="GALATEA_", frozen=True, extra="ignore", use_attribute_docstrings=True)

    header_bytes: int = Field(default=CONNECTION.header_bytes, ge=1024, le=262_144)
    """Bytes of a request's target and header fields together."""
    header_fields: int = Field(default=CONNECTION.header_fields, ge=20)
    """Header fields of a request."""
    receive_seconds: float = Field(default=CONNECTION.receive_seconds, gt=0)
    """Until a request is there as a whole."""
    idle_seconds: float = Field(default=CONNECTION.idle_seconds, ge=1)
    """How long a connection is kept between two requests, and one whose client takes nothing of its answer."""
    connections: int = Field(default=CONNECTION.connections, ge=16)
    """Connections that are open at once; one more ends the one that waits longest for a request."""
    unsent_bytes: int = Field(default=CONNECTION.unsent_bytes, ge=1_000_000)
    """Bytes of answers that wait for their clients, all together."""
    body_bytes: int = Field(default=LIMITS.body_bytes, ge=1024)
    """Bytes of a body with events, as it is sent."""
    unfolded_bytes: int = Field(default=LIMITS.unfolded_bytes, ge=1024)
    """Bytes of such a body when it is decompressed."""
    unfolding: int = Field(default=LIMITS.unfolding, ge=1)
    """How many times its size a body may become beyond `GALATEA_BODY_BYTES`."""
    request_events: int = Field(default=LIMITS.request_events, ge=1, le=10_000)
    """Events in a request."""
    question_bytes: int = Field(default=LIMITS.question_bytes, ge=1024)
    """Bytes of a body that brings no events."""
    bodies_bytes: int = Field(default=LIMITS.bodies_bytes, ge=1_000_000)
    """Bytes of all bodies that are arriving or worked on."""
    requests_in_flight: int = Field(default=LIMITS.requests_in_flight, ge=1)
    """Requests that are worked on at once."""
    ingests_in_flight: int = Field(default=LIMITS.ingests_in_flight, ge=1)
    """Requests with events that are worked on at once."""
    requests_per_key: int = Field(default=LIMITS.requests_per_key, ge=1)
    """Requests of one tenant's key that are under way at once."""
    live_followers: int = Field(default=LIMITS.live_followers, ge=1)
    """How many follow live answers at once."""
    live_followers_per_key: int = Field(default=LIMITS.live_followers_per_key, ge=1)
    """How many do so with one tenant's key."""
    courier_records: int = Field(default=COURIER.records, ge=1)
    """Events on their way to the broker."""
    courier_bytes: int = Field(default=COURIER.size, ge=1_000_000)
    """Their bytes."""
    range_fine_days: int = Field(default=RANGES.fine_days, ge=1)
    """Days that a question at 15 minutes or hours may be about; longer ones take as much more work and memory."""
    range_days: int = Field(default=RANGES.coarse_days, ge=1)
    """Days that a question at any other grain may be about."""
    disk_free_percent: float = Field(default=10.0, ge=0, lt=100)
    """How much of the home's disk has to be free for events to be taken, in percent; 0: no matter."""
    disk_free_mb: int = Field(default=1000, ge=0)
    """The same in MB; 0: no matter."""

    @property
    def limits(self) -> Limits:
        """What the app holds its callers to."""
        return Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})

    @property
    def ranges(self) -> Ranges:
        """How long a time may be asked for."""
        return Ranges(self.range_fine_days, self.range_days)

    @property
    def courier_room(self) -> BufferLimits:
        """How many events may be on their way."""
        return BufferLimits(self.courier_records, self.courier_bytes)

    @property
    def connection_limits(self) -> ConnectionLimits:
        """What each connection is held to before."""
        return ConnectionLimits(**{each.name: getattr(self, each.name) for each in fields(ConnectionLimits)})


class AlertSettings(LimitSettings):
    """Beside the limits of whoever asks."""

    alerts_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics of the alert relay; 0 likewise."""
    alerts_stuck_seconds: float = Field(default=45.0, gt=0)
    """How long the alert relay may make no progress before it is ended and started again, in seconds."""
    alerts_tick_seconds: float = Field(default=15.0, gt=0, le=60)
    """How often time is let pass in topics that a rule of alerts watches while nothing arrives, in seconds."""
    alerts_identities_mb: int = Field(default=256, ge=1)
    """Memory that the identities of the last day may take in the alert relay, in MB; beyond it the relay stops."""
    alert_rules_seconds: float = Field(default=60.0, ge=1)
    """How long after it is written a version of a rule begins to hold, in seconds; more than the skew."""
    alert_rules_per_tenant: int = Field(default=100, ge=1, le=10_000)
    """How many rules of alerts a tenant may have."""


Networks = Sequence[IPv4Network | IPv6Network]


class WebhookSettings(AlertSettings):
    """Beside the settings of alerts themselves."""

    webhook_networks: str = ""
    """Networks that webhooks may call though they are not public, separated by commas; there also without TLS."""
    webhook_suspend_hours: float = Field(default=24.0, gt=0, le=720)
    """After how many hours of failures an endpoint of webhooks is called no more until it is resumed."""
    webhooks_per_tenant: int = Field(default=10, ge=1, le=1000)
    """How many endpoints of webhooks a tenant may have: each is a consumer group of its own."""
    dispatcher_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics of whoever tells endpoints of alerts; 0: one that is free."""

    @field_validator("webhook_networks")
    @classmethod
    def _known_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def allowed_networks(self) -> Networks:
        """Those that webhooks may call though they are not public."""
        return _networks(self.webhook_networks)


def _networks(text: str) -> Networks:
    return [ip_network(each.strip()) for each in text.split(",") if each.strip()]


Port = Annotated[int, Field(ge=1, le=65535)]


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "galatea"


def _rooted(uri: str) -> str:
    """A folder as an absolute path, so that it is the same one wherever a process was started; a URI as it is."""
    scheme, colon, _ = uri.partition("://")
    if colon and scheme != "file":
        return uri.rstrip("/")
    return str(Path(uri.removeprefix("file://")).expanduser().resolve())


class Settings(WebhookSettings):
    """Read from variables named `GALATEA_` + the field's name in capitals."""

    home: Path = Path(".galatea")
    """The folder that holds all state: master dataset, checkpoints, logs, the local stack's own data."""
    master_uri: str = ""
    """Root of the master dataset's tables, a folder or a URI; empty: `master` in the home."""
    corrected_uri: str = ""
    """Root of the tables of corrected views, a folder or a URI; empty: `corrected` in the home."""
    checkpoint_uri: str = ""
    """Root of the streams' checkpoints, a folder or a URI; empty: `checkpoints` in the home."""
    api_port: Port = 8000
    """Port of the REST interface."""
    kafka_port: Port = 9092
    """Port of the broker."""
    kafka_controller_port: int = Field(default=0, ge=0, le=65535)
    """Port of the local broker's controller; 0: the one behind `kafka_port`."""
    kafka_brokers: int = Field(default=0, ge=0, le=THREE)
    """Brokers of the local stack, 1 or 3; 0: as many as the home was made with, 1 for a new one."""
    cassandra_port: Port = 9042
    """Port of Cassandra's native protocol."""
    cassandra_storage_port: int = Field(default=0, ge=0, le=65535)
    """Port of the local node's internode traffic; 0: the one behind `cassandra_port`."""
    cassandra_nodes: int = Field(default=0, ge=0, le=THREE)
    """Cassandra nodes of the local stack, 1 or 3; 0: as many as the home was made with, 1 for a new one."""
    airflow_port: Port = 8080
    """Port of Airflow's web server."""
    airflow_url: str = ""
    """Airflow's address; empty: the local stack's."""
    airflow_user: str = "admin"
    """Whom Airflow knows these commands as."""
    airflow_password_file: str = ""
    """File that holds that user's password; empty: `airflow.password` in the home."""
    rebuild_schedule: str = "0 * * * *"
    """When the local stack's Airflow rebuilds: cron, in UTC."""
    archive_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the archive's metrics for Prometheus; 0: any free one, named in `run/archive.targets.json`."""
    speed_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the speed layer's metrics; 0 likewise."""
    api_metrics_port: int = Field(default=0, ge=0, le=65535)
    """Port of the metrics of the REST interface; 0 likewise."""
    kafka_bootstrap: str = ""
    """host:port of the brokers; empty: the local stack's."""
    cassandra_contact_points: str = ""
    """Hosts of Cassandra, separated by commas; empty: the local stack's."""
    spark_master: str = "local[2]"
    """Spark master URL of every Spark process."""
    spark_cores: int = Field(default=2, ge=1)
    """Cores that each Spark process takes of a cluster; `local[N]` says its own number."""
    spark_executor_memory_mb: int = Field(default=1024, ge=512)
    """Heap of each executor on a cluster, in MB; its Python workers come on top."""
    spark_driver_host: str = ""
    """Where executors reach a driver; empty: on loopback if the Spark master is there, else as Spark chooses."""
    spark_python: str = ""
    """Python of a cluster's executors, with this package installed; empty: the same path as that of the driver."""
    spark_conf: dict[str, str] = Field(default_factory=dict)
    """Further options of Spark, as a JSON object: what a cluster manager wants to know. They never replace our own."""
    epoch_seconds: int = Field(default=300, ge=1, le=3600)
    """Length of a receipt epoch in seconds: a cut is a multiple of it."""
    visit_gap_seconds: int = Field(default=1800, ge=6, le=6600)
    """G: an absence of more than this ends a visit, in seconds; the other thresholds of visits follow from it."""
    skew_seconds: float = Field(default=5.0, ge=0)
    """How far clocks may differ, in seconds."""
    kafka_partitions: int = Field(default=2, ge=1)
    """Partitions of each source's topic; fixed once the topic exists."""
    kafka_retention_days: int = Field(default=14, ge=1)
    """How long the topics keep records, in days: at least the speed rows' life and D; alerts look 13 days back."""
    speed_ttl_days: int = Field(default=7, ge=2)
    """How long speed rows live, in days."""
    receipts_ttl_days: int = Field(default=35, ge=1)
    """How long `raw_pos_transactions` shows a receipt after it happened, in days; the master dataset keeps all."""
    oldest_hours: int = 23
    """A: how old an event may be on arrival for speed to count it, in hours."""
    remembered_hours: int = 24
    """D: how far before the cut a new generation of the speed layer starts to read, in hours."""
    speed_partitions: int = Field(default=1, ge=1)
    """Over how many tasks speed spreads the stores: one is quickest on one machine, a cluster wants one per core."""
    archive_seconds: float = Field(default=10.0, ge=0)
    """How often the archive writes, in seconds."""
    records_per_batch: int = Field(default=50_000, ge=1)
    """How many records a micro-batch takes at most, per topic."""
    cut_timeout_seconds: float = 300.0
    """How long a rebuild waits for the archive to pass its markers, in seconds."""
    vacuum_days: int = Field(default=7, ge=7)
    """How long files of Delta tables are kept after a compaction or an export replaced them, in days."""
    keep_publications: int = Field(default=30, ge=1)
    """How many of the newest publications the collector keeps whole."""
    keep_days: int = Field(default=7, ge=1)
    """How long the collector keeps a publication whole after readers were shown it last, in days; previews likewise."""
    anonymous_tenant: str = "default"
    """Whose stores are shown without a key, to whoever reaches this machine; empty: everybody needs one."""
    reads_per_second: int = Field(default=20, ge=1)
    """How often a key of one tenant may read, each second and process."""
    ingests_per_second: int = Field(default=50, ge=1)
    """How many requests with events a key of one tenant may send, each second and process."""
    crash_at: str = ""
    """For fault tests: where processes end as by `kill -9`, `name:n,name:n`; the n-th pass, each once in a home."""
    maven_url: str = "https://repo1.maven.org/maven2"
    """Where jars are fetched from once."""
    cache_dir: Path = Field(default_factory=_user_cache)
    """Where jars are kept, for all homes of this user."""

    @field_validator("crash_at")
    @classmethod
    def _known_points(cls, text: str) -> str:
        planned(text)
        return text

    @model_validator(mode="after")
    def _rules(self) -> Self:
        if self.oldest + timedelta(microseconds=FUTURE_US) > self.remembered:
            raise ValueError("GALATEA_OLDEST_HOURS must be at least an hour less than GALATEA_REMEMBERED_HOURS")
        if self.kafka_retention_days * 24 < self.speed_ttl_days * 24 + self.remembered_hours:
            raise ValueError(
                "GALATEA_KAFKA_RETENTION_DAYS must cover GALATEA_SPEED_TTL_DAYS and GALATEA_REMEMBERED_HOURS"
            )
        if self.alert_rules_seconds <= self.skew_seconds:
            raise ValueError("GALATEA_ALERT_RULES_SECONDS must be more than GALATEA_SKEW_SECONDS")
        if self.visits.longest_known >= self.remembered:
            raise ValueError("GALATEA_REMEMBERED_HOURS must be more than 14 times GALATEA_VISIT_GAP_SECONDS")
        home = self.home.expanduser().resolve()
        kept = kept_nodes(home) or Nodes()
        brokers, nodes = self.kafka_brokers or kept.brokers, self.cassandra_nodes or kept.cassandra
        if not {brokers, nodes} <= {ONE, THREE}:
            raise ValueError("GALATEA_KAFKA_BROKERS and GALATEA_CASSANDRA_NODES must be 1 or 3: of 2 none may be lost")
        known = {
            "home": home,
            "cache_dir": self.cache_dir.expanduser().resolve(),
            "master_uri": _rooted(self.master_uri or str(home / "master")),
            "corrected_uri": _rooted(self.corrected_uri or str(home / "corrected")),
            "checkpoint_uri": _rooted(self.checkpoint_uri or str(home / "checkpoints")),
            "kafka_controller_port": self.kafka_controller_port or self.kafka_port + 1,
            "cassandra_storage_port": self.cassandra_storage_port or self.cassandra_port + 1,
            "kafka_brokers": brokers,
            "cassandra_nodes": nodes,
            "kafka_bootstrap": self.kafka_bootstrap or addresses(brokers, self.kafka_port),
            "cassandra_contact_points": self.cassandra_contact_points or ",".join(HOSTS[:nodes]),
            "airflow_url": self.airflow_url.rstrip("/") or f"http://{LOOPBACK}:{self.airflow_port}",
            "airflow_password_file": self.airflow_password_file or str(home / "airflow.password"),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)
        return self

    def environment(self) -> dict[str, str]:
        """Every setting as a variable, so that a child process has the same ones wherever it was started."""
        said = {name: json.dumps(value) if isinstance(value, dict) else str(value) for name, value in self}
        return {f"GALATEA_{name.upper()}": value for name, value in said.items()}

    @property
    def nodes(self) -> Nodes:
        """How many nodes the local stack has."""
        return Nodes(self.kafka_brokers, self.cassandra_nodes)

    @property
    def epoch(self) -> timedelta:
        """Length of a receipt epoch."""
        return timedelta(seconds=self.epoch_seconds)

    @property
    def visits(self) -> VisitRules:
        """When sightings make a visit."""
        return VisitRules.of_gap(timedelta(seconds=self.visit_gap_seconds))

    @property
    def skew(self) -> timedelta:
        """How far clocks may differ."""
        return timedelta(seconds=self.skew_seconds)

    @property
    def oldest(self) -> timedelta:
        """A of R5."""
        return timedelta(hours=self.oldest_hours)

    @property
    def remembered(self) -> timedelta:
        """D of R5: an event that speed counts repeats nothing older."""
        return timedelta(hours=self.remembered_hours)

    @property
    def speed_ttl(self) -> timedelta:
        """How long speed rows live."""
        return timedelta(days=self.speed_ttl_days)

    @property
    def receipts_ttl(self) -> timedelta:
        """How long raw receipts are shown."""
        return timedelta(days=self.receipts_ttl_days)

    @property
    def retention(self) -> timedelta:
        """How long the topics keep records."""
        return timedelta(days=self.kafka_retention_days)

    @property
    def cut_timeout(self) -> timedelta:
        """How long a rebuild waits for the archive."""
        return timedelta(seconds=self.cut_timeout_seconds)

    @cached_property
    def cassandra_address(self) -> "Address":
        """Where Galatea's keyspace is."""
        from deploy.cassandra import Address  # noqa: PLC0415 - the driver is slow to import

        return Address(tuple(self.cassandra_contact_points.split(",")), self.cassandra_port, "galatea")

    @property
    def crash_folder(self) -> Path:
        """Which of `crash_at` have happened."""
        return self.home / "crashed"

    @cached_property
    def definitions(self) -> "Mapping[str, str]":
        """Hash of every view's definition under these settings, and of what all views share."""
        from views.registry import current_definitions  # noqa: PLC0415 - imports every view

        return current_definitions(self.epoch_seconds, self.visit_gap_seconds)
