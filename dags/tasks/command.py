"""A task that runs the command `galatea`."""

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

DEPLOYMENT, SPARK = "galatea", "galatea_spark"
COMMAND = "command"
"""What the extra of `galatea` may hold beside settings: the command's own path."""

_SETTING = re.compile(r"[a-z][a-z0-9_]*")
_AS_SPARK_SAYS = {"queue": "spark.yarn.queue", "namespace": "spark.kubernetes.namespace"}
"""What Airflow's own form for a Spark connection asks for, and the option that it stands for."""


class Deployment(NamedTuple):
    """`command`: the command or its path. `environment`: its settings, `GALATEA_...` to value."""

    command: str
    environment: dict[str, str]


def deployment() -> Deployment:
    """The deployment of this Airflow. AirflowFailException, which is not tried again, if it cannot be told."""
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
        raise AirflowFailException(f"the connection `{SPARK}` asks for another deploy mode than `client`")
    options = {name: _text(value) for name, value in extra.items() if name.startswith("spark.")}
    options |= {option: _text(extra[name]) for name, option in _AS_SPARK_SAYS.items() if extra.get(name)}
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
    """Its JSON. Airflow's own reader would take text that is none for nothing."""
    try:
        read = json.loads(connection.extra or "{}")
    except ValueError:
        read = None
    if not isinstance(read, Mapping):
        raise AirflowFailException(f"the extra of the connection `{connection.conn_id}` is no JSON object")
    return dict(read)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


ASKED_WRONGLY = 2
MOST_SHOWN = 20_000
"""So many bytes of the answer of a command that failed are logged: what differs, when a verification fails."""
GRACE_SECONDS = 4.0
"""Airflow kills the task's whole process group 5 seconds after it has asked it to end."""


class GalateaCommand(BaseOperator):
    """Runs `galatea WORDS --json` where the connections say.

    The child stays in the process group that Airflow gives each task, so whatever ends the task ends Spark, too. Its
    standard input ends with this process: a task that is killed leaves nothing behind (`deploy/process.py`).
    Words are handed over one by one, never as shell text. It is told its task by AIRFLOW_CTX_*, and writes the task's
    note.
    """

    def __init__(self, *, words: Sequence[str], **options: Any) -> None:  # noqa: ANN401 - Airflow's own
        """`words`: the verb and what is the same in every run."""
        super().__init__(**options)
        self.verb = tuple(words)
        self._child: subprocess.Popen[bytes] | None = None

    def words(self, context: Context) -> Sequence[str]:  # noqa: ARG002 - for those that depend on the run
        """What follows the command's name."""
        return (*self.verb, "--json")

    def shown(self, answer: Mapping[str, Any], context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - likewise
        """What of the answer goes to XCom, after a look at it."""
        return answer

    def execute(self, context: Context) -> Mapping[str, Any]:
        """Run it and give back its answer.

        AirflowException if it met a fault, so that Airflow tries again: every command may be run twice.
        AirflowFailException if it was asked wrongly.
        """
        where, instance = deployment(), context["ti"]
        environment = {
            **os.environ,
            **where.environment,
            "AIRFLOW_CTX_DAG_ID": instance.dag_id,
            "AIRFLOW_CTX_DAG_RUN_ID": instance.run_id,
            "AIRFLOW_CTX_TASK_ID": instance.task_id,
            "GALATEA_PARENT_WATCHDOG": "1",
        }
        words = [where.command, *self.words(context)]
        self.log.info("%s", shlex.join(words))
        with tempfile.TemporaryFile() as answer:
            said = self._run(words, environment, answer)
            answer.seek(0)
            code = self._child.returncode if self._child else 0
            if code:
                self.log.error("%s", answer.read(MOST_SHOWN).decode(errors="replace"))
                what = "asked wrongly" if code == ASKED_WRONGLY else "a fault"
                kind = AirflowFailException if code == ASKED_WRONGLY else AirflowException
                raise kind(f"`galatea {words[1]}` ended with {code}, {what}: {said}")
            return self.shown(json.load(answer), context)

    def on_kill(self) -> None:
        """End the command. What it had not finished is taken up again by the next try."""
        if self._child is not None:
            self._child.terminate()

    def _run(self, words: Sequence[str], environment: Mapping[str, str], answer: IO[bytes]) -> str:
        """Copy what it says to the log; gives back its last line."""
        said = "it said nothing"
        try:
            self._child = subprocess.Popen(  # noqa: S603 - no shell
                words, env=environment, stdin=subprocess.PIPE, stdout=answer, stderr=subprocess.PIPE
            )
        except OSError as error:
            message = f"`{words[0]}` cannot be run here: install the package, or name its path as `command`"
            raise AirflowFailException(message) from error
        try:
            for line in self._child.stderr or ():
                said = line.decode(errors="replace").strip() or said
                self.log.info("%s", said)
            self._child.wait()
        finally:
            _end(self._child)
        return said


def _end(child: "subprocess.Popen[bytes]") -> None:
    """After a timeout of Airflow's it still runs."""
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


def at(cron: str) -> CronTriggerTimetable:
    """At these times, and never before the first of them: Airflow would make up for one of the last five minutes."""
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))
