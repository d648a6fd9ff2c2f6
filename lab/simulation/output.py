"""Output of a simulation: a folder of JSON lines, or Kafka, at the pace at which the records were sent."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Any, Self

import orjson

from lab.simulation.records import TimedRecord
from lab.simulation.simulation import Simulation
from lab.simulation.stores import stores_text
from master_dataset.errors import GalateaError, RequestError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.ingest import IngestResult, ingest
from master_dataset.sources import registered_sources, source_named

SIMULATED = "Simulated: no shop, person, device or receipt in it is real."
Progress = Callable[[datetime], None]
"""Called for every record with its time of sending."""


def write_folder(simulation: Simulation, folder: Path, progress: Progress) -> None:
    """Write a simulation: a file per source, `stores.yaml` and `manifest.json`.

    Raises RequestError if the folder is not empty or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RequestError(f"`{folder}` is not empty, and nothing in it is overwritten.", do="Name a new folder.")
        (folder / "stores.yaml").write_text(f"# {SIMULATED}\n{stores_text(simulation.stores)}", encoding="utf-8")
        _write_lines(simulation, folder, progress)
        (folder / "manifest.json").write_bytes(orjson.dumps(manifest(simulation), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise RequestError(f"`{folder}` cannot be written: {error.strerror}.", do="Name another folder.") from error


def manifest(simulation: Simulation) -> dict[str, Any]:
    """Return the manifest, once all records were generated."""
    return {
        "simulated": True,
        "note": SIMULATED,
        "seed": simulation.seed,
        "from": simulation.first,
        "to": simulation.last,
        "faults": simulation.faults,
        "stores": [store.id for store in simulation.stores],
        "sent": simulation.counts.sent,
        "sources": simulation.counts.manifest(),
    }


def _write_lines(simulation: Simulation, folder: Path, progress: Progress) -> None:
    with ExitStack() as opened:
        files = {
            topic: opened.enter_context((folder / f"{topic}.jsonl").open("wb")) for topic in sorted(simulation.topics)
        }
        for send_at, topic, value in simulation.deliveries():
            files[topic].write(value + b"\n")
            progress(send_at)


def paced(
    records: Iterable[TimedRecord],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[TimedRecord]:
    """Yield each record at its time of sending, `speed` times as fast as real time; the first one at once."""
    began, first = clock(), None
    for each in records:
        at = each.send_at.timestamp()
        first = at if first is None else first
        ahead = began + (at - first) / speed - clock()
        if ahead > 0:
            sleep(ahead)
        yield each


QUEUED = 2_000
"""Records of a source that wait to be sent, at most."""
PUT_SECONDS = 0.5


class _SourceSender:
    """One source and its ingest, which takes the records in order."""

    def __init__(self, topic: str, kafka: KafkaConnection, pool: ThreadPoolExecutor) -> None:
        self._lines: Queue[bytes | None] = Queue(QUEUED)
        source = source_named(topic)
        self.sent: Future[IngestResult] = pool.submit(
            lambda: ingest(source, iter(self._lines.get, None), kafka, lambda _: None)
        )

    def put(self, value: bytes | None) -> None:
        """Queue a line; None is the end. Raises what the ingest has raised."""
        while True:
            if self.sent.done():
                self.sent.result()
                return
            try:
                self._lines.put(value, timeout=PUT_SECONDS)
            except Full:
                continue
            return

    def end(self) -> None:
        """End the ingest; what is still queued is dropped."""
        while True:
            try:
                self._lines.get_nowait()
            except Empty:
                break
        self._lines.put(None)


class _SourceSenders:
    """The senders of the sources that have had a record."""

    def __init__(self, kafka: KafkaConnection, pool: ThreadPoolExecutor) -> None:
        self._kafka, self._pool = kafka, pool
        self._senders: dict[str, _SourceSender] = {}

    def put(self, topic: str, value: bytes) -> None:
        """Queue a record for its source."""
        if topic not in self._senders:
            self._senders[topic] = _SourceSender(topic, self._kafka, self._pool)
        self._senders[topic].put(value)

    def acknowledged(self) -> int:
        """Wait for everything that is under way."""
        for sender in self._senders.values():
            sender.put(None)
        return sum(sender.sent.result().acknowledged for sender in self._senders.values())

    def end(self) -> None:
        """End every ingest."""
        for sender in self._senders.values():
            sender.end()


def send(records: Iterable[TimedRecord], kafka: KafkaConnection) -> int:
    """Send all records, each source by an ingest of its own, and return how many the broker has acknowledged.

    Raises BrokerUnavailableError or LinesNotSentError.
    """
    with ThreadPoolExecutor(len(registered_sources()), "simulate") as pool:  # every sender needs its own thread
        senders = _SourceSenders(kafka, pool)
        try:
            for each in records:
                senders.put(each.topic, each.value)
            return senders.acknowledged()
        finally:
            senders.end()


class PacedSending:
    """Sends records at their times, in a thread. Use it as a context manager; leaving it early ends the sending."""

    def __init__(
        self,
        records: Iterable[TimedRecord],
        speed: float,
        kafka: KafkaConnection,
        on_failure: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        """Send nothing yet.

        Args:
            records: By their time of sending.
            speed: How much faster than real time.
            kafka: The cluster.
            on_failure: Is called if the sending ends before it was to.
        """
        self._records, self._speed, self._kafka, self._on_failure = records, speed, kafka, on_failure
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(1, "paced")
        self._sending: Future[int] | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._sending = self._pool.submit(self._send)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, whether all was sent or not."""
        self._ended.set()
        self._pool.shutdown(wait=True)

    def result(self) -> int:
        """Wait for its end, and return how many records were acknowledged. Raises what the sending raised."""
        if self._sending is None:
            raise RuntimeError("the sending has not begun")
        return self._sending.result()

    def _send(self) -> int:
        try:
            return send(self._until_ended(), self._kafka)
        except GalateaError as error:
            self._on_failure(error)
            raise

    def _until_ended(self) -> Iterator[TimedRecord]:
        for each in paced(self._records, self._speed, sleep=self._wait):
            if self._ended.is_set():
                return
            yield each

    def _wait(self, seconds: float) -> None:
        self._ended.wait(seconds)
