"""All settings of a deployment. Only `deploy/` reads the environment; everything else takes arguments."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from deploy.clusters import CassandraSettings, KafkaSettings
from deploy.local.home import RESET_OR_MIGRATE, SUPERVISED, changed_settings, recorded_settings
from deploy.local.nodes import ONE, THREE, Nodes, is_local, is_loopback, reachable, recorded_nodes
from deploy.local.security import OPERATOR, Security
from deploy.reports.sections import ReportSettings, SmtpSettings
from deploy.sections import (
    PREFIX,
    AirflowSettings,
    AlertSettings,
    ApiSettings,
    ArchiveSettings,
    BatchSettings,
    FailpointSettings,
    InvalidSettingsError,
    JarSettings,
    LayerSettings,
    LimitSettings,
    LineageSettings,
    MetricsSettings,
    ObjectStoreSettings,
    PathSettings,
    Section,
    SparkSettings,
    SpeedSettings,
    SqlSettings,
    StackSettings,
    TlsSettings,
    TraceSettings,
    WebhookSettings,
    absolute,
)
from master_dataset.errors import OperatorError
from master_dataset.object_store import use
from master_dataset.tls import Tls

if TYPE_CHECKING:
    import ssl

FUTURE = timedelta(hours=1)
"""How far in the future an event may be. The parser has the same; importing it takes longer than all of this."""


@dataclass(frozen=True, init=False)
class Settings:
    """All settings of a deployment, by section."""

    paths: PathSettings
    s3: ObjectStoreSettings
    stack: StackSettings
    api: ApiSettings
    limits: LimitSettings
    sql: SqlSettings
    tls: TlsSettings
    metrics: MetricsSettings
    traces: TraceSettings
    lineage: LineageSettings
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
    reports: ReportSettings
    smtp: SmtpSettings
    jars: JarSettings
    failpoints: FailpointSettings

    def __init__(self, **overrides: Any) -> None:  # noqa: ANN401 - whatever pydantic takes for the field
        """Read the environment. If tables or checkpoints are on an object store, it becomes that of this process.

        Args:
            overrides: Values that take precedence, by setting name: the variable in lower case without `GALATEA_`, as
                in `Settings(kafka_port=9192)`.

        Raises:
            InvalidSettingsError: A value, or a combination of them, cannot be used.
            OperatorError: They differ from those recorded in the home, and no stack has started this process.
        """
        self._read(overrides)
        if SUPERVISED not in os.environ and (changed := changed_settings(self)):
            message = f"these settings differ from those recorded in the home `{self.home}`: {'; '.join(changed)}"
            raise OperatorError(message, do=RESET_OR_MIGRATE)

    @classmethod
    def ignoring_record(cls, **overrides: Any) -> "Settings":  # noqa: ANN401 - as in __init__
        """Return settings that may differ from those recorded in the home. InvalidSettingsError."""
        settings = cls.__new__(cls)
        settings._read(overrides)  # noqa: SLF001 - of this class
        return settings

    def _read(self, overrides: Mapping[str, Any]) -> None:
        if unknown := overrides.keys() - self.catalogue().keys():
            raise TypeError(f"there is no setting {', '.join(sorted(unknown))}")
        problems: list[str] = []
        recorded = recorded_settings(PathSettings.read(overrides).resolved().home)
        for name, section in sections().items():
            try:
                object.__setattr__(self, name, section.read(overrides, recorded))
            except InvalidSettingsError as error:
                problems += error.problems
        if problems:
            raise InvalidSettingsError(problems)
        self._resolve()
        if broken := list(self._broken_rules()):
            raise InvalidSettingsError(broken)
        if self.paths.remote:
            use(self.s3.store)

    def _resolve(self) -> None:
        """Replace defaults that depend on other settings or on the home by their values."""
        paths = self.paths.resolved()
        kept = recorded_nodes(paths.home) or Nodes(secure=self.stack.secure)
        secure = self.stack.secure or kept.secure
        cache_dir = self.jars.cache_dir.expanduser().resolve()
        known = {
            "paths": paths,
            "s3": self.s3.resolved(),
            "kafka": self.kafka.resolved(kept),
            "cassandra": self.cassandra.resolved(kept),
            "airflow": self.airflow.resolved(paths.home, secure=secure),
            "stack": self.stack.model_copy(update={"secure": secure}),
            "tls": self.tls.resolved(),
            "metrics": self.metrics.resolved(),
            "traces": self.traces.resolved(),
            "lineage": self.lineage.resolved(),
            "reports": self.reports.resolved(),
            "smtp": self.smtp.resolved(),
            "api": self.api.model_copy(update=absolute(self.api, ("ca_file",))),
            "jars": self.jars.model_copy(update={"cache_dir": cache_dir}),
        }
        for name, section in known.items():
            object.__setattr__(self, name, section)
        if self.stack.secure:
            self._trust_own_authority(Security(paths.home))

    def _trust_own_authority(self, security: Security) -> None:
        """Fill in the connections of a secured local stack, except to clusters of your own."""
        authority = str(security.authority)
        login = {"ca_file": authority, "user": OPERATOR, "password_file": str(security.password_file(OPERATOR))}
        served = {"certificate_file": str(security.certificate), "key_file": str(security.key)}
        scram = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
        if is_local(self.kafka.bootstrap):
            self._fill("kafka", {**login, **scram})
        if is_local(self.cassandra.contact_points):
            self._fill("cassandra", {**login, "tls": True})
        if self.airflow.url == self.airflow.local_url(secure=True):
            self._fill("airflow", {"ca_file": authority})
        self._fill("tls", served)
        self._fill("api", {"ca_file": authority, "anonymous_tenant": ""})
        self._fill("metrics", {"token_file": str(security.metrics_token)})

    def _fill(self, name: str, values: Mapping[str, object]) -> None:
        """Fill in what is not given. A secret that is given needs no file."""
        section: Section = getattr(self, name)
        given = {variable.removesuffix("_FILE") for variable in section.given()}
        missing = {
            field: value
            for field, value in values.items()
            if section.names_of((field,))[0].removesuffix("_FILE") not in given
        }
        object.__setattr__(self, name, section.model_copy(update=missing))

    def as_user(self, user: str) -> "Settings":
        """Return the settings of a process of a secured stack, which logs in as its own user; else these.

        So on your own clusters, a process that starts another passes its own login on.
        """
        if not self.stack.secure:
            return self
        file = str(Security(self.home).password_file(user))
        kafka = {"kafka_user": user, "kafka_password_file": file} if is_local(self.kafka.bootstrap) else {}
        cassandra = {"cassandra_user": user, "cassandra_password_file": file}
        return self.replace(**kafka, **(cassandra if is_local(self.cassandra.contact_points) else {}))

    def _broken_rules(self) -> Iterator[str]:
        """Rules between settings that these ones break."""
        if self.speed.oldest + FUTURE > self.speed.remembered:
            yield "GALATEA_OLDEST_HOURS must be at least an hour less than GALATEA_REMEMBERED_HOURS"
        if self.kafka.retention < self.speed.ttl + self.speed.remembered:
            yield "GALATEA_KAFKA_RETENTION_DAYS must be at least GALATEA_SPEED_TTL_DAYS plus GALATEA_REMEMBERED_HOURS"
        if self.alerts.rules_seconds <= self.layers.skew_seconds:
            yield "GALATEA_ALERT_RULES_SECONDS must be more than GALATEA_SKEW_SECONDS"
        if self.layers.visits.longest_known >= self.speed.remembered:
            yield "GALATEA_REMEMBERED_HOURS must be more than 14 times GALATEA_VISIT_GAP_SECONDS"
        for name in sections():
            yield from getattr(self, name).conflicts()
        if self.paths.remote:
            yield from self.s3.conflicts_in_use()
        if not (is_loopback(self.api.host) or self.tls.is_on or self.api.proxies):
            yield "GALATEA_API_HOST needs GALATEA_TLS_CERTIFICATE_FILE, or GALATEA_API_PROXIES if a proxy encrypts"
        if not (is_loopback(self.sql.host) or self.tls.is_on):
            yield "GALATEA_SQL_HOST needs GALATEA_TLS_CERTIFICATE_FILE: passwords would be readable on the network"
        if not {self.kafka.brokers, self.cassandra.nodes} <= {ONE, THREE}:
            yield "GALATEA_KAFKA_BROKERS and GALATEA_CASSANDRA_NODES must be 1 or 3: with 2, none may fail"

    @staticmethod
    def catalogue() -> Mapping[str, FieldInfo]:
        """Return the field of every setting, by the setting's name."""
        return {
            name: section.model_fields[field]
            for section in sections().values()
            for name, field in section.names().items()
        }

    def values(self) -> Mapping[str, Any]:
        """Return the value of every setting, by the setting's name. Secrets are `SecretStr`, which hides them."""
        return {
            name: getattr(getattr(self, own), field)
            for own, section in sections().items()
            for name, field in section.names().items()
        }

    def replace(self, **overrides: Any) -> "Settings":  # noqa: ANN401 - as in __init__
        """Return these settings with other values, by setting name. InvalidSettingsError."""
        return Settings.ignoring_record(**{**self.values(), **overrides})

    def environment(self) -> dict[str, str]:
        """Return every setting as a variable, so that a child process has the same settings. It contains secrets."""
        return {f"{PREFIX}{name.upper()}": text for name, text in self.texts().items()}

    def texts(self) -> dict[str, str]:
        """Return every setting as a variable has it, by the setting's name. It contains secrets."""
        return {name: _as_text(value) for name, value in self.values().items()}

    def secrets(self) -> Mapping[str, str]:
        """Return the settings that have a secret value as variables; they are in `environment` too."""
        secret = {name: value for name, value in self.values().items() if _is_secret(value)}
        return {f"{PREFIX}{name.upper()}": _as_text(value) for name, value in secret.items()}

    @property
    def api_url(self) -> str:
        """URL at which commands reach the REST interface."""
        return self.api.url.rstrip("/") or self.url_of(self.api.host, self.api.port)

    @property
    def api_trust(self) -> "ssl.SSLContext | bool":
        """The authorities that commands trust for the REST interface, as httpx takes them in `verify`."""
        return Tls(self.api.ca_file).context() if self.api.ca_file else True

    def url_of(self, host: str, port: int) -> str:
        """Return the URL of what listens there."""
        address = reachable(host)
        return f"{'https' if self.tls.is_on else 'http'}://{f'[{address}]' if ':' in address else address}:{port}"

    @property
    def home(self) -> Path:
        """Folder that holds all state."""
        return self.paths.home

    @property
    def nodes(self) -> Nodes:
        """How many nodes the local stack has."""
        return Nodes(self.kafka.brokers, self.cassandra.nodes, self.stack.secure)

    @property
    def crash_folder(self) -> Path:
        """Folder that records which points of `crash_at` were hit."""
        return self.home / "crashed"

    @cached_property
    def definitions(self) -> Mapping[str, str]:
        """Hash of every view's definition under these settings, and of what all views share."""
        from views.registry import current_definitions  # noqa: PLC0415 - imports every view

        return current_definitions(self.layers.epoch_seconds, self.layers.visit_gap_seconds)


def _is_secret(value: object) -> bool:
    """Whether it hides something."""
    if isinstance(value, dict):
        return any(map(_is_secret, value.values()))
    return isinstance(value, SecretStr) and bool(value)


def _as_text(value: object) -> str:
    """Return a value as a variable has it, secrets too."""
    if isinstance(value, dict):
        return json.dumps(value, default=_as_text)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def sections() -> Mapping[str, type[Section]]:
    """Return the sections of the settings, by the attribute of `Settings` that holds them."""
    return {each.name: each.type for each in fields(Settings) if isinstance(each.type, type)}
