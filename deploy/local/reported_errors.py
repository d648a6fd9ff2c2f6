"""The error with which a process ended, as it wrote it to the end of its log: what happened, and the next step."""

import re
from pathlib import Path
from typing import NamedTuple

_PRINTED = re.compile(r"[a-z][a-z0-9_]*: (?P<message>.+)\. Next: (?P<do>.+)")
"""As commands print it, after its code: see `deploy.console.print_problem`."""
_FIELD = re.compile(r'(\w+)=("(?:\\.|[^"\\])*"|\S*)')
_LOGGED = frozenset({"process.stopped", "process.rejected"})
"""Events of processes, see `deploy.services.runner`."""


class ReportedError(NamedTuple):
    """What happened, without a full stop, and what to do next."""

    message: str
    do: str


def reported_error(log: Path) -> ReportedError | None:
    """The error in the last line of a log; None if that line is none that names a next step."""
    line = last_line(log)
    if printed := _PRINTED.fullmatch(line):
        return ReportedError(printed["message"], printed["do"])
    fields = {name: _unquoted(value) for name, value in _FIELD.findall(line)}
    if fields.get("event") in _LOGGED and fields.get("message") and fields.get("do"):
        return ReportedError(fields["message"].rstrip("."), fields["do"])
    return None


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def last_line(log: Path) -> str:
    """The last line of a log; what to say instead if it has none."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1].strip() if lines else "its log is empty"
