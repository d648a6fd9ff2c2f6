"""What the command line writes: the answer on stdout, everything else on stderr."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

import orjson
from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from master_dataset.errors import GalateaError
from serving_layer.responses.encoding import encode

_LONG = 1000
"""More than any line needs."""
stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(data: Any) -> None:  # noqa: ANN401 - any JSON
    """One JSON object on stdout. What REST responds with is written as there."""
    written = orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z, default=_plain)
    sys.stdout.write(written.decode() + "\n")


def _plain(value: object) -> object:
    return orjson.loads(encode(value)) if isinstance(value, Struct) else str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout. A cell that a terminal has no room for goes on below; elsewhere lines are long."""
    drawn = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        drawn.add_row(*(escape(str(cell)) for cell in row))
    shown = stdout if stdout.is_terminal else Console(highlight=False, width=_LONG)
    shown.print(drawn, soft_wrap=False)


def print_message(text: str) -> None:
    """One line for the person at the terminal."""
    stderr.print(text, markup=False)


def print_error(error: GalateaError) -> None:
    """What is wrong in one sentence, and the next step."""
    print_message(f"{type(error).__name__}: {error.message.rstrip('.')}. Next: {error.do}")


def is_terminal() -> bool:
    """Whether bars and colours make sense on stderr."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def bar() -> Progress:
    """A progress bar with an estimate on stderr; without a terminal nothing is drawn."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=stderr,
        disable=not is_terminal(),
        transient=False,
    )


class ProgressSteps:
    """Progress of long work: a bar with an estimate on a terminal, plain lines without one."""

    def __init__(self, what: str) -> None:
        """`what` is the line's name."""
        self._bar, self._what = bar(), what
        self._task = self._bar.add_task(what, total=None)
        self._said = ""

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._bar.stop()

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`."""
        self._bar.update(self._task, completed=done, total=total, description=f"{self._what}: {what}")
        line = f"  {self._what}: {what} {done}/{total}"
        if self._bar.disable and line != self._said:
            self._said = line
            print_message(line)


def print_fields(data: Mapping[str, object]) -> None:
    """Name and value, a line each, on stdout."""
    for name, value in data.items():
        stdout.print(f"  {name:<18} {value}", markup=False)
