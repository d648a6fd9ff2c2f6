"""Which recomputes the runner has taken and not finished, in a file: it outlives the process, however that ends."""

import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import orjson

from master_dataset.errors import DiskFull, OperatorError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class Unfinished:
    """Ids in the order in which they were taken. Safe between threads."""

    def __init__(self, path: Path) -> None:
        """`path`: one process writes it."""
        self._path, self._lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def ids(self) -> Sequence[str]:
        """Those that are left."""
        found: list[str] = orjson.loads(self._path.read_bytes()) if self._path.exists() else []
        return found

    def add(self, id_: str, at_most: int) -> bool:
        """Whether there was room for it. OperatorError, DiskFull among them, if it cannot be written down."""
        with self._lock:
            ids = self.ids()
            if len(ids) >= at_most:
                return False
            try:
                self._write([*ids, id_])
            except OSError as error:
                message = f"`{self._path}` cannot be written ({error.strerror}), so no recompute is taken"
                kind = DiskFull if error.errno in _NO_ROOM else OperatorError
                raise kind(message, do="free some space or mend the rights where GALATEA_HOME is, ask again") from error
            return True

    def remove(self, id_: str) -> None:
        """It is finished."""
        with self._lock:
            self._write([each for each in self.ids() if each != id_])

    def _write(self, ids: Sequence[str]) -> None:
        part = self._path.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(orjson.dumps(ids))
        part.replace(self._path)
