"""The history of a drill: everything that its clients sent and saw, in order, and what was done to the stack.

A compressed file with a line of JSON for each operation. `check_history` reads nothing else.
"""

import gzip
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_LEVEL = 3
"""Of compression. At 1,000 records a second, a history grows by about 100 kB a second."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Operation(StrEnum):
    """What a line is about. Each has `ms`, the time since the history began, and more fields.

    - `send`: a record is about to be sent. `store`; `number` and `minor` (cents), null if it is broken; `happened_us`
    - `ack`: the broker has acknowledged it. `store`, `number`, `partition`, `offset`, `received_us`
    - `unknown`: nobody knows whether it is in the log. `store`, `number`
    - `read`: an answer. `publication`; `values`, the receipts of each store
    - `refusal`: an answer with an error. `status`; `code`, empty if nobody can read it
    - `rest`: an answer over all stores while nothing is sent. `name`: receipts or minor; `value`, `waiting`, `cut_us`;
      `is_last`: nothing is waited for any more. `value` is null if there was no answer
    - `fault`: of a drill, as in its ledger line. `drill`, `method`, `target`, `args`
    - `count`: in the end, once. `archived`, `dead_letters`, `cells_compared`, `cells_different`, `unexplained`,
      `is_published`
    """

    SEND = "send"
    ACK = "ack"
    UNKNOWN = "unknown"
    READ = "read"
    REFUSAL = "refusal"
    REST = "rest"
    FAULT = "fault"
    COUNT = "count"


Line = dict[str, Any]


class History:
    """Writes a history. Several threads may."""

    def __init__(self, path: Path) -> None:
        """`path`: is created.

        Attributes:
            path: where it is.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = gzip.open(path, "wt", compresslevel=_LEVEL, encoding="utf-8")  # noqa: SIM115 - closed by __exit__
        self._lock, self._began = threading.Lock(), time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it. Nothing can be added any more."""
        with self._lock:
            self._file.close()

    def add(self, operation: Operation, **fields: object) -> None:
        """Append a line."""
        with self._lock:
            ms = round((time.monotonic() - self._began) * 1000)
            self._file.write(json.dumps({"op": operation, "ms": ms, **fields}, separators=(",", ":")) + "\n")


def read_history(path: Path) -> Iterator[Line]:
    """Its lines, in order. EOFError after the last one if it has no end, because the drill has none."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // datetime.resolution
