"""A relay by itself, as a child of the drill: rules from a file, and it ends where it is told to.

`alerts_relay BOOTSTRAP PARTITIONS FOLDER BOOK CRASH_AT`. Writes a line when all of its partitions are read.
"""

import os
import sys
import threading
import time
from pathlib import Path

import msgspec

from master_dataset.crash_points import arm
from speed_layer.alerts.relay import Relay, Work
from speed_layer.alerts.snapshots import Snapshots
from views.alerts.book import Book, Version

TOPICS = ("pos_transactions", "people_counts")


class FileShelf:
    """Shelf. Versions that never change."""

    def __init__(self, file: Path) -> None:
        self._versions = msgspec.json.decode(file.read_bytes(), type=list[Version])

    def read(self) -> Book:
        return Book(self._versions, int(time.time() * 1000) + 60_000)


def main(bootstrap: str, partitions: int, folder: Path, book: Path, crash_at: str) -> None:
    """Until somebody ends it."""
    arm(crash_at, folder / f"crashed-{os.getpid()}")
    waiting = threading.Barrier(partitions, action=_say_ready)
    for partition in range(partitions):
        ready = threading.Event()

        def say(ready: threading.Event = ready) -> None:
            if not ready.is_set():
                ready.set()
                waiting.wait()

        snapshots = Snapshots(folder / str(partition))
        work = Work(bootstrap, TOPICS, FileShelf(book), snapshots, ready=say)
        threading.Thread(target=_end_with, args=(Relay(work, partition),)).start()


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def _end_with(relay: Relay) -> None:
    try:
        relay.run()
    finally:
        os._exit(75)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])
