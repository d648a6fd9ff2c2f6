"""Airflow as a component of the local stack: one user on loopback, with this package's DAGs and connections to it."""

import base64
import json
import os
import secrets
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.component import Component
from deploy.local.nodes import LOOPBACK
from deploy.local.security import Security
from deploy.secret_files import write_private
from master_dataset.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.settings import Settings

_KEYS = """# Created once by `galatea up`; everything else is set by variables.
[core]
fernet_key = {fernet}
[api]
secret_key = {secret}
[api_auth]
jwt_secret = {jwt}
"""


@dataclass(frozen=True)
class AirflowHome:
    """Airflow's folder in the home of a stack: database, logs, keys and the password, readable for the owner only."""

    home: Path

    @property
    def folder(self) -> Path:
        """AIRFLOW_HOME."""
        return self.home / "airflow"

    @property
    def passwords(self) -> Path:
        """File with the password in the form that Airflow reads."""
        return self.folder / "passwords.json"

    def prepare(self, user: str) -> None:
        """Create what is missing. The password may be changed in its file; Airflow reads it at its start."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys = self.folder / "airflow.cfg"
        if not keys.exists():
            fernet = base64.urlsafe_b64encode(os.urandom(32)).decode()
            write_private(
                keys, _KEYS.format(fernet=fernet, secret=secrets.token_urlsafe(32), jwt=secrets.token_urlsafe(64))
            )
        password = self.home / "airflow.password"
        if not password.exists():
            write_private(password, secrets.token_urlsafe(16) + "\n")
        write_private(self.passwords, json.dumps({user: password.read_text().strip()}))


NAME = "airflow"
_NEEDED = ("metadatabase", "scheduler", "dag_processor")
_OF_SPARK = {"spark_master", "spark_conf"}
"""Settings in the connection `galatea_spark`; `galatea` has all others."""


def is_installed() -> bool:
    """Whether the extra `airflow` is installed."""
    return find_spec("airflow") is not None


def local_url(settings: "Settings") -> str:
    """Return the URL of the local stack's Airflow, whether or not it runs."""
    return settings.airflow.local_url(secure=settings.stack.secure)


def airflow(settings: "Settings") -> Component:
    """Return Airflow as a component. It starts last, because its tasks use all others."""
    home = AirflowHome(settings.home)
    url = local_url(settings)
    tasks = settings.as_user("batch")
    return Component(
        name=NAME,
        command=lambda: [sys.executable, "-m", "deploy.services.airflow"],
        serves=lambda: _is_healthy(url, Tls(str(Security(settings.home).authority) if settings.stack.secure else "")),
        where={"url": url},
        ports={settings.airflow.port: "GALATEA_AIRFLOW_PORT"},
        environment={**_airflow(settings, home), **connections(tasks), **tasks.secrets()},
        prepare=lambda: home.prepare(settings.airflow.user),
        stage=2,
        start_seconds=settings.stack.start_seconds,
    )


def connections(settings: "Settings") -> "Mapping[str, str]":
    """Return the two connections of the DAGs, as variables that Airflow reads.

    Secrets are not in them, because Airflow shows connections: tasks inherit the variables of this process.
    """
    shown = settings.environment().items() - settings.secrets().items()
    known = {name.removeprefix("GALATEA_").lower(): value for name, value in sorted(shown)}
    own = {name: value for name, value in known.items() if name not in _OF_SPARK}
    spark = {"conn_type": "spark", "host": settings.spark.master, "extra": settings.spark.conf}
    return {
        "AIRFLOW_CONN_GALATEA": json.dumps({"conn_type": "generic", "extra": own}),
        "AIRFLOW_CONN_GALATEA_SPARK": json.dumps(spark),
    }


def _airflow(settings: "Settings", home: AirflowHome) -> "Mapping[str, str]":
    commands = Path(sys.executable).parent  # where `galatea` is
    url = local_url(settings)
    dags = find_spec("dags")
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUNBUFFERED": "1",
        "AIRFLOW_HOME": str(home.folder),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(settings.airflow.port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path((dags and dags.origin) or "").parent),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{settings.airflow.user}:admin",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home.folder / 'airflow.db'}",
        "AIRFLOW__GALATEA__REBUILD_SCHEDULE": settings.airflow.rebuild_schedule,
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        **(_encrypted(Security(settings.home)) if settings.stack.secure else {}),
    }


def _encrypted(security: Security) -> "Mapping[str, str]":
    """Serve TLS. Tasks trust the authority, because its certificate is in the file too."""
    return {"AIRFLOW__API__SSL_CERT": str(security.certificate), "AIRFLOW__API__SSL_KEY": str(security.key)}


def _is_healthy(url: str, trusted: Tls) -> bool:
    """Whether Airflow accepts and starts runs."""
    import httpx

    try:
        health = f"{url}/api/v2/monitor/health"
        answer = httpx.get(health, timeout=5, trust_env=False, verify=trusted.context() if trusted.ca_file else True)
        found = answer.json() if answer.is_success else {}
    except (httpx.HTTPError, ValueError):
        return False
    return all(found.get(part, {}).get("status") == "healthy" for part in _NEEDED)
