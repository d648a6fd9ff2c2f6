"""A task that runs the command `galatea`: its progress is the task's log, its answer the task's XCom."""

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dags.tasks.connections import deployment

ASKED_WRONGLY = 2
MOST_SHOWN = 20_000
"""So many bytes of the answer of a command that failed are logged: what differs, when a verification fails."""
GRACE_SECONDS = 4.0
"""Airflow kills the task's whole process group 5 seconds after it has asked it to end."""


class GalateaCommand(BaseOperator):
    """Runs `galatea WORDS --json` where the connections say.

    The child stays in the process group that Airflow gives each task, so whatever ends the task ends Spark, too. Its
    standard input ends with this process: a task that is killed leaves nothing behind (`deploy/parent_watchdog.py`).
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
            "GALATEA_TETHERED": "1",
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
