"""What operators did, one line each, only ever added to: `logs/audit.jsonl` of the home. Who, when, how, and what."""

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
"""Commands that change something, or begin or end it."""

_ADDRESS = re.compile(r"://(?:[^/@\s]*@)?([^/?#\s]*)\S*")
"""The path of a webhook's address is often the secret of whoever receives it."""


class Audit:
    """Of one home. A line is written as one piece, so that several processes may write."""

    def __init__(self, home: Path) -> None:
        """`home`: the folder with all state."""
        self._file = home / "logs" / "audit.jsonl"

    def write(self, by: str, via: str, act: str, status: int | None = None) -> None:
        """`by`: a key's id or a user of this machine. `act`: a command, or method and path. `status`: HTTP's."""
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "by": by, "via": via, "act": act}
        told = json.dumps(line if status is None else {**line, "status": status}) + "\n"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, told.encode())
        finally:
            os.close(opened)

    def request(self, by: str, act: str, status: int) -> None:
        """One over REST or by a form of a page. It is done already, so that a full disk only goes to the log."""
        try:
            self.write(by, "rest", act, status)
        except OSError:
            import structlog  # noqa: PLC0415 - not every command logs

            structlog.get_logger().exception("audit.not_written", by=by, act=act, status=status)

    def command(self, words: Sequence[str]) -> None:
        """One by the command line, before it is done; what changes nothing is left out."""
        if {" ".join(words[:1]), " ".join(words[:2])} & CHANGES and "--help" not in words:
            self.write(getpass.getuser(), "command", _ADDRESS.sub(r"://\1/...", " ".join(words)))
