"""What commands print: their answer on stdout, everything else on stderr."""

import io
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

import orjson
from rich.console import Console

from master_dataset.errors import GalateaError
from master_dataset.registry.hidden_characters import visible

if TYPE_CHECKING:
    from rich.progress import Progress

_LONG_LINE = 1000
_LAYOUT = "\n\t"
"""Control characters that may be printed; others could steer the terminal."""
stdout = Console(highlight=False, soft_wrap=True)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(data: Any) -> None:  # noqa: ANN401 - any JSON
    """Print one JSON object on stdout. Response models are encoded as over REST."""
    written = orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z, default=_plain)
    text_output().write(written.decode() + "\n")


def _plain(value: object) -> object:
    from msgspec import Struct  # noqa: PLC0415 - few commands print response models

    from serving_layer.responses.encoding import encode  # noqa: PLC0415 - few commands print response models

    return orjson.loads(encode(value)) if isinstance(value, Struct) else str(value)


class _TerminalText(io.TextIOBase):
    """Text on a terminal, line by line, whose hidden characters are written out."""

    def write(self, text: str) -> int:
        sys.stdout.write(visible(text.replace("\r\n", "\n"), _LAYOUT))
        return len(text)


def text_output() -> TextIO:
    """Return stdout for text. On a terminal, hidden characters are written out, because they could steer it."""
    return cast("TextIO", _TerminalText()) if sys.stdout.isatty() else sys.stdout


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on stdout. On a terminal long cells wrap; elsewhere lines are as long as they need."""
    from rich.markup import escape  # noqa: PLC0415 - not every command prints a table
    from rich.table import Table  # noqa: PLC0415 - not every command prints a table

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        drawn.add_column(
            escape(visible(name, _LAYOUT)), justify="right" if _are_numbers(row[place] for row in rows) else "left"
        )
    for row in rows:
        drawn.add_row(*(escape(visible(str(cell), _LAYOUT)) for cell in row))
    shown = stdout if stdout.is_terminal else Console(highlight=False, width=_LONG_LINE)
    shown.print(drawn, soft_wrap=False)


_NUMBER = re.compile("[-\u2212+]?[0-9][0-9,]*([.][0-9]+)?( ?%)?")


def _are_numbers(cells: Iterable[object]) -> bool:
    """Whether a column is one of numbers, which are compared by their last digits; cells may be empty or a dash."""
    texts = [text for cell in cells if (text := str(cell).strip()) not in {"", "-", "\u2013", "None"}]
    return bool(texts) and all(map(_NUMBER.fullmatch, texts))


def print_fields(data: Mapping[str, object]) -> None:
    """Print names and values on stdout, one pair per line."""
    for name, value in data.items():
        stdout.print(visible(f"  {name:<18} {value}", _LAYOUT), markup=False)


def print_message(text: str) -> None:
    """Print one line on stderr."""
    stderr.print(visible(text, _LAYOUT), markup=False)


def print_error(error: GalateaError) -> None:
    """Print the code of an error, what is wrong in one sentence, and the next step."""
    print_problem(error.code, error.message.rstrip("."), error.do)


def print_problem(code: str, message: str, do: str) -> None:
    """Print one line, which `deploy.local.reported_errors` can read. `message`: without a full stop."""
    print_message(f"{code}: {message}. Next: {do}")


def is_terminal() -> bool:
    """Whether bars and colours make sense on stderr."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


class ProgressSteps:
    """Progress of long work on stderr: a bar with an estimate on a terminal, plain lines elsewhere."""

    def __init__(self, title: str, *, transient: bool = False) -> None:
        """`title` starts each line. `transient`: the bar goes at the end; a line with the result follows."""
        self._bar, self._title = _bar(transient=transient), title
        self._task = self._bar.add_task(title, total=None, count="")
        self._lines = _PlainLines()

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        if self._bar.disable:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._bar.stop()
        self._lines.stop()

    def step(self, done: int, total: int, what: str) -> None:
        """Show that `done` of `total` are done, and what is worked on. `total` is 0 if there is nothing to count."""
        count = f"{done:,}/{total:,}" if total else ""
        self._bar.update(self._task, description=f"{self._title}: {what}", count=count)
        if total:
            self._bar.update(self._task, completed=done, total=total)
        else:
            task = self._bar.tasks[0]
            task.total = task.finished_time = None  # otherwise rich stops the clock of a full bar
        if self._bar.disable:
            self._lines.show(f"  {self._title}: {what}", f" {count}" if count else "", is_end=done >= total)


PLAIN_EVERY_SECONDS = 15.0
_COUNTS = re.compile(r"\s*[0-9][0-9,.]*( events/s)?")
"""Numbers in what is worked on, which change while it stays the same."""


class _PlainLines:
    """Progress without a terminal: a line as soon as something else is worked on, and one every so many seconds."""

    def __init__(self) -> None:
        self._what, self._last, self._printed_at, self._began = "", "", 0.0, time.monotonic()
        self._is_over, self._has_ended = threading.Event(), False
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._repeat, daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def show(self, what: str, count: str, *, is_end: bool) -> None:
        """Print it if it is the first or last of its kind; else it is the next to be printed."""
        with self._lock:
            named = _COUNTS.sub("", what)
            is_new, self._what = named != self._what, named
            ends, self._has_ended = is_end and (is_new or not self._has_ended), is_end
            line, before, self._last = f"{what}{count}", self._last, f"{what}{count}"
            if line != before and (is_new or ends or time.monotonic() - self._printed_at >= PLAIN_EVERY_SECONDS):
                self._print(line)

    def _repeat(self) -> None:
        while not self._is_over.wait(min(1.0, PLAIN_EVERY_SECONDS)):
            with self._lock:
                if self._last and time.monotonic() - self._printed_at >= PLAIN_EVERY_SECONDS:
                    self._print(f"{self._last}, {time.monotonic() - self._began:.0f} s")

    def _print(self, line: str) -> None:
        self._printed_at = time.monotonic()
        print_message(line)


def _bar(*, transient: bool) -> "Progress":
    from rich import progress, text  # noqa: PLC0415 - only long work draws one

    class TimeLeftColumn(progress.TimeRemainingColumn):
        """The estimate, where there is one."""

        def render(self, task: progress.Task) -> text.Text:
            return super().render(task).append(" left") if task.time_remaining else text.Text()

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[count]}", style="progress.download"),
        progress.TimeElapsedColumn(),
        TimeLeftColumn(),
        console=stderr,
        disable=not is_terminal(),
        transient=transient,
    )
