"""The local stack as a whole: what it is made of, up, down, and how it is."""

import os
import secrets
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deploy.airflow.component import NAME as AIRFLOW
from deploy.airflow.component import airflow as scheduler
from deploy.airflow.component import is_installed
from deploy.local import board, targets
from deploy.local.broker import brokers
from deploy.local.cassandra_node import ring
from deploy.local.component import Component
from deploy.local.nodes import keep_nodes
from deploy.local.processes import api, layer
from deploy.local.records import Records
from deploy.local.signals import uninterrupted
from deploy.local.supervisor import SUPERVISOR, Supervisor, Told, end_orphans
from master_dataset.errors import UnknownName

if TYPE_CHECKING:
    from deploy.settings import Settings

DOWN_SECONDS = 90.0


def components(settings: "Settings", only: Collection[str] = (), *, airflow: bool = False) -> Sequence[Component]:
    """The components in the order in which they start; `only` chooses some by name.

    `airflow`: with Airflow too, where it is installed; `only` may name it in any case.
    """
    galatea = (*(layer(name, settings) for name in ("archive", "speed", "alerts", "dispatcher")), api(settings))
    scheduling = (scheduler(settings),) if (airflow or AIRFLOW in only) and is_installed() else ()
    every = (*brokers(settings), *ring(settings), *galatea, *scheduling)
    names = {component.name for component in every}
    for name in only:
        if name not in names:
            raise UnknownName("component", name, names)
    return [component for component in every if not only or component.name in only]


def supervisor(
    settings: "Settings", only: Collection[str] = (), told: Told = lambda _n, _s, _t: None, *, airflow: bool = False
) -> Supervisor:
    """A supervisor for the stack of this home, `airflow`: with Airflow. The operator's key is made with the first one.

    OperatorError if the home was made with other nodes.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    keep_nodes(settings.home, settings.nodes)
    key = settings.home / "operator.key"
    if not key.exists():
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
    return Supervisor(settings.home, components(settings, only, airflow=airflow), told)


class Stack:
    """The stack inside this process, for the demo and for tests: up on entering, looked after, down on leaving."""

    def __init__(
        self,
        settings: "Settings",
        only: Collection[str] = (),
        told: Told = lambda _n, _s, _t: None,
        *,
        airflow: bool = False,
    ) -> None:
        """`only` chooses components by name; `told` hears of every change of state; `airflow`: with Airflow."""
        self._settings = settings
        self._supervisor = supervisor(settings, only, told, airflow=airflow)
        self._leave = threading.Event()
        self._watch = threading.Thread(target=lambda: self._supervisor.watch(self._leave.is_set), daemon=True)

    def __enter__(self) -> Self:
        """Start all, and wait for all but Airflow. OperatorError if one cannot start; nothing is left running then."""
        with ExitStack() as undo:
            undo.enter_context(self._supervisor)
            self._supervisor.start(unawaited={AIRFLOW})
            undo.pop_all()
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all, last first."""
        with uninterrupted():
            self._leave.set()
            self._watch.join()
            self._supervisor.stop()

    def wait(self) -> None:
        """Until a signal raises out of here."""
        self._leave.wait()

    def status(self) -> dict[str, Any]:
        """As `galatea status --json` answers."""
        return status(self._settings)


def down(settings: "Settings") -> list[str]:
    """Stop the stack of this home, with or without a living supervisor. Gives back the names of what ran."""
    records = Records(settings.home)
    ran = [name for name in records.names() if records.session(name) or records.pid(name)]
    records_of_supervisor = records.pid(SUPERVISOR)
    if records_of_supervisor is not None:
        os.kill(records_of_supervisor, 15)
        deadline = time.monotonic() + DOWN_SECONDS
        while records.pid(SUPERVISOR) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
    end_orphans(settings.home, components(settings, airflow=True))
    board.write(settings.home, dict.fromkeys(board.read(settings.home), board.STOPPED))
    return [name for name in ran if name != SUPERVISOR]


def status(settings: "Settings") -> dict[str, Any]:
    """The home, and of each component: name, state, pid, address or url, metrics. Nothing runs without a supervisor."""
    records = Records(settings.home)
    states = board.read(settings.home) if records.pid(SUPERVISOR) is not None else {}
    listed = []
    for component in components(settings, airflow=True):
        pid = records.pid(component.name)
        state = states.get(component.name, board.STOPPED)
        metrics = targets.url(settings.home, component.name) if pid else None
        shown = {"metrics": metrics} if metrics else {}
        listed.append({"name": component.name, "state": state, "pid": pid, **component.where, **shown})
    return {"home": str(settings.home), "components": listed}
