"""JSON Lines as bytes: one record a line, read in bounded memory whatever a file holds."""

import time
from collections.abc import Iterable, Iterator
from typing import BinaryIO

MAX_LINE_BYTES = 4 * 1024 * 1024 - 1024  # the broker takes 4 MiB with the key and the envelope


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Give every line without its end. One that is too long comes cut to MAX_LINE_BYTES + 1, so that it is seen."""
    while line := file.readline(MAX_LINE_BYTES + 2):  # its end is not part of it
        rest = line
        while not rest.endswith(b"\n") and len(rest) == MAX_LINE_BYTES + 2:
            rest = file.readline(MAX_LINE_BYTES + 2)
        yield line.rstrip(b"\r\n")[: MAX_LINE_BYTES + 1]


def paced(lines: Iterable[bytes], per_second: float) -> Iterator[bytes]:
    """Give the lines no faster than that; after a stall it does not hurry to catch up for more than a second."""
    due = time.monotonic()
    for line in lines:
        now = time.monotonic()
        due = max(due, now - 1)
        if due > now:
            time.sleep(due - now)
        due += 1 / per_second
        yield line
