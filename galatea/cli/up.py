"""`galatea up`: start the local stack."""

import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Annotated

from typer import Option

from deploy.airflow.component import NAME as AIRFLOW
from deploy.airflow.component import is_installed
from deploy.console import ProgressSteps, print_message
from deploy.local.component import require_room
from deploy.local.home import make_folder, make_home
from deploy.local.nodes import check_nodes
from deploy.local.records import State
from deploy.local.reported_errors import last_line, reported_error
from deploy.local.stack import components, jar_parts, status, supervisor
from deploy.settings import Settings
from master_dataset.errors import OperatorError

_NODES = "1 or 3, fixed when a home is created. With three, one may fail."
_AS_CREATED = "as created, else 1"
_SECURE = "Encrypt all connections and ask for logins. Fixed when a home is created."
_NO_AIRFLOW = "Start without Airflow: nothing is rebuilt on schedule."
_AIRFLOW_SECONDS = 180.0
"""How long `--detach` waits for Airflow. Nothing else needs it, so the rest runs meanwhile."""


def up(  # noqa: PLR0913, PLR0917 - one parameter per option
    detach: Annotated[bool, Option("--detach", help="Return once everything is running.")] = False,
    without_airflow: Annotated[bool, Option("--without-airflow", help=_NO_AIRFLOW)] = False,
    only: Annotated[str, Option("--only", help="Only these components, separated by commas.")] = "",
    secure: Annotated[bool, Option("--secure", help=_SECURE)] = False,
    brokers: Annotated[int, Option("--brokers", help=f"Brokers, {_NODES}", show_default=_AS_CREATED)] = 0,
    cassandra: Annotated[int, Option("--cassandra", help=f"Cassandra nodes, {_NODES}", show_default=_AS_CREATED)] = 0,
) -> None:
    """Start brokers, Cassandra, Galatea's processes and Airflow; run until Ctrl-C or `galatea down`."""
    nodes = {"kafka_brokers": brokers, "cassandra_nodes": cassandra}
    given = {name: number for name, number in nodes.items() if number}
    settings = Settings(**given, **({"secure": True} if secure else {}))
    names = [name for name in only.split(",") if name]
    airflow = not (without_airflow or names)
    if airflow and not is_installed():
        print_message("  Airflow is not installed, so it is not started. To install it: uv sync --group airflow")
    make_home(settings.home)
    for folder in dict.fromkeys((settings.home, *settings.paths.folders)):
        require_room(folder, settings.stack.least_disk_mb)
    _fetch_jars(settings)
    if detach:
        _detached(settings, names, airflow=airflow)
    else:
        _attached(settings, names, airflow=airflow)
    print_message("Next: galatea status    galatea ingest pos_transactions FILE    galatea down")


def _fetch_jars(settings: Settings) -> None:
    from deploy.jars import ensure_jars
    from deploy.java import find_java

    with ProgressSteps("jars") as steps:
        total = ensure_jars(settings, lambda done, all_: steps.step(done, all_, "checked"), jar_parts(settings))
    java = find_java()
    print_message(f"  java {java.version} {'(bundled) ' if java.bundled else ''}ok    jars {total} of {total} checked")


def _attached(settings: Settings, names: list[str], *, airflow: bool) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    with supervisor(settings, names, _print_state, airflow=airflow) as running:
        running.start(unawaited={AIRFLOW})
        started = "everything but Airflow, which is starting," if airflow else "everything"
        print_message(f"  {started} is running in {settings.home}; Ctrl-C stops it")
        running.watch(lambda: False)


def _leave(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the stop that follows must not be interrupted
    raise SystemExit(0)


def _print_state(name: str, state: str, seconds: float) -> None:
    if state != State.STARTING:
        print_message(f"  {name:<11} {state}" + (f" {seconds:.1f} s" if state == State.RUNNING else ""))


def _detached(settings: Settings, names: list[str], *, airflow: bool) -> None:
    log = make_folder(settings.home, settings.home / "logs") / "supervisor.log"
    check_nodes(settings.home, settings.nodes)
    chosen = ["--only", ",".join(names)] if names else [] if airflow else ["--without-airflow"]
    command = [sys.executable, "-m", "galatea.cli.main", "up", *chosen]
    started = {each.name for each in components(settings, names, airflow=airflow)}
    with log.open("ab") as file:
        child = subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={**os.environ, **settings.environment()},
        )
    states: dict[str, str] = {}
    began = time.monotonic()
    while True:
        now = {each["name"]: each["state"] for each in status(settings)["components"] if each["name"] in started}
        for name in (name for name, state in now.items() if state == State.RUNNING != states.get(name)):
            print_message(f"  {name:<11} running")
        states = now
        late = {name for name, state in now.items() if state != State.RUNNING}
        if late == {AIRFLOW} and time.monotonic() - began > _AIRFLOW_SECONDS:
            print_message(
                "  airflow     is still starting; nothing is rebuilt on schedule until it runs: galatea status"
            )
            return
        if not late:
            return
        if child.poll() is not None:
            if (reported := reported_error(log)) is not None:
                raise OperatorError(reported.message, do=reported.do)
            raise OperatorError(f"the stack did not start: {last_line(log)}", do=f"read `{log}`")
        time.sleep(0.2)
