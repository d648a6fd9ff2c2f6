"""The sections of the settings: every setting, its unit and its default. Those of clusters are in `clusters`."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator

from deploy.local.nodes import LOOPBACK, is_exposed, is_loopback
from master_dataset.failpoints import parse_plan
from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.object_store import ObjectStore, is_remote
from master_dataset.visits.visit import VisitRules
from serving_layer.limits import INGEST_BYTES_PER_MINUTE, LIMITS, RANGES, Limits, Ranges

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from serving_layer.http.connections import ConnectionLimits

PREFIX = "GALATEA_"
BUFFER = BufferLimits()
Networks = Sequence[IPv4Network | IPv6Network]
LINK_LOCAL: Networks = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"))
WIDE_PREFIX = 8
"""A network with such a prefix or a shorter one is hardly one in which only receivers of webhooks are."""
Port = Annotated[int, Field(ge=1, le=65535)]
PortOrZero = Annotated[int, Field(ge=0, le=65535)]


def _from_json(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("not a JSON object") from None  # its text may be a secret


JsonObject = BeforeValidator(_from_json)
"""For a dictionary that a variable gives as JSON."""

_ORIGIN = re.compile(r"https?://[a-z0-9.\-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
"""As browsers send it: in lower case, without a path, and without `*`."""
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - nothing listens here


class InvalidSettingsError(ValueError):
    """Settings that cannot be used."""

    def __init__(self, problems: Sequence[str]) -> None:
        """`problems`: one sentence per variable, which it names."""
        super().__init__("; ".join(problems))
        self.problems = problems


_PROBLEMS: Mapping[str, str] = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_parsing", "finite_number"), "must be a number"),
    "bool_parsing": "must be true or false",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_too_short": "must not be empty",
    "string_type": "must be a string",
    "dict_type": "must be a JSON object",
}
"""What is wrong with a value, by pydantic's name for it; the names in braces are pydantic's context."""


def _problem(wrong: "ErrorDetails") -> str:
    """What is wrong with a setting; for one in a JSON object, also with which of its members."""
    known = _PROBLEMS.get(wrong["type"])
    if known is None:  # raised by one of our validators
        return wrong["msg"].removeprefix("Value error, ")
    bounds = {
        name: f"{value:.12g}" if isinstance(value, float) else value for name, value in wrong.get("ctx", {}).items()
    }
    member = "".join(f"`{each}` " for each in wrong["loc"][1:])
    return f"{member}{known.format(**bounds)}"


class Section(BaseModel):
    """Settings that belong together.

    The name of a setting is the section's prefix and the field's name, or the field's alias if it has one. The variable
    is `GALATEA_` and that name, in capitals.

    Attributes:
        former: Names of settings in the release before, by their names today. Such a variable counts if the new one is
            not set.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)
    prefix: ClassVar[str] = ""
    former: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def names(cls) -> Mapping[str, str]:
        """Return the field of each setting, by the setting's name."""
        return {str(field.validation_alias or f"{cls.prefix}{name}"): name for name, field in cls.model_fields.items()}

    @classmethod
    def read(cls, overrides: Mapping[str, Any], recorded: Mapping[str, str] | None = None) -> Self:
        """Read the environment.

        Args:
            overrides: Values that take precedence, by setting name.
            recorded: Values instead of the defaults, by setting name.

        Raises:
            InvalidSettingsError: A value cannot be used.
        """
        instead = {f"{PREFIX}{name}".lower(): value for name, value in (recorded or {}).items()}
        environment = {name.lower(): value for name, value in os.environ.items()}
        given = {f"{PREFIX}{name}".lower(): value for name, value in overrides.items()}
        values = {
            str(cls.model_fields[field].validation_alias or field): known[variable]
            for name, field in cls.names().items()
            for known, each in (
                (instead, name),
                (environment, cls.former.get(name, name)),
                (environment, name),
                (given, name),
            )
            if (variable := f"{PREFIX}{each}".lower()) in known
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = [f"`{cls._variable(str(wrong['loc'][0]))}`: {_problem(wrong)}" for wrong in error.errors()]
            raise InvalidSettingsError(problems) from error

    def conflicts(self) -> Iterator[str]:
        """Say which settings of this section contradict each other, one sentence each, which names them."""
        yield from ()

    @classmethod
    def names_of(cls, fields: Iterable[str]) -> Sequence[str]:
        """Return the variables of these fields."""
        return [cls._variable(field) for field in fields]

    def given(self) -> frozenset[str]:
        """Return the variables that have a value other than their default."""
        fields_of = type(self).model_fields
        return frozenset(
            f"{PREFIX}{name}".upper()
            for name, field in self.names().items()
            if getattr(self, field) != fields_of[field].get_default(call_default_factory=True)
        )

    @classmethod
    def _variable(cls, location: str) -> str:
        """Return the variable of a field that pydantic names by its name or its alias."""
        places = {field: name for name, field in cls.names().items()}
        return f"{PREFIX}{places.get(location, location)}".upper()


_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
"""Not only what Amazon allows, but nothing that has another meaning in a URL, such as `KEY:SECRET@`."""


_JAVA_PATH = re.compile(r"[^,\\#?%\x00-\x1f\x7f-\U0010ffff]+")
"""Lists of folders are split at commas, others are escapes of property files and URLs, or depend on the locale."""


class PathSettings(Section):
    """Paths.

    Where data is stored.
    """

    home: Path = Path(".galatea")
    """Folder that holds all state: master dataset, checkpoints, logs, and the data of the local stack."""
    master_uri: str = ""
    """Root of the master dataset's tables, a folder or `s3://BUCKET/PREFIX`; if empty, `master` in the home."""
    corrected_uri: str = ""
    """Root of corrected views' tables, a folder or `s3://BUCKET/PREFIX`; if empty, `corrected` in the home."""
    checkpoint_uri: str = ""
    """Root of the streams' checkpoints, a folder or `s3://BUCKET/PREFIX`; if empty, `checkpoints` in the home."""
    backup_dir: str = ""
    """Folder for what `galatea backup` writes, best on another disk; if empty, `backups` in the home."""
    secrets_key_file: str = ""
    """File of the key that encrypts webhook secrets and signs keys and alerts; if empty, `secrets.key` in the home."""

    @field_validator("home")
    @classmethod
    def _can_be_folder(cls, home: Path) -> Path:
        place = home.expanduser().absolute()
        if not _JAVA_PATH.fullmatch(str(place)):
            message = f"`{place}` has a character that Kafka or Cassandra would misread: only ASCII without , \\ # ? %"
            raise ValueError(message)
        for each in (place, *place.parents):
            try:
                is_folder, is_there = each.is_dir(), each.exists()
            except OSError as error:
                raise ValueError(f"`{each}` cannot be reached: {error.strerror}") from error
            if is_folder:
                break
            if is_there:
                raise ValueError(f"`{each}` is a file, and all state is kept in a folder")
        return home

    @field_validator("backup_dir")
    @classmethod
    def _is_folder(cls, folder: str) -> str:
        if "://" in folder:
            raise ValueError("not a folder: backups are written to a disk, and can be copied from there")
        return folder

    def resolved(self) -> Self:
        """Make every path absolute, so that it is the same one wherever a process was started."""
        home = self.home.expanduser().resolve()
        return self.model_copy(
            update={
                "home": home,
                "master_uri": _rooted(self.master_uri or str(home / "master")),
                "corrected_uri": _rooted(self.corrected_uri or str(home / "corrected")),
                "checkpoint_uri": _rooted(self.checkpoint_uri or str(home / "checkpoints")),
                "backup_dir": _rooted(self.backup_dir or str(home / "backups")),
                **absolute(self, ("secrets_key_file",)),
            }
        )

    def conflicts(self) -> Iterator[str]:
        """Say which roots are neither a folder nor on an object store."""
        for variable, uri in self.roots.items():
            if "://" in uri and not is_remote(uri):
                yield f"{variable} must be a folder or s3://BUCKET/PREFIX, not {uri.partition('://')[0]}://"
            elif is_remote(uri) and not _BUCKET.fullmatch(uri.partition("://")[2].partition("/")[0]):
                yield f"{variable} must be s3://BUCKET/PREFIX, and a bucket's name has letters, digits, dots, - and _"

    @property
    def roots(self) -> Mapping[str, str]:
        """The roots of tables and checkpoints, by their variables."""
        return {
            "GALATEA_MASTER_URI": self.master_uri,
            "GALATEA_CORRECTED_URI": self.corrected_uri,
            "GALATEA_CHECKPOINT_URI": self.checkpoint_uri,
        }

    @property
    def remote(self) -> Mapping[str, str]:
        """The roots that are on an object store, by their variables."""
        return {name: uri for name, uri in self.roots.items() if is_remote(uri)}

    @property
    def folders(self) -> Sequence[Path]:
        """The roots of master dataset and checkpoints that are local folders."""
        return [Path(uri) for uri in (self.master_uri, self.checkpoint_uri) if not is_remote(uri)]


class ObjectStoreSettings(Section):
    """Object store.

    Used where tables or checkpoints have an `s3://` URI.
    """

    prefix = "s3_"

    endpoint: str = ""
    """URL of the object store; if empty, that of Amazon S3. Without TLS only on this machine."""
    region: str = ""
    """Region of the buckets; if empty, that of the environment or profile."""
    path_style: bool = False
    """Use path-style URLs, with the bucket in the path instead of the host name, as most self-hosted stores need."""

    def resolved(self) -> Self:
        """Remove what means nothing from the URL."""
        return self.model_copy(update={"endpoint": self.endpoint.rstrip("/")})

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        url = urlsplit(self.endpoint)
        if self.endpoint and (url.scheme not in {"http", "https"} or not url.hostname or url.path or url.username):
            yield "GALATEA_S3_ENDPOINT must be http://HOST:PORT or https://HOST[:PORT]"
        elif is_exposed(self.endpoint):
            yield "GALATEA_S3_ENDPOINT must be https, except on this machine: data would be readable on the network"

    @property
    def store(self) -> ObjectStore:
        """The object store."""
        return ObjectStore(self.endpoint, self.region, self.path_style)

    def conflicts_in_use(self) -> Iterator[str]:
        """Say which variables only some of the clients would follow, to another store."""
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if not self.endpoint and os.environ.get(name):
                yield f"{name} is set and GALATEA_S3_ENDPOINT is not: clients would use different stores"


class StackSettings(Section):
    """Local stack.

    The number of its nodes is among the settings of Kafka and Cassandra.
    """

    secure: bool = False
    """Encrypt all connections and require logins. Fixed when a home is created: `galatea up --secure`."""
    start_seconds: int = Field(default=600, ge=10, le=7200)
    """How long a component may take until it is ready, in seconds; multiplied by the number of nodes for Cassandra."""
    least_disk_mb: int = Field(default=2048, ge=0, le=10**9)
    """Free space that `galatea up` needs on the disks of the home and of the tables, in MB; 0 for any."""


class JarSettings(Section):
    """Jars.

    Where they are downloaded from and cached.
    """

    maven_url: str = "https://repo1.maven.org/maven2"
    """Maven repository that jars are downloaded from, once each."""
    cache_dir: Path = Field(default_factory=lambda: Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "galatea")
    """Folder where jars are cached for all homes of this user."""


class SparkSettings(Section):
    """Spark."""

    prefix = "spark_"

    master: str = "local[2]"
    """Spark master URL of every Spark process."""
    cores: int = Field(default=2, ge=1)
    """Cores that each Spark process uses on a cluster. Ignored with `local[N]`, which names the number itself."""
    executor_memory_mb: int = Field(default=1024, ge=512)
    """Heap of each executor on a cluster, in MB. Its Python workers need memory in addition."""
    driver_host: str = ""
    """Address at which executors reach a driver; if empty, loopback for a local master, else Spark's default."""
    python: str = ""
    """Path to Python on a cluster's executors, with this package installed; if empty, the driver's."""
    conf: Annotated[dict[str, str], JsonObject] = Field(default_factory=dict)
    """Further Spark options as a JSON object, for example for a cluster manager; neither Galatea's own nor secrets."""


class AirflowSettings(Section):
    """Airflow."""

    prefix = "airflow_"

    port: Port = 8080
    """Port of the local stack's Airflow web server."""
    url: str = ""
    """URL of Airflow; if empty, that of the local stack. Without TLS only on this machine."""
    user: str = "admin"
    """Airflow user for Galatea's commands and REST interface."""
    password_file: str = ""
    """File with that user's password; if empty, `airflow.password` in the home."""
    ca_file: str = ""
    """CA certificates (PEM) that an https URL is verified with; if empty, those of the package `certifi`."""
    rebuild_schedule: str = Field(default="0 * * * *", validation_alias="rebuild_schedule")
    """When the local stack's Airflow rebuilds: a cron expression, in UTC."""

    def resolved(self, home: Path, *, secure: bool) -> Self:
        """Fill in the defaults of the local stack in `home`. `secure`: it encrypts."""
        return self.model_copy(
            update={
                "url": self.url.rstrip("/") or self.local_url(secure=secure),
                "password_file": self.password_file or str(home / "airflow.password"),
                **absolute(self, ("ca_file",)),
            }
        )

    def local_url(self, *, secure: bool) -> str:
        """Return the URL of the local stack's Airflow, whether or not it runs."""
        return f"{'https' if secure else 'http'}://{LOOPBACK}:{self.port}"

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        if self.ca_file and not self.url.startswith("https://"):
            yield "GALATEA_AIRFLOW_CA_FILE has no effect without a GALATEA_AIRFLOW_URL of https"
        if is_exposed(self.url):
            yield "GALATEA_AIRFLOW_URL must be https, except on this machine: others could read the password"


class LayerSettings(Section):
    """Layers.

    Shared by the archive, the speed layer and the batch layer.
    """

    epoch_seconds: int = Field(default=300, ge=1, le=3600)
    """Length of a receipt epoch, in seconds. A cut is a multiple of it."""
    visit_gap_seconds: int = Field(default=1800, ge=6, le=6600)
    """An absence longer than this ends a visit, in seconds (G). The other thresholds of visits follow from it."""
    skew_seconds: float = Field(default=5.0, ge=0)
    """How far clocks may differ, in seconds."""
    records_per_batch: int = Field(default=50_000, ge=1)
    """Maximum number of records per micro-batch and topic."""

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


class SeveralProcesses(Section):
    """A component that may have several processes on one machine: its name, its name with `-2`, and so on."""

    processes: int
    metrics_port: int

    @property
    def process_names(self) -> Sequence[str]:
        """Names of the processes, as in `galatea status`."""
        component = self.prefix.removesuffix("_")
        return [component, *(f"{component}-{number}" for number in range(2, self.processes + 1))]

    def metrics_port_of(self, name: str) -> int:
        """Return the Prometheus port of one of them; 0 for any free port."""
        return self.metrics_port + self.process_names.index(name) if self.metrics_port else 0


class ArchiveSettings(SeveralProcesses):
    """Archive."""

    prefix = "archive_"

    processes: int = Field(default=1, ge=1, le=16)
    """Processes of the archive on one machine: `archive`, `archive-2` and so on, which share the topics."""
    metrics_port: PortOrZero = 0
    """Prometheus port of `archive`; `archive-2` has the next, and so on. 0: any, written to `run/*.targets.json`."""
    seconds: float = Field(default=10.0, ge=0)
    """How often the archive writes, in seconds."""
    heap_mb: int = Field(default=512, ge=256)
    """Heap of each process, in MB. Its Python workers need memory in addition."""


class SpeedSettings(SeveralProcesses):
    """Speed layer."""

    prefix = "speed_"

    processes: int = Field(default=1, ge=1, le=16)
    """Processes of the speed layer on one machine: `speed` works, `speed-2` and so on stand by to take over."""
    metrics_port: PortOrZero = 0
    """Prometheus port of `speed`; `speed-2` has the next, and so on. 0: any, written to `run/*.targets.json`."""
    heap_mb: int = Field(default=640, ge=256)
    """Heap of each process, in MB. Its Python workers need memory in addition."""
    ttl_days: int = Field(default=7, ge=2)
    """Days after which speed rows expire."""
    partitions: int = Field(default=2, ge=1)
    """Tasks that share the stores of a micro-batch of more than 5,000 records, at most one per core."""
    micro_batch_mb: int = Field(default=512, ge=128)
    """MB of parsed events that a micro-batch may have; counting them takes several times as much memory. If there are
    more, a new generation reads smaller micro-batches until it has passed them."""
    receipts_ttl_days: int = Field(default=35, ge=1, le=7300, validation_alias="receipts_ttl_days")
    """Days that a receipt is shown after it happened. The master dataset keeps all of them."""
    oldest_hours: int = Field(default=23, validation_alias="oldest_hours")
    """The speed layer counts events up to this age on arrival, in hours (A in the rules of the cut)."""
    remembered_hours: int = Field(default=24, validation_alias="remembered_hours")
    """How far before the cut a new speed generation starts to read, in hours (D in the rules of the cut)."""

    @property
    def ttl(self) -> timedelta:
        """How long speed rows are kept."""
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
        """D of R5: an event that speed counts cannot be a duplicate of anything older."""
        return timedelta(hours=self.remembered_hours)


class BatchSettings(Section):
    """Rebuilds and retention of their results."""

    cut_timeout_seconds: float = 300.0
    """Seconds that a rebuild waits for the archive to pass its markers."""
    small_rebuild_events: int = Field(default=250_000, ge=0)
    """Archived events of a source up to which a rebuild computes in its own process; 0: always by Spark."""
    prompt_correction: bool = True
    """Whether events that the speed layer leaves to the next publication start a small rebuild by themselves, in a
    process of `api`. On your own clusters, its login needs the rights of rebuilds for that."""
    prompt_correction_delay_seconds: float = Field(default=5.0, ge=0, le=3600)
    """Seconds after the end of the receipt epoch of such events until the rebuild starts, besides the skew."""
    prompt_correction_pause_seconds: int = Field(default=60, ge=1, le=86_400)
    """Least number of seconds between the end of such a rebuild and the start of the next."""
    prompt_correction_days: int = Field(default=31, ge=1)
    """Changed days up to which such a rebuild starts; with more, or if it needs Spark, it is left to the schedule."""
    vacuum_days: int = Field(default=7, ge=7)
    """Days that files of Delta tables are kept after a compaction or export replaced them."""
    keep_publications: int = Field(default=30, ge=1)
    """Number of newest publications that garbage collection keeps complete."""
    keep_days: int = Field(default=7, ge=1)
    """Days that garbage collection keeps a publication after it was last current, and a preview after it was made."""

    @property
    def cut_timeout(self) -> timedelta:
        """How long a rebuild waits for the archive."""
        return timedelta(seconds=self.cut_timeout_seconds)


def _listed(text: str) -> Sequence[str]:
    """What commas separate, without blanks."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class ApiSettings(SeveralProcesses):
    """REST interface."""

    prefix = "api_"

    host: str = LOOPBACK
    """Address that the REST interface listens on. Any address other than loopback needs a certificate, or
    `GALATEA_API_PROXIES`."""
    port: Port = 8000
    """Port of the REST interface."""
    processes: int = Field(default=1, ge=1, le=64)
    """Processes of the REST interface on one machine: `api`, `api-2` and so on, which share the port. Linux only."""
    url: str = ""
    """URL at which commands reach the REST interface; if empty, its address and port. With `http:`, the key of the
    command is sent unencrypted, so only use it on this machine or in a network that you trust."""
    ca_file: str = ""
    """CA certificates (PEM) that commands verify an https URL with; if empty, those of the package `certifi`."""
    proxies: str = ""
    """Networks, separated by commas, of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    hosts: str = ""
    """Names, separated by commas, under which REST and pages are served, besides `localhost`: `*.shop.example` for all
    below. The address that it listens on, and the host of `GALATEA_API_URL`, need not be listed."""
    metrics_port: PortOrZero = 0
    """Prometheus port of `api`; `api-2` has the next, and so on. 0: any free ones, written to `run/*.targets.json`."""
    anonymous_tenant: str = Field(default="default", validation_alias="anonymous_tenant")
    """Tenant whose stores this machine can read without a key, while it alone reaches REST; if empty, nobody can. In a
    stack that was started with `--secure`, nobody can unless a tenant other than `default` is named."""
    reads_per_second: int = Field(default=20, ge=1, validation_alias="reads_per_second")
    """Reads per second that one key of a tenant may make, of all processes together."""
    ingests_per_second: int = Field(default=50, ge=1, validation_alias="ingests_per_second")
    """Requests with events per second that one key of a tenant may make, of all processes together."""
    ingest_mb_per_minute: int = Field(
        default=INGEST_BYTES_PER_MINUTE // 1_000_000, ge=1, le=1_000_000, validation_alias="ingest_mb_per_minute"
    )
    """MB of events, decompressed, that one key of a tenant may send per minute to each process. Each
    different day of a request that is more than 31 days in the past adds 256 kB, because the archive writes a file for
    it."""
    at_least_seconds: float = Field(default=5.0, ge=0, le=60, validation_alias="at_least_seconds")
    """How long a request with `at_least` or `max_staleness` waits for the data, in seconds."""
    cors_origins: str = Field(default="", validation_alias="cors_origins")
    """Origins, separated by commas, whose scripts may call the REST interface from a browser, with their own key."""

    embed_origins: str = ""
    """Origins, separated by commas, whose pages may show a share link in a frame, if the link names them."""
    shared_reads_per_second: int = Field(default=100, ge=1, validation_alias="shared_reads_per_second")
    """Reads per second of one share link, of everybody who has it and all processes together."""

    @field_validator("proxies")
    @classmethod
    def _known_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @field_validator("hosts")
    @classmethod
    def _known_hosts(cls, text: str) -> str:
        for each in _listed(text):
            if not (_HOST.fullmatch(each) or _is_address(each)):
                raise ValueError(
                    f"`{each}` is not a name such as `galatea.example` or `*.shop.example`, nor an address; no port"
                )
        return text

    @cached_property
    def served_names(self) -> Sequence[str]:
        """Under which REST and pages are served, besides those of loopback: as listed, and as commands reach them."""
        own = [self.host, urlsplit(self.url).hostname or ""]
        return [*_listed(self.hosts), *(each for each in own if each and each not in _EVERY_ADDRESS)]

    @property
    def opened_by(self) -> str:
        """The setting that lets others than this machine reach REST; empty if there is none."""
        if not is_loopback(self.host):
            return "GALATEA_API_HOST"
        named = urlsplit(self.url).hostname
        ways = {
            "GALATEA_API_PROXIES": self.proxies,
            "GALATEA_API_HOSTS": self.hosts,
            "GALATEA_API_URL": named and not is_loopback(named),
        }
        return next((setting for setting, opens in ways.items() if opens), "")

    @property
    def tenant_without_key(self) -> str:
        """The tenant whose stores are visible without a key; empty for none, and as soon as others can reach REST."""
        return "" if self.opened_by else self.anonymous_tenant

    def conflicts(self) -> Iterator[str]:
        """Say that nobody can read without a key where somebody is meant to."""
        if self.opened_by and "GALATEA_ANONYMOUS_TENANT" in self.given() and self.anonymous_tenant:
            yield (
                f"GALATEA_ANONYMOUS_TENANT must be empty with {self.opened_by}: "
                "only where this machine alone reaches REST can it be read without a key"
            )

    @property
    def trusted_proxies(self) -> Networks:
        """Networks of proxies."""
        return _networks(self.proxies)

    @cached_property
    def allowed_origins(self) -> Sequence[str]:
        """The origins of `cors_origins`."""
        return _listed(self.cors_origins)

    @cached_property
    def frame_origins(self) -> Sequence[str]:
        """The origins of `embed_origins`."""
        return _listed(self.embed_origins)

    @field_validator("cors_origins", "embed_origins")
    @classmethod
    def _exact_origins(cls, text: str) -> str:
        for each in _listed(text):
            if not _ORIGIN.fullmatch(each):
                raise ValueError(
                    f"`{each}` is not an origin, such as `https://shop.example` or `http://localhost:3000`"
                )
        return text


class TlsSettings(Section):
    """TLS.

    The certificate of the REST interface, the SQL component and metrics.
    """

    prefix = "tls_"

    certificate_file: str = ""
    """Certificate and intermediates, PEM; if empty, nothing is encrypted. Renewals take effect without a restart."""
    key_file: str = ""
    """Private key of that certificate, PEM."""
    key_password: SecretStr = SecretStr("")
    """Password of an encrypted key."""
    key_password_file: str = ""
    """File with that password."""

    @property
    def is_on(self) -> bool:
        """Whether connections are encrypted."""
        return bool(self.certificate_file)

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("certificate_file", "key_file", "key_password_file")))

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        yield from key_conflicts(self)


class MetricsSettings(Section):
    """Metrics.

    Served for Prometheus. The port of each process is among its own settings.
    """

    prefix = "metrics_"

    host: str = LOOPBACK
    """Address that processes serve metrics on. Any address other than loopback needs a token."""
    token: SecretStr = SecretStr("")
    """Bearer token without which no metrics are served; if empty, they need none."""
    token_file: str = ""
    """File with that token."""

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("token_file",)))

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        host, token, file = self.names_of(("host", "token", "token_file"))
        if {token, file} <= self.given():
            yield f"{token} and {file} are both set"
        if not (is_loopback(self.host) or {token, file} & self.given()):
            yield f"{host} needs {token} or {file}: metrics show topics and volumes"


class TraceSettings(Section):
    """Traces.

    Sent by OpenTelemetry, which needs the extra `traces` of the package.
    """

    prefix = "traces_"

    endpoint: str = ""
    """URL that spans are sent to as OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`; if empty, no traces."""
    sample_ratio: float = Field(default=0.01, ge=0, le=1)
    """Share of traces to record, of requests that do not continue a trace and micro-batches that belong to none."""
    headers: SecretStr = SecretStr("")
    """Header fields to send with spans, as a JSON object, such as a token. Without TLS only on this machine."""
    headers_file: str = ""
    """File with these header fields."""
    ca_file: str = ""
    """CA certificates (PEM) that an https endpoint is verified with; if empty, those of the package `certifi`."""

    @field_validator("endpoint")
    @classmethod
    def _of_http(cls, text: str) -> str:
        if text and not text.startswith(("http://", "https://")):
            raise ValueError("not a URL of http or https")
        return text

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("headers_file", "ca_file")))

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        endpoint, headers, file, ca_file = self.names_of(("endpoint", "headers", "headers_file", "ca_file"))
        given = self.given()
        if {headers, file} <= given:
            yield f"{headers} and {file} are both set"
        if not self.endpoint:
            for name in given & {headers, file, ca_file}:
                yield f"{name} has no effect without {endpoint}"
        if given & {headers, file} and is_exposed(self.endpoint):
            yield f"{endpoint} must be https, except on this machine: others could read the header fields"


class LineageSettings(Section):
    """Lineage.

    Reported by OpenLineage, which needs the extra `lineage` of the package.
    """

    prefix = "lineage_"

    config_file: str = ""
    """Configuration of the OpenLineage client, YAML, with its transport; if empty, no lineage."""
    namespace: str = Field(default="galatea", min_length=1)
    """Namespace of the jobs. Give each deployment its own one."""
    seconds: float = Field(default=60.0, ge=1)
    """How often the archive reports what it has written, per source, in seconds."""

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("config_file",)))


class SqlSettings(Section):
    """SQL over the PostgreSQL protocol."""

    prefix = "sql_"

    host: str = LOOPBACK
    """Address that the SQL component listens on. Any address other than loopback needs a certificate."""
    port: Port = 5433
    """Port of the SQL component."""
    metrics_port: PortOrZero = 0
    """Prometheus port of the SQL component; 0: any free port, written to `run/sql.targets.json`."""
    connections: int = Field(default=500, ge=1, le=10_000)
    """Maximum number of open SQL connections."""
    connections_per_tenant: int = Field(default=300, ge=1, le=10_000)
    """Maximum number of open SQL connections per tenant."""
    idle_seconds: float = Field(default=1800.0, gt=0)
    """Seconds without a message after which an SQL connection is closed."""
    statements: int = Field(default=4, ge=1, le=64)
    """Maximum number of SQL statements that run at the same time; others wait."""
    statement_seconds: float = Field(default=60.0, gt=0)
    """Maximum duration of an SQL statement in seconds, including the time it waits to start."""
    memory_mb: int = Field(default=256, ge=64)
    """Memory of the database that runs one SQL statement, in MB. Its process may take 512 MB more."""
    process_mb: int = Field(default=2048, ge=1024)
    """Memory that the SQL component may reserve in addition to its databases, in MB. Linux enforces it."""
    source_rows: int = Field(default=2_000_000, ge=1_000)
    """Maximum number of table rows that one SQL statement may read, after its filters on store and time."""
    result_rows: int = Field(default=200_000, ge=1)
    """Maximum number of rows in the result of one SQL statement."""
    result_mb: int = Field(default=100, ge=1)
    """Maximum size of the result of one SQL statement, as sent and in memory, in MB."""


class LimitSettings(Section):
    """Limits per process. The limits of a single event are set by the parser and are the same over REST and Kafka."""

    former = {
        "decompressed_bytes": "unfolded_bytes",
        "compression_ratio": "unfolding",
        "request_bytes": "question_bytes",
        "producer_records": "courier_records",
        "producer_bytes": "courier_bytes",
    }

    header_bytes: int = Field(default=16_384, ge=1024, le=262_144)
    """Bytes of the request line and all header fields together."""
    header_fields: int = Field(default=100, ge=20)
    """Header fields per request."""
    receive_seconds: float = Field(default=10.0, gt=0)
    """Seconds within which a request must arrive completely."""
    idle_seconds: float = Field(default=30.0, ge=1)
    """Seconds that a connection may be idle between requests, or that its client may stop reading a response."""
    connections: int = Field(default=4_096, ge=16)
    """Open connections. Opening another one closes the one that has been idle the longest."""
    unsent_bytes: int = Field(default=128_000_000, ge=1_000_000)
    """Bytes of responses that clients have not read yet, over all connections."""
    body_bytes: int = Field(default=LIMITS.body_bytes, ge=1024)
    """Bytes of a body with events, before decompression."""
    decompressed_bytes: int = Field(default=LIMITS.decompressed_bytes, ge=1024)
    """Bytes of a body with events, after decompression."""
    compression_ratio: int = Field(default=LIMITS.compression_ratio, ge=1)
    """Highest compression ratio of a body that exceeds `GALATEA_BODY_BYTES` after decompression."""
    request_events: int = Field(default=LIMITS.request_events, ge=1, le=10_000)
    """Events per request."""
    ingest_oldest_days: int = Field(default=LIMITS.ingest_oldest_days, ge=1)
    """How many days before its receipt an event may have happened, over REST; `galatea ingest` takes older ones."""
    request_bytes: int = Field(default=LIMITS.request_bytes, ge=1024)
    """Bytes of a body without events."""
    bodies_bytes: int = Field(default=LIMITS.bodies_bytes, ge=1_000_000)
    """Bytes of all bodies that are being received or processed."""
    requests_in_flight: int = Field(default=LIMITS.requests_in_flight, ge=1)
    """Concurrent requests."""
    ingests_in_flight: int = Field(default=LIMITS.ingests_in_flight, ge=1)
    """Concurrent requests with events."""
    requests_per_key: int = Field(default=LIMITS.requests_per_key, ge=1)
    """Concurrent requests of one key of a tenant."""
    live_followers: int = Field(default=LIMITS.live_followers, ge=1)
    """Concurrent clients of live answers."""
    live_followers_per_key: int = Field(default=LIMITS.live_followers_per_key, ge=1)
    """Concurrent clients of live answers with one key of a tenant."""
    producer_records: int = Field(default=BUFFER.records, ge=1)
    """Events sent to the broker that it has not acknowledged yet."""
    producer_bytes: int = Field(default=BUFFER.size, ge=1_000_000)
    """Bytes of events that the broker has not acknowledged yet."""
    range_fine_days: int = Field(default=RANGES.fine_days, ge=1)
    """Days in the range of a query with a grain of 15 minutes or an hour."""
    range_days: int = Field(default=RANGES.coarse_days, ge=1)
    """Days in the range of a query with any other grain."""
    disk_free_percent: float = Field(default=10.0, ge=0, lt=100)
    """Free space on the disk of the home, in percent, below which events are rejected; 0: no check."""
    disk_free_mb: int = Field(default=1000, ge=0)
    """Free space on the disk of the home, in MB, below which events are rejected; 0: no check."""

    @property
    def request_limits(self) -> Limits:
        """Limits of requests and bodies."""
        return Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})

    @property
    def connection_limits(self) -> "ConnectionLimits":
        """Limits of connections. Their defaults are repeated above, because importing them is slow."""
        from serving_layer.http.connections import ConnectionLimits  # noqa: PLC0415 - slow to import

        return ConnectionLimits(**{each.name: getattr(self, each.name) for each in fields(ConnectionLimits)})

    @property
    def ranges(self) -> Ranges:
        """Maximum ranges of queries."""
        return Ranges(self.range_fine_days, self.range_days)

    @property
    def producer_limits(self) -> BufferLimits:
        """Limits of events that the broker has not acknowledged yet."""
        return BufferLimits(self.producer_records, self.producer_bytes)


class AlertSettings(Section):
    """Alerts."""

    prefix = "alerts_"

    metrics_port: PortOrZero = 0
    """Prometheus port of the alert processor; 0: any free port, written to `run/alerts.targets.json`."""
    stuck_seconds: float = Field(default=45.0, gt=0)
    """Seconds without progress after which the alert processor is killed and restarted."""
    tick_seconds: float = Field(default=15.0, gt=0, le=60)
    """How often time advances for alert rules whose topics receive nothing, in seconds."""
    rules_seconds: float = Field(default=60.0, ge=1, validation_alias="alert_rules_seconds")
    """Seconds between writing a rule version and its taking effect. Must be more than the skew."""
    rules_per_tenant: int = Field(default=100, ge=1, le=10_000, validation_alias="alert_rules_per_tenant")
    """Maximum number of alert rules per tenant."""


class WebhookSettings(Section):
    """Webhooks."""

    prefix = "webhook_"

    networks: str = ""
    """Non-public networks, separated by commas, that webhooks may call, even without TLS."""
    suspend_hours: float = Field(default=24.0, gt=0, le=720)
    """Hours of failed calls after which a webhook endpoint is suspended, until it is resumed."""
    per_tenant: int = Field(default=10, ge=1, le=1000, validation_alias="webhooks_per_tenant")
    """Maximum number of webhook endpoints per tenant. Each is a separate consumer group."""
    metrics_port: PortOrZero = Field(default=0, validation_alias="dispatcher_metrics_port")
    """Prometheus port of the webhook dispatcher; 0: any free port, written to `run/dispatcher.targets.json`."""

    @field_validator("networks")
    @classmethod
    def _known_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @property
    def allowed_networks(self) -> Networks:
        """Non-public networks that webhooks may call."""
        return _networks(self.networks)

    @property
    def link_local_networks(self) -> Networks:
        """The allowed networks with link-local addresses, at which clouds serve metadata and credentials."""
        return [
            each
            for each in self.allowed_networks
            if any(each.version == own.version and each.overlaps(own) for own in LINK_LOCAL)
        ]

    @property
    def wide_networks(self) -> Networks:
        """The allowed networks with 16 million IPv4 addresses or more, or as large a part of IPv6."""
        return [each for each in self.allowed_networks if each.prefixlen <= WIDE_PREFIX]


class FailpointSettings(Section):
    """Fault tests."""

    crash_at: str = ""
    """Failpoints at which processes exit as if killed, `name:n,name:n`: at the n-th pass, once per home."""

    @field_validator("crash_at")
    @classmethod
    def _known_points(cls, text: str) -> str:
        parse_plan(text)
        return text


def _rooted(uri: str) -> str:
    """Make a folder absolute. A URI stays as it is, but for Spark's name of the scheme of S3."""
    scheme, colon, rest = uri.partition("://")
    if colon and scheme != "file":
        return f"{'s3' if scheme == 's3a' else scheme}://{rest.rstrip('/')}"
    return str(Path(uri.removeprefix("file://")).expanduser().resolve())


def absolute(section: Section, files: Iterable[str]) -> Mapping[str, str]:
    """Return the paths in these fields, absolute. Links stay links: a mounted secret is replaced behind one."""
    return {name: os.path.abspath(os.path.expanduser(path)) for name in files if (path := getattr(section, name))}  # noqa: PTH100, PTH111 - `resolve` would follow links


def key_conflicts(section: Section) -> Iterator[str]:
    """Say which of the settings of a certificate and its key contradict each other."""
    given = section.given()
    certificate, key, password, file = section.names_of(
        ("certificate_file", "key_file", "key_password", "key_password_file")
    )
    if certificate in given and key not in given:
        yield f"{certificate} needs {key}"
    if key in given and certificate not in given:
        yield f"{key} needs {certificate}"
    if key not in given:
        yield from (f"{name} needs {key}" for name in (password, file) if name in given)
    elif {password, file} <= given:
        yield f"{password} and {file} are both set"


def _networks(text: str) -> Networks:
    return [ip_network(each.strip()) for each in text.split(",") if each.strip()]
