"""An alert processor in a process of its own, with rules from a file, that ends or pauses at given points.

It runs under the product's watchdog (`python -m tests.system.drills.alert_processor ORDERS PIPE`), or forked, which is
quicker.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import structlog

from deploy.services.alerts import READY
from deploy.services.runner import RESTART_ME
from master_dataset.failpoints import arm
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.topics import Topics
from speed_layer.alerts import sender
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.sender import FencedError
from speed_layer.alerts.snapshots import Snapshots
from tests.support.alert_signatures import signatures_of
from tests.system.drills.naive_processor import NaiveProcessor
from views.alerts.rule_history import RuleHistory, StoredVersion

TOPICS = ("pos_transactions", "people_counts")
RULE_HISTORY, DISCARDED, FENCED = "book.json", "discarded", "fenced"
BEAT_SECONDS = 0.5
Say = Callable[[bytes], object]


class Orders(msgspec.Struct, frozen=True):
    """The orders of one process. `end_at`: a plan of failpoints; `pauses`: pause there instead.

    `call_seconds`, `transaction_ms`: how long the sender waits for an answer, the broker for an end.
    """

    bootstrap: str
    folder: str
    partitions: Sequence[int]
    end_at: str = ""
    pauses: bool = False
    call_seconds: float = sender.CALL_SECONDS
    transaction_ms: int = sender.TRANSACTION_MS
    naive: str = ""


class FileRuleStore:
    """A rule store whose versions never change."""

    def __init__(self, file: Path) -> None:
        self._versions = msgspec.json.decode(file.read_bytes(), type=list[StoredVersion])

    def read(self) -> RuleHistory:
        return RuleHistory(self._versions, int(time.time() * 1000) + 60_000)


def live(orders: Orders, say: Say) -> None:
    """Until somebody ends it. Says READY for each partition that reads, and which one gets on, as the product does."""
    folder = Path(orders.folder)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    sender.CALL_SECONDS, sender.TRANSACTION_MS = orders.call_seconds, orders.transaction_ms
    by = signal.SIGSTOP if orders.pauses else signal.SIGKILL
    arm(orders.end_at, folder / f"{'paused' if orders.pauses else 'crashed'}-{os.getpid()}", by)
    for partition in orders.partitions:
        threading.Thread(target=_follow, args=(orders, partition, _PartitionLog(say, partition))).start()


def forked(orders: bytes, reports: Connection) -> None:
    """The same in a process of a fork server, which has loaded everything."""
    live(msgspec.json.decode(orders, type=Orders), reports.send_bytes)


def note(folder: Path, what: str) -> None:
    """Report one more of these."""
    with (folder / what).open("ab") as file:
        file.write(b".")


def noted(folder: Path, what: str) -> int:
    """How many there were."""
    return (folder / what).stat().st_size if (folder / what).exists() else 0


class _PartitionLog:
    """What one partition says."""

    def __init__(self, say: Say, number: int) -> None:
        self._say, self._number = say, number
        self._is_ready, self._beaten_at = False, 0.0

    def ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._say(bytes([READY]))

    def beat(self) -> None:
        if time.monotonic() - self._beaten_at > BEAT_SECONDS:
            self._beaten_at = time.monotonic()
            self._say(bytes([self._number]))


def _follow(orders: Orders, partition: int, partition_log: _PartitionLog) -> None:
    folder = Path(orders.folder)
    work = ProcessorConfig(
        KafkaConnection(orders.bootstrap),
        TOPICS,
        Partitions(len(Topics(KafkaConnection(orders.bootstrap)).partitions(TOPICS[0]))),
        FileRuleStore(folder / RULE_HISTORY),
        Snapshots(folder / str(partition)),
        signatures_of(),
        beat=partition_log.beat,
        ready=partition_log.ready,
        discarded=partial(note, folder, DISCARDED),
    )
    processor = NaiveProcessor(work, partition, orders.naive) if orders.naive else AlertProcessor(work, partition)
    try:
        processor.run()
    except FencedError:
        note(folder, FENCED)
    finally:
        os._exit(RESTART_ME)


if __name__ == "__main__":
    live(msgspec.json.decode(sys.argv[1], type=Orders), partial(os.write, int(sys.argv[2])))
