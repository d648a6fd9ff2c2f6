"""The tasks that run the command `galatea`, where Airflow's connections `galatea` and `galatea_spark` say.

Progress of the command is the task's log, its answer the task's XCom. Connections are read when a task runs, never
while DAG files are parsed.
"""

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import IO, Any, NamedTuple

from airflow.sdk import BaseOperator, Connection, Context, CronTriggerTimetable
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

DEFAULTS = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "execution_timeout": timedelta(hours=6),
}
"""Default arguments of every DAG: dependencies may be down for a while, and a task that hangs keeps later runs out.

A retry continues where the last attempt ended. The chart and systemd give their jobs the same time.
"""
USAGE_ERROR = 2
LOGGED_BYTES = 20_000
"""Bytes of a failed command's answer that are logged, such as the differences that a verification found."""
GRACE_SECONDS = 4.0
"""Airflow kills the task's whole process group 5 seconds after SIGTERM."""
DEPLOYMENT, SPARK = "galatea", "galatea_spark"
COMMAND = "command"
"""The key in the extra of `galatea` that is no setting: the path of the command."""

_SETTING = re.compile(r"[a-z][a-z0-9_]*")
_SPARK_FORM_OPTIONS = {"queue": "spark.yarn.queue", "namespace": "spark.kubernetes.namespace"}
"""Fields of Airflow's own form for Spark connections, and the Spark options that they set."""


def at(cron: str) -> CronTriggerTimetable:
    """Run at these times, in UTC, and never before: by default Airflow makes up for one of the last five minutes."""
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))


class GalateaCommand(BaseOperator):
    """Runs `galatea WORDS --json` with the settings of the connections.

    The child stays in the process group that Airflow gives each task, so whatever ends the task ends Spark, too. Its
    standard input ends with this process, so a task that is killed leaves nothing behind (`deploy/process.py`). Words
    are passed one by one, never as shell text. The child knows its task from AIRFLOW_CTX_*, and writes the task's note.
    """

    def __init__(self, *, words: Sequence[str], **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`words`: the verb and the arguments that are the same in every run."""
        super().__init__(**options)
        self.verb = tuple(words)
        self._child: subprocess.Popen[bytes] | None = None

    def words(self, context: Context) -> Sequence[str]:  # noqa: ARG002 - for subclasses
        """The arguments of the command."""
        return (*self.verb, "--json")

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """The part of the answer that goes to XCom."""
        return answer

    def execute(self, context: Context) -> Mapping[str, Any]:
        """Run the command.

        Returns:
            Its answer, as `shown` passes it on.

        Raises:
            AirflowException: It failed. Airflow tries again, because every command can be repeated.
            AirflowFailException: Its arguments or the connections are wrong. Airflow does not try again.
        """
        settings, instance = deployment(), context["ti"]
        environment = {
            **os.environ,
            **settings.environment,
            "AIRFLOW_CTX_DAG_ID": instance.dag_id,
            "AIRFLOW_CTX_DAG_RUN_ID": instance.run_id,
            "AIRFLOW_CTX_TASK_ID": instance.task_id,
            "GALATEA_PARENT_WATCHDOG": "1",
        }
        words = [settings.command, *self.words(context)]
        self.log.info("%s", shlex.join(words))
        with tempfile.TemporaryFile() as answer:
            last_line = self._run(words, environment, answer)
            answer.seek(0)
            code = self._child.returncode if self._child else 0
            if code:
                self.log.error("%s", answer.read(LOGGED_BYTES).decode(errors="replace"))
                what = "wrong arguments" if code == USAGE_ERROR else "a failure"
                kind = AirflowFailException if code == USAGE_ERROR else AirflowException
                raise kind(f"`galatea {words[1]}` ended with {code}, {what}: {last_line}")
            return self.shown(json.load(answer), context)

    def on_kill(self) -> None:
        """End the command. The next attempt continues where it ended."""
        if self._child is not None:
            self._child.terminate()

    def _run(self, words: Sequence[str], environment: Mapping[str, str], answer: IO[bytes]) -> str:
        """Copy its messages to the log; returns the last one."""
        message = "it wrote nothing"
        try:
            self._child = subprocess.Popen(  # noqa: S603 - no shell
                words, env=environment, stdin=subprocess.PIPE, stdout=answer, stderr=subprocess.PIPE
            )
        except OSError as error:
            problem = f"`{words[0]}` cannot be run here: install the package, or name its path as `command`"
            raise AirflowFailException(problem) from error
        try:
            for line in self._child.stderr or ():
                message = line.decode(errors="replace").strip() or message
                self.log.info("%s", message)
            self._child.wait()
        finally:
            _end(self._child)
        return message


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the child, which still runs after a timeout of the task."""
    for end in (child.stdin, child.stderr):
        if end is not None:
            end.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class Deployment(NamedTuple):
    """`command`: the command or its path. `environment`: its settings, `GALATEA_...` to value."""

    command: str
    environment: dict[str, str]


def deployment() -> Deployment:
    """The deployment of this Airflow. AirflowFailException, which is not retried, if the connections are wrong."""
    extra = _extra(_connection(DEPLOYMENT))
    command = str(extra.pop(COMMAND, "galatea"))
    for name in (name for name in extra if not _SETTING.fullmatch(name)):
        raise AirflowFailException(
            f"`{name}` in the connection `{DEPLOYMENT}` is no setting, such as `kafka_bootstrap`"
        )
    settings = {f"GALATEA_{name.upper()}": _text(value) for name, value in extra.items()}
    return Deployment(command, settings | _spark(_connection(SPARK)))


def _spark(connection: Connection) -> dict[str, str]:
    """The master URL as Airflow's Spark provider reads it, and further options of Spark."""
    extra = _extra(connection)
    if extra.get("deploy-mode", "client") != "client":
        raise AirflowFailException(f"the connection `{SPARK}` has another deploy mode than `client`")
    options = {name: _text(value) for name, value in extra.items() if name.startswith("spark.")}
    options |= {option: _text(extra[name]) for name, option in _SPARK_FORM_OPTIONS.items() if extra.get(name)}
    host = connection.host or ""
    master = host if "://" in host or not connection.port else f"spark://{host}"
    if not master:
        raise AirflowFailException(f"the connection `{SPARK}` names no master: set its host, such as `local[2]`")
    port = f":{connection.port}" if connection.port else ""
    more = {"GALATEA_SPARK_CONF": json.dumps(options)} if options else {}
    return {"GALATEA_SPARK_MASTER": master + port, **more}


def _connection(name: str) -> Connection:
    try:
        found: Connection = Connection.get(name)
    except AirflowNotFoundException as error:
        raise AirflowFailException(
            f"there is no connection `{name}`: docs/how-to/airflow.md says what it holds"
        ) from error
    return found


def _extra(connection: Connection) -> dict[str, Any]:
    """Its extra as JSON. Airflow's own reader returns an empty object for text that is no JSON."""
    try:
        read = json.loads(connection.extra or "{}")
    except ValueError:
        read = None
    if not isinstance(read, Mapping):
        raise AirflowFailException(f"the extra of the connection `{connection.conn_id}` is no JSON object")
    return dict(read)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
