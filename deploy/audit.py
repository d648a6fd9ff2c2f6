"""The audit log: who did what, when and how, one line each, append-only, in `logs/audit.jsonl` of the home."""

import getpass
import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

CHANGES = {
    "up",
    "down",
    "migrate",
    "rebuild",
    "rollback",
    "gc",
    "collect",
    "compact",
    "export",
    "recompute plan",
    "recompute compute",
    "recompute publish",
    "stores load",
    "products load",
    "targets load",
    "keys create",
    "keys rotate",
    "keys revoke",
    "dead-letters replay",
    "alerts apply",
    "speed restart",
    "webhooks add",
    "webhooks change",
    "webhooks remove",
    "webhooks rotate",
    "webhooks resume",
    "webhooks skip",
}
"""Commands that change, start or stop something."""

_ADDRESS = re.compile(r"://(?:[^/@\s]*@)?([^/?#\s]*)\S*")
"""The path of a webhook's URL often contains a secret of its receiver."""


class Audit:
    """The audit log of one home. A line is written at once, so that several processes may write."""

    def __init__(self, home: Path) -> None:
        """`home` is the folder with all state."""
        self._file = home / "logs" / "audit.jsonl"

    def write(self, by: str, via: str, act: str, status: int | None = None) -> None:
        """Append a line.

        Args:
            by: Id of an API key, or user of this machine.
            via: `command` or `rest`.
            act: The command, or method and path.
            status: The HTTP status; None for a command.
        """
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "by": by, "via": via, "act": act}
        text = json.dumps(line if status is None else {**line, "status": status}) + "\n"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)

    def request(self, by: str, act: str, status: int) -> None:
        """Append a request over REST or a form of a page. It is done already, so that a full disk is only logged."""
        try:
            self.write(by, "rest", act, status)
        except OSError:
            import structlog  # noqa: PLC0415 - not every command logs

            structlog.get_logger().exception("audit.not_written", by=by, act=act, status=status)

    def command(self, words: Sequence[str]) -> None:
        """Append a command before it runs, if it changes something."""
        if {" ".join(words[:1]), " ".join(words[:2])} & CHANGES and "--help" not in words:
            self.write(getpass.getuser(), "command", _ADDRESS.sub(r"://\1/...", " ".join(words)))
