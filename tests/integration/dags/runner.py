"""Runs DAGs in one process with one database, by `dag.test()`: a line of JSON asks, a line of JSON answers.

Neither an engine nor a driver can be imported here.
"""

import importlib.abc
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

ABSENT = {"pyspark", "delta", "pyarrow", "pandas", "cassandra", "confluent_kafka"}


class Absent(importlib.abc.MetaPathFinder):
    """As if they were not installed."""

    def find_spec(self, name: str, _path: object = None, _target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(name)


def loaded(dags: Any) -> dict[str, Any]:
    """What the files gave."""
    return {
        "dags": {
            name: {
                "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
                "tries": {task.task_id: task.retries + 1 for task in dag.tasks},
                "seconds": {
                    task.task_id: task.execution_timeout and task.execution_timeout.total_seconds()
                    for task in dag.tasks
                },
                "first": max(dag.tasks, key=lambda task: task.priority_weight).task_id,
                "assets": sorted(each.uri for task in dag.tasks for each in task.outlets),
                "schedule": getattr(dag.timetable, "expression", None),
                "zone": str(getattr(dag.timetable, "timezone", None)),
            }
            for name, dag in dags.dags.items()
        },
        "errors": dags.import_errors,
        "engines": sorted(ABSENT & sys.modules.keys()),
    }


def run(dags: Any, name: str, conf: dict[str, Any] | None) -> dict[str, Any]:
    """One run from its first task to its last."""
    from airflow.models.asset import AssetEvent
    from airflow.sdk.exceptions import ParamValidationError
    from airflow.utils.session import create_session
    from sqlalchemy import select

    dag = dags.dags[name]
    for task in dag.tasks:
        task.retries = 0
    try:
        done = dag.test(run_conf=conf)
    except ParamValidationError as error:
        return {"refused": str(error)}
    with create_session() as session:
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == done.run_id)).all()
        updated = {event.uri: event.extra for event in events}
    tasks = {task.task_id: str(task.state) for task in done.get_task_instances()}
    return {"id": done.run_id, "state": str(done.state), "tasks": tasks, "updated": updated}


def connected(connections: dict[str, str]) -> dict[str, Any]:
    """The settings from the connections. `connections`: environment variables, as Airflow reads them."""
    from airflow.sdk.exceptions import AirflowFailException

    from dags.tasks.command import deployment

    before = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("AIRFLOW_CONN_")}
    os.environ.update(connections)
    try:
        return {"command": deployment().command, "environment": deployment().environment}
    except AirflowFailException as error:
        return {"refused": str(error)}
    finally:
        for name in connections:
            del os.environ[name]
        os.environ.update(before)


def again(dags: Any, name: str) -> dict[str, Any]:
    """What the tasks of a DAG run their commands with at a second try."""
    instance = SimpleNamespace(run_id="run-1", try_number=2)
    context = {"ti": instance, "dag_run": SimpleNamespace(triggering_user_name=None), "params": {}}
    tasks = dags.dags[name].tasks
    return {task.task_id: task.words(context) for task in tasks if hasattr(task, "words")}


def shown(dags: Any, name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What the tasks of a DAG put into XCom when their command answers so."""
    return {task.task_id: task.shown(answer, {}) for task in dags.dags[name].tasks if hasattr(task, "shown")}


def killed() -> dict[str, Any]:
    """The outcome of a command whose task is terminated."""
    from dags.tasks.command import GalateaCommand

    task = GalateaCommand(task_id="endless", words=("wait",))
    endless = [sys.executable, "-c", "import sys, time; print('begun', file=sys.stderr, flush=True); time.sleep(600)"]
    with tempfile.TemporaryFile() as answer:
        running = threading.Thread(target=task._run, args=(endless, dict(os.environ), answer))  # noqa: SLF001 - without a run
        running.start()
        while task._child is None:  # noqa: SLF001 - likewise
            running.join(0.01)
        task.on_kill()
        running.join(60)
    return {"ended": task._child.returncode}  # noqa: SLF001 - likewise


def main(answers: IO[str]) -> None:
    sys.meta_path.insert(0, Absent())
    from airflow.dag_processing.dagbag import DagBag

    for line in sys.stdin:
        dags = DagBag(str(Path("dags").resolve()))  # anew, as for each task: a run leaves its form in the DAG
        message: dict[str, Any] = json.loads(line)
        if "run" in message:
            answer = run(dags, message["run"], message.get("conf"))
        elif "connect" in message:
            answer = connected(message["connect"])
        elif "again" in message:
            answer = again(dags, message["again"])
        elif "shown" in message:
            answer = shown(dags, message["shown"], message["answer"])
        else:
            answer = killed() if "kill" in message else loaded(dags)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as private:
        os.dup2(2, 1)  # Airflow prints its log there
        main(private)
