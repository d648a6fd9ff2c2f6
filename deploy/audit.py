"""The audit log: who did what, when, how, and what came of it, append-only, in `logs/audit.jsonl` of the home."""

import json
import os
import pwd
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from uuid import uuid4

from master_dataset import tracing
from master_dataset.errors import OperatorError

CHANGES = {
    "up",
    "down",
    "migrate",
    "backup",
    "restore",
    "rebuild",
    "report",
    "send-reports",
    "rollback",
    "gc",
    "collect",
    "compact",
    "export",
    "recompute plan",
    "recompute compute",
    "recompute publish",
    "stores load",
    "stores remove",
    "stores floor-plan",
    "stores remove-floor-plan",
    "products load",
    "targets load",
    "keys create",
    "keys sign",
    "keys rotate",
    "keys revoke",
    "dead-letters replay",
    "alerts apply",
    "annotations load",
    "annotations remove",
    "speed restart",
    "webhooks add",
    "webhooks change",
    "webhooks remove",
    "webhooks rotate",
    "webhooks resume",
    "webhooks skip",
}
"""Commands that change, start or stop something. Docs list them: docs/how-to/monitoring.md."""

ALWAYS_POSSIBLE = {"down", "keys revoke", "webhooks remove"}
"""Commands that stop something or take a right away. They also run where the audit log cannot be written."""

DONE, FAILED, REFUSED, INTERRUPTED = "done", "failed", "refused", "interrupted"
OUTCOMES = {0: DONE, 1: FAILED, 2: REFUSED, 130: INTERRUPTED}
"""The outcome of a command by its exit code."""

_ADDRESS = re.compile(r"://(?:[^/@\s]*@)?([^/?#\s]*)\S*")
"""The path of a webhook's URL often contains a secret of its receiver."""


class Audit:
    """The audit log of one home. A line is written at once, so that several processes may write.

    Every line has `at` (UTC), `by`, `via` and `act`. A request has one, with `status`, `outcome` and, if it is traced,
    `trace_id`. A command has two with the same `id`: one with the outcome `begun` before it changes anything, so that
    one that is killed is recorded as well, and one with its outcome, `exit_code` and, if there is one, `error`.
    """

    def __init__(self, home: Path) -> None:
        """`home` is the folder with all state."""
        self._file = home / "logs" / "audit.jsonl"

    def write(self, by: str, via: str, act: str, **more: str | int) -> None:
        """Append a line.

        Args:
            by: Id of an API key, or user of this machine.
            via: `command` or `rest`.
            act: The command, or method and path.
            more: What else is known.

        Raises:
            OSError: It could not be written.
        """
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"at": at, "by": by, "via": via, "act": act, **more}) + "\n"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)

    def request(self, by: str, act: str, status: int) -> None:
        """Append a request over REST or a form of a page. It is done already, so that a full disk is only logged."""
        ids = tracing.log_ids()
        traced = {"trace_id": ids["trace_id"]} if ids else {}
        try:
            self.write(by, "rest", act, status=int(status), outcome=outcome_of(status), **traced)
        except OSError:
            import structlog  # noqa: PLC0415 - not every command logs

            structlog.get_logger().exception("audit.not_written", by=by, act=act, status=status)

    def command(self, words: Sequence[str]) -> "CommandEntry | None":
        """Append a command before it runs, if it changes something; else return None.

        Raises:
            OperatorError: The line could not be written, so that the command must not run; never of ALWAYS_POSSIBLE.
        """
        if not changes_something(words):
            return None
        entry = CommandEntry(self, _user(), _ADDRESS.sub(r"://\1/...", " ".join(words)), uuid4().hex[:12])
        try:
            entry.write("begun")
        except OSError as error:
            if _named(words, ALWAYS_POSSIBLE):
                sys.stderr.write(f"  the audit log cannot be written: {error.strerror}\n")
                return entry
            message = f"the audit log `{self._file}` cannot be written ({error.strerror}), so nothing is changed"
            raise OperatorError(message, do="free some space, or correct the permissions of the file") from error
        return entry


@dataclass(frozen=True)
class CommandEntry:
    """A command that has begun."""

    audit: Audit
    by: str
    act: str
    id: str

    def write(self, outcome: str, **more: str | int) -> None:
        """Append a line about it. OSError."""
        self.audit.write(self.by, "command", self.act, id=self.id, outcome=outcome, **more)

    def end(self, exit_code: int, error: str = "") -> None:
        """Append how it ended. What it changed is done already, so that a full disk is only reported."""
        more = {"error": error} if error else {}
        try:
            self.write(OUTCOMES.get(exit_code, FAILED), exit_code=exit_code, **more)
        except OSError as failed:
            sys.stderr.write(f"  the audit log cannot be written: {failed.strerror}\n")


def begin_command(home: Path, words: Sequence[str]) -> None:
    """Append the command of this process, if it changes something. OperatorError as `Audit.command`."""
    global _running  # noqa: PLW0603 - a process runs one command
    _running = Audit(home).command(words)


def end_command(exit_code: int, error: str = "") -> None:
    """Append how the command of this process ended, once, if it changes something.

    Args:
        exit_code: What the process exits with.
        error: Code of the error; "" if there was none.
    """
    global _running
    entry, _running = _running, None
    if entry is not None:
        entry.end(exit_code, error)


_running: CommandEntry | None = None


def outcome_of(status: int) -> str:
    """Return the outcome of a request by its HTTP status."""
    if status < HTTPStatus.BAD_REQUEST:
        return DONE
    return REFUSED if status < HTTPStatus.INTERNAL_SERVER_ERROR else FAILED


def changes_something(words: Sequence[str]) -> bool:
    """Whether a command line names one of `CHANGES` and is to run it.

    `--help` right behind the name shows the help. Further behind, it may be the value of an option.
    """
    named = _named(words, CHANGES)
    place = len(named.split())
    return bool(named) and _plain(words)[place : place + 1] != ["--help"]


def _named(words: Sequence[str], commands: Collection[str]) -> str:
    """The one of these commands, of one word or two, that a command line names; empty if it names none."""
    plain = _plain(words)
    return next((name for name in (" ".join(plain[:2]), " ".join(plain[:1])) if name in commands), "")


def _plain(words: Sequence[str]) -> Sequence[str]:
    """Without `--`, which may stand before a command and between its words."""
    return [word for word in words if word != "--"]


def _user() -> str:
    """Return the user of this process by its number: variables could name another one."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in containers, users need no name
        return str(os.getuid())
