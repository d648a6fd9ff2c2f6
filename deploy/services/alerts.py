"""The alert process: `python -m deploy.services.alerts`. Starts the alert processor as a child and watches it.

A call of the Kafka client may hang forever and ignore its timeout. So the alert processor sends a heartbeat for each
part that has to make progress; if one stays silent for too long, the alert processor is killed and restarted, which is
always safe.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from deploy.cassandra import session_of
from deploy.local.component import NAMED_STOP
from deploy.partitions import all_topics, checked_partitions
from deploy.process import WATCHDOG_VARIABLE
from deploy.services.runner import Process
from deploy.settings import Settings
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import DependencyUnavailableError, OperatorError
from master_dataset.kafka.growth import PartitionGrowths, Partitions
from master_dataset.kafka.topics import Topics
from master_dataset.sources import registered_sources
from speed_layer.alerts.source import committed_positions

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 10.0
STEADY_SECONDS = 60.0
LOOK_SECONDS = 2.0
"""How often it looks for partitions that were opened."""
READY = 255
"""Sent once by each partition when it starts to read; smaller numbers are heartbeats."""

log = structlog.get_logger()


def heartbeat_count(partitions: int) -> int:
    """The number of heartbeats: one per partition, then the history writer's and the tick loop's."""
    return partitions + 2


class WatchedProcess:
    """A child process that sends heartbeats through a pipe: the number of the part that made progress, as one byte."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], heartbeats: int) -> None:
        """Start it with the pipe's descriptor as its last argument.

        Args:
            command: The program and its arguments.
            environment: Its environment.
            heartbeats: How many parts have to make progress, numbered from 0.
        """
        self._pipe, child_end = os.pipe()
        words = [*command, str(child_end)]
        own = environment | {WATCHDOG_VARIABLE: "1"}
        self._child = subprocess.Popen(words, stdin=subprocess.PIPE, env=own, pass_fds=[child_end])  # noqa: S603 - ours
        os.close(child_end)
        self._last = dict.fromkeys(range(heartbeats), time.monotonic())
        self.ready = 0

    def is_stuck(self, seconds: float) -> bool:
        """Read heartbeats for up to a second; returns whether a part has sent none for `seconds`."""
        readable, _, _ = select.select([self._pipe], [], [], min(1.0, seconds / 4))
        if readable:
            for number in os.read(self._pipe, 65_536):
                self.ready += number == READY
                if number in self._last:
                    self._last[number] = time.monotonic()
        return time.monotonic() - min(self._last.values()) > seconds

    def ended(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._child.poll()

    def end(self) -> None:
        """Kill it."""
        self._child.send_signal(signal.SIGKILL)
        self._child.communicate()
        os.close(self._pipe)


@contextmanager
def watched(settings: Settings, number: int) -> Iterator[WatchedProcess]:
    """Start the alert processor of that many partitions, and kill it when the block ends."""
    command = [sys.executable, "-m", "deploy.services.alert_processor", str(number)]
    child = WatchedProcess(command, {**os.environ, **settings.environment()}, heartbeat_count(number))
    try:
        yield child
    finally:
        child.end()


class ReadablePartitions:
    """How many partitions the alert processor reads: new ones as soon as it has read what comes before them (R3)."""

    def __init__(self, settings: Settings) -> None:
        """Read it. Raises what `checked_partitions` does."""
        topics = Topics(settings.kafka.connection)
        self._kafka, self._sources = settings.kafka.connection, list(registered_sources())
        self._known = checked_partitions(settings, topics, all_topics())
        self._topic_ids = topics.ids(self._sources)
        self._growths = PartitionGrowths(session_of(settings.cassandra.address))
        self._looked_at = time.monotonic()
        self.number = self._readable(self._known)

    def must_restart(self) -> bool:
        """Look again, every few seconds: whether partitions were opened, or can be read now.

        When they are opened, the processor starts again and stops at their fences. If something does not answer,
        nothing has changed.
        """
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at, before = time.monotonic(), (self._known.open, self.number)
        try:
            self._known = self._growths.read(self._known.original, self._topic_ids)
            if self._known.open > self.number:
                self.number = self._readable(self._known)
        except (DependencyUnavailableError, *CASSANDRA_UNAVAILABLE) as error:
            log.warning("partitions.unknown", error=str(error))
        return (self._known.open, self.number) != before

    def _readable(self, partitions: Partitions) -> int:
        if not partitions.growths:
            return partitions.original
        positions = committed_positions(self._kafka, self._sources, partitions.open)
        return partitions.readable(positions, self._sources)


def run(process: Process, settings: Settings) -> None:
    """Keep the alert processor running until the process is stopped. OperatorError if it stopped with one."""
    wait, is_ready, partitions = FIRST_WAIT_SECONDS, False, ReadablePartitions(settings)
    while True:
        began, has_changed = time.monotonic(), False
        with watched(settings, partitions.number) as child:
            code = None
            while code is None and not has_changed:
                if child.is_stuck(settings.alerts.stuck_seconds):
                    log.warning("alerts.stuck", seconds=settings.alerts.stuck_seconds)
                    break
                code = child.ended()
                if not is_ready and child.ready >= partitions.number:
                    process.ready()
                    is_ready = True
                has_changed = partitions.must_restart()
        if code == NAMED_STOP:
            raise OperatorError("the alert processor has stopped; the reason is in its log", do="read logs/alerts.log")
        if has_changed:
            log.info("alerts.partitions_changed", partitions=partitions.number)
            continue
        wait = FIRST_WAIT_SECONDS if time.monotonic() - began > STEADY_SECONDS else wait
        time.sleep(random.uniform(FIRST_WAIT_SECONDS, wait))  # noqa: S311 - no secret
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)


if __name__ == "__main__":
    Process("alerts").main(run)
