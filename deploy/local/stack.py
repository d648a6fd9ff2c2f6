"""The local stack as a whole: its components, how to start and stop it, and its status."""

import os
import socket
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deploy.airflow.component import NAME as AIRFLOW
from deploy.airflow.component import airflow as scheduler
from deploy.airflow.component import is_installed
from deploy.jars import KAFKA, PARTS
from deploy.local.cassandra import cassandra_nodes
from deploy.local.component import Component, require_free_disk
from deploy.local.home import record_settings
from deploy.local.kafka import brokers, kafka_part
from deploy.local.nodes import reachable, record_nodes
from deploy.local.records import Records, State, metrics_url, read_states, write_states
from deploy.local.security import Security
from deploy.local.supervisor import SUPERVISOR, StateListener, Supervisor, end_orphans, uninterrupted
from deploy.process import RELEASES_MEMORY
from deploy.secret_files import operator_key
from master_dataset.errors import UnknownNameError

if TYPE_CHECKING:
    from deploy.settings import Settings


TAKEOVER_SECONDS = 10.0
"""In this time, another process has noticed that one was killed, by its leases, and does what that did."""


def service_environment(settings: "Settings", component: str) -> Mapping[str, str]:
    """Return the environment variables of a component's process, under the supervisor or `galatea run`.

    Args:
        settings: Of the deployment.
        component: `archive`, `speed`, `alerts`, `dispatcher`, `api` or `sql`.
    """
    own = settings.as_user(component).environment()
    memory = RELEASES_MEMORY if component == "sql" else {}
    return {**own, **{name: os.environ.get(name, value) for name, value in memory.items()}}


def layer(component: str, settings: "Settings", port: int, name: str = "") -> Component:
    """Return a process of `archive`, `speed`, `alerts` or `dispatcher`.

    Args:
        component: Which of them. It is ready once its pid is in `run/<name>.ready`.
        settings: Of the deployment.
        port: Where it shows its metrics; 0: any free port.
        name: As in `galatea status`; if empty, that of the component.
    """
    name = name or component
    ready = settings.home / "run" / f"{name}.ready"
    return Component(
        name=name,
        command=lambda: [*_command(component), *([name] if name != component else [])],
        serves=ready.exists,
        ports=_chosen(port, f"GALATEA_{component.upper()}_METRICS_PORT"),
        environment=service_environment(settings, component),
        prepare=lambda: _prepare(ready, (settings.home, *settings.paths.folders)),
        stage=1,
        start_seconds=settings.stack.start_seconds,
        grace_seconds=15,  # a dispatcher waits ten seconds for calls in flight
    )


def _shared(process: Component, processes: int) -> Component:
    """The same process; if it is one of several, it starts again only once another has taken over what it did.

    To start takes the whole machine for seconds, and the other one, which users wait for, would not get on.
    """
    return process if processes == 1 else replace(process, restart_seconds=TAKEOVER_SECONDS)


def api(settings: "Settings", name: str = "api") -> Component:
    """Return a process of the REST interface as a component. The first one has to find the port free for all of them.

    Several share the port, so each is ready once its own pid is in `run/<name>.ready`, too.
    """
    own, ready = settings.api, settings.home / "run" / f"{name}.ready"
    return Component(
        name=name,
        command=lambda: [*_command("api"), name],
        serves=lambda: ready.exists() and _answers(f"{settings.url_of(own.host, own.port)}/healthz"),
        where={"url": settings.api_url},
        ports=({own.port: "GALATEA_API_PORT"} if name == "api" else {})
        | _chosen(own.metrics_port_of(name), "GALATEA_API_METRICS_PORT"),
        host=own.host,
        prepare=lambda: ready.unlink(missing_ok=True),
        stage=1,
        start_seconds=settings.stack.start_seconds,
        environment=service_environment(settings, "api"),
        grace_seconds=10,
    )


def sql(settings: "Settings") -> Component:
    """Return the SQL component. It is ready once it answers a client's first message."""
    ready = settings.home / "run" / "sql.ready"
    return Component(
        name="sql",
        command=lambda: _command("sql"),
        serves=lambda: ready.exists() and _speaks_postgresql(reachable(settings.sql.host), settings.sql.port),
        where={"address": f"{reachable(settings.sql.host)}:{settings.sql.port}"},
        ports={settings.sql.port: "GALATEA_SQL_PORT"} | _chosen(settings.sql.metrics_port, "GALATEA_SQL_METRICS_PORT"),
        host=settings.sql.host,
        environment=service_environment(settings, "sql"),
        prepare=lambda: ready.unlink(missing_ok=True),
        stage=1,
        start_seconds=settings.stack.start_seconds,
        grace_seconds=10,
    )


def _chosen(port: int, setting: str) -> dict[int, str]:
    """Leave out port 0, which is any free port."""
    return {port: setting} if port else {}


def _command(name: str) -> list[str]:
    return [sys.executable, "-m", f"deploy.services.{name}"]


def _prepare(ready: Path, folders: Sequence[Path]) -> None:
    """Check the disks of folders that exist here; those of an object store do not."""
    ready.unlink(missing_ok=True)
    for folder in folders:
        require_free_disk(folder)


def _answers(url: str) -> bool:
    import httpx

    try:
        # Nothing secret is sent, and the certificate may name another address than this one.
        return httpx.get(url, timeout=2, trust_env=False, verify=False).is_success  # noqa: S501
    except httpx.HTTPError:
        return False


_SSL_REQUEST = bytes.fromhex("0000000804d2162f")
PROBE_SECONDS = 2.0


def _speaks_postgresql(host: str, port: int) -> bool:
    """Whether a request for encryption is answered as PostgreSQL answers it."""
    try:
        with socket.create_connection((host, port), PROBE_SECONDS) as probe:
            probe.sendall(_SSL_REQUEST)
            return probe.recv(1) in (b"N", b"S")
    except OSError:
        return False


DOWN_SECONDS = 90.0


def components(settings: "Settings", only: Collection[str] = (), *, airflow: bool = False) -> Sequence[Component]:
    """Return the components in the order in which they start.

    Args:
        settings: Of the deployment.
        only: Names of components; all if empty.
        airflow: Whether Airflow is among them, if it is installed. `only` may name it in any case.

    Raises:
        UnknownNameError: There is no component of that name.
    """
    galatea = (
        *(
            _shared(layer(component, settings, own.metrics_port_of(name), name), len(own.process_names))
            for component, own in (("archive", settings.archive), ("speed", settings.speed))
            for name in own.process_names
        ),
        layer("alerts", settings, settings.alerts.metrics_port),
        layer("dispatcher", settings, settings.webhooks.metrics_port),
        *(api(settings, name) for name in settings.api.process_names),
        sql(settings),
    )
    scheduling = (scheduler(settings),) if (airflow or AIRFLOW in only) and is_installed() else ()
    every = (*brokers(settings), *cassandra_nodes(settings), *galatea, *scheduling)
    names = {component.name for component in every}
    for name in only:
        if name not in names:
            raise UnknownNameError("component", name, names)
    return [component for component in every if not only or component.name in only]


def jar_parts(settings: "Settings") -> Sequence[str]:
    """Return the parts of the lock that the stack of this home needs."""
    return [kafka_part(settings.home) if part == KAFKA else part for part in PARTS]


def supervisor(
    settings: "Settings",
    only: Collection[str] = (),
    on_change: StateListener = lambda _n, _s, _t: None,
    *,
    airflow: bool = False,
) -> Supervisor:
    """Return a supervisor for the stack of this home. Entering it prepares the home.

    It raises OperatorError if the home was created with another number of nodes.
    """
    own = components(settings, only, airflow=airflow)
    return Supervisor(settings.home, own, on_change, once_locked=lambda: _prepare_home(settings))


def _prepare_home(settings: "Settings") -> None:
    """Create what a new home has, and renew certificates. Only while no other stack has the home."""
    record_nodes(settings.home, settings.nodes)
    if settings.stack.secure:
        Security(settings.home).prepare()
    operator_key(settings.home / "operator.key")
    record_settings(settings)


class Stack:
    """The stack inside this process, for the demo and tests: started on entering, watched, stopped on leaving."""

    def __init__(
        self,
        settings: "Settings",
        only: Collection[str] = (),
        on_change: StateListener = lambda _n, _s, _t: None,
        *,
        airflow: bool = False,
    ) -> None:
        """As `supervisor`. `on_change` is called with every change of state."""
        self._settings = settings
        self._supervisor = supervisor(settings, only, on_change, airflow=airflow)
        self._leave = threading.Event()
        self._watch = threading.Thread(target=lambda: self._supervisor.watch(self._leave.is_set), daemon=True)

    def __enter__(self) -> Self:
        """Start all, and wait for all but Airflow. OperatorError if one cannot start; then nothing is left running.

        Airflow comes first, because its start takes longest, and brokers and Cassandra leave a core idle in theirs.
        """
        with ExitStack() as undo:
            undo.enter_context(self._supervisor)
            self._supervisor.start(early={AIRFLOW})
            undo.pop_all()
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all, the last stage first."""
        with uninterrupted():
            self._leave.set()
            self._watch.join()
            self._supervisor.stop()

    def wait(self) -> None:
        """Wait until a signal handler raises."""
        self._leave.wait()

    def status(self) -> dict[str, Any]:
        """Return what `galatea status --json` prints."""
        return status(self._settings)


def down(settings: "Settings") -> list[str]:
    """Stop the stack of this home, even if its supervisor was killed. Return the names of what ran."""
    records = Records(settings.home)
    ran = [name for name in records.names() if records.session(name) or records.pid(name)]
    supervisor_pid = records.pid(SUPERVISOR)
    if supervisor_pid is not None:
        os.kill(supervisor_pid, 15)
        deadline = time.monotonic() + DOWN_SECONDS
        while records.pid(SUPERVISOR) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
    end_orphans(settings.home, components(settings, airflow=True))
    with suppress(OSError):  # a full disk; without a supervisor, all are shown as stopped anyway
        write_states(settings.home, dict.fromkeys(read_states(settings.home), State.STOPPED))
    return [name for name in ran if name != SUPERVISOR]


def status(settings: "Settings") -> dict[str, Any]:
    """Return the home and each component's name, state, pid, address and metrics."""
    records = Records(settings.home)
    states = read_states(settings.home) if records.pid(SUPERVISOR) is not None else {}
    listed = []
    for component in components(settings, airflow=True):
        pid = records.pid(component.name)
        state = states.get(component.name, State.UNSUPERVISED if pid else State.STOPPED)
        metrics = metrics_url(settings.home, component.name) if pid else None
        shown = {"metrics": metrics} if metrics else {}
        listed.append({"name": component.name, "state": state, "pid": pid, **component.where, **shown})
    return {"home": str(settings.home), "components": listed}
