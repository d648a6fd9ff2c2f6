"""A terminal: runs a command in one, records what it writes, and shows what is left on the screen.

`python -m tests.support.terminal FILE COMMAND...` keeps a recording that `asciinema play FILE` plays again.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from typing import NamedTuple

import pyte

BAR = re.compile(r".*\S ━+ [\d,.]+/([\d,.]+|\?) \d:\d\d:\d\d( (\d|-):(\d\d|--):(\d\d|--))?")
"""A bar as it stands when it is over, or while it is drawn."""
LOG_LINE = re.compile(r"\[(info|warning|error) *\]|\b(WARN|INFO|ERROR)\b|^\s+at [\w.$]+\(|Traceback")
"""What belongs into a file: a line of a log, or of a trace of Python or Java."""
KEPT_LINES = 100_000
_READ_BYTES = 65_536


class Size(NamedTuple):
    """Of a terminal, in characters."""

    columns: int
    lines: int


class Written(NamedTuple):
    """What was written at once. `resized`: the terminal had a new size before."""

    seconds: float
    text: str
    resized: Size | None = None


class Recording(NamedTuple):
    """A command in a terminal. `code`: how it ended."""

    size: Size
    written: Sequence[Written]
    code: int

    def cast(self) -> str:
        """As asciinema keeps it, version 2."""
        head = {"version": 2, "width": self.size.columns, "height": self.size.lines}
        events: list[list[object]] = []
        for each in self.written:
            if each.resized:
                events.append([round(each.seconds, 3), "r", f"{each.resized.columns}x{each.resized.lines}"])
            events.append([round(each.seconds, 3), "o", each.text])
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (head, *events))

    def left(self) -> list[str]:
        """Every line that is left, also those that have left the screen at its top, without spaces at the end."""
        screen = pyte.HistoryScreen(*self.size, history=KEPT_LINES, ratio=1)
        stream = pyte.Stream(screen)
        for each in self.written:
            if each.resized:
                screen.resize(lines=each.resized.lines, columns=each.resized.columns)
            stream.feed(each.text)
        gone = ["".join(line[column].data for column in range(self.size.columns)) for line in screen.history.top]
        return [line.rstrip() for line in (*gone, *screen.display)]

    def torn(self) -> list[str]:
        """Lines with a part of a bar, or of a log."""
        lines = self.left()
        return [line for line in lines if ("━" in line and not BAR.fullmatch(line)) or LOG_LINE.search(line)]


def record(
    words: Sequence[str],
    size: Size,
    environment: Mapping[str, str],
    resized: Mapping[float, Size] | None = None,
) -> Recording:
    """Run a command in a terminal to its end. `resized`: sizes that the terminal gets after so many seconds."""
    sizes = sorted((resized or {}).items())
    own, other = pty.openpty()
    _resize(own, size)
    process = subprocess.Popen(
        words,
        stdin=other,
        stdout=other,
        stderr=other,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(other)
    written: list[Written] = []
    began = time.monotonic()
    while True:
        changed = None
        if sizes and time.monotonic() - began >= sizes[0][0]:
            _, changed = sizes.pop(0)
            _resize(own, changed)
        if select([own], [], [], 0.1)[0]:
            try:
                text = os.read(own, _READ_BYTES)
            except OSError:  # Linux says so when nobody has the terminal open any more
                break
            if not text:
                break
            written.append(Written(time.monotonic() - began, text.decode(errors="replace"), changed))
        elif changed:
            written.append(Written(time.monotonic() - began, "", changed))
    os.close(own)
    return Recording(size, written, process.wait())


def _resize(terminal: int, size: Size) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))


def main() -> int:
    """Record, and list what is torn."""
    file, *words = sys.argv[1:]
    found = record(words, Size(120, 40), os.environ)
    Path(file).write_text(found.cast(), encoding="utf-8")
    for line in found.left():
        sys.stdout.write(f"{line}\n")
    for line in found.torn():
        sys.stdout.write(f"torn: {line}\n")
    return found.code


if __name__ == "__main__":
    sys.exit(main())
