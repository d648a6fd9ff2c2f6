"""Send JSON Lines to the topic of a source: in order, acknowledged by every replica, each line once.

A line that is not an event is sent too; it becomes a dead letter with its bytes and position. Only a line larger than
the broker accepts is rejected. A line that a resumed ingest sends again is a duplicate and counts once.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from confluent_kafka import KafkaError, KafkaException, Producer

from master_dataset.errors import LinesNotSentError
from master_dataset.kafka.client_errors import ClientErrors
from master_dataset.kafka.client_settings import LARGEST_BATCH, producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.producer import Delivery, delivery_of
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import key_of
from master_dataset.source import Source

MAX_LINE_BYTES = LARGEST_BATCH - 1024  # the key and the envelope count too


def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield every line without its line end. One that is too long is cut to MAX_LINE_BYTES + 1 bytes."""
    while line := file.readline(MAX_LINE_BYTES + 2):  # 2 bytes for the line end
        rest = line
        while not rest.endswith(b"\n") and len(rest) == MAX_LINE_BYTES + 2:
            rest = file.readline(MAX_LINE_BYTES + 2)
        yield line.rstrip(b"\r\n")[: MAX_LINE_BYTES + 1]


def paced(lines: Iterable[bytes], per_second: float) -> Iterator[bytes]:
    """Yield lines at most at this rate. After a stall it catches up for at most one second."""
    due = time.monotonic()
    for line in lines:
        now = time.monotonic()
        due = max(due, now - 1)
        if due > now:
            time.sleep(due - now)
        due += 1 / per_second
        yield line


METADATA_SECONDS = 15.0
FAILURE_WAIT_SECONDS = 5.0  # how long pending lines may still be acknowledged
POLL_EVERY = 256  # lines
REPORT_SECONDS = 0.1
MAX_NAMED = 20  # rejected lines
NO_KEY_PARTITION = (
    0  # for lines without a key, which are not events; fixed, so that repeating an ingest is deterministic
)


@dataclass(frozen=True)
class IngestResult:
    """Numbers of lines: `sent` to the broker, `acknowledged` by it, `rejected` because they are too large."""

    sent: int = 0
    acknowledged: int = 0
    rejected: int = 0
    seconds: float = 0.0
    rejected_lines: tuple[int, ...] = ()  # numbers of the first of them


@dataclass(frozen=True)
class IngestOptions:
    """Options of an ingest."""

    first_line: int = 1  # number of the first line, to resume an ingest
    give_up_seconds: float = 300.0  # how long a line may stay unacknowledged; longer than a restart of the broker
    on_acknowledged: "AcknowledgedCallback | None" = None


ProgressCallback = Callable[[IngestResult], None]
AcknowledgedCallback = Callable[[bytes, Delivery], None]
"""Called with each line that was acknowledged, as it was sent, and with its place."""


def ingest(
    source: Source[Any],
    lines: Iterable[bytes],
    kafka: KafkaConnection,
    progress: ProgressCallback,
    options: IngestOptions | None = None,
) -> IngestResult:
    """Send every line that is not blank, and return once the broker has acknowledged all of them.

    Waits while the broker restarts.

    Args:
        source: The source of the lines.
        lines: The lines, without line ends.
        kafka: The cluster.
        progress: Called about ten times a second.
        options: None for the defaults.

    Returns:
        The numbers of lines.

    Raises:
        BrokerUnavailableError: Nothing was sent.
        LinesNotSentError: A line was not acknowledged in time, or the ingest was interrupted; says where to resume.
    """
    options = options or IngestOptions()
    sender = _LineSender(source, kafka, progress, options)
    number = options.first_line - 1
    try:
        for number, line in enumerate(lines, options.first_line):
            if not line or line.isspace():
                continue
            sender.send(number, line)
            if sender.failure:
                break
    except KeyboardInterrupt:
        sender.failure = "it was interrupted"
    return sender.finish(number)


class _LineSender:
    """One producer, and the lines that are not acknowledged yet. Its queue bounds the memory."""

    def __init__(
        self, source: Source[Any], kafka: KafkaConnection, progress: ProgressCallback, options: IngestOptions
    ) -> None:
        self._source, self._topic, self._key_of, self._progress = source, source.topic, key_of(source), progress
        self._began = self._reported_at = time.monotonic()
        self._pending: set[int] = set()  # numbers of lines that are neither acknowledged nor rejected
        self._acknowledged = self._rejected = 0
        self._rejected_lines: list[int] = []
        self.failure = ""
        self._errors = ClientErrors(kafka)
        self._on_acknowledged = options.on_acknowledged
        settings = producer_settings(kafka, "galatea-ingest", options.give_up_seconds)
        self._producer: Producer = self._errors.connect(Producer, settings)
        self._check_topic()

    def send(self, number: int, line: bytes) -> None:
        """Queue one line; waits while the queue is full."""
        if len(line) > MAX_LINE_BYTES:
            self._reject(number)
            return
        line = mask_value(self._source, line)
        key = self._key_of(line)
        self._pending.add(number)
        while not self.failure:
            try:
                self._produce(number, line, {"partition": NO_KEY_PARTITION} if key is None else {"key": key})
                break
            except BufferError:
                self._poll(REPORT_SECONDS)
            except KafkaException as error:
                self._delivered(number, error.args[0])
        if number % POLL_EVERY == 0 or time.monotonic() - self._reported_at >= REPORT_SECONDS:
            self._poll(0)

    def finish(self, last: int) -> IngestResult:
        """Wait for pending lines. `last`: number of the last line that was read."""
        deadline = time.monotonic() + (FAILURE_WAIT_SECONDS if self.failure else float("inf"))
        while len(self._producer) and time.monotonic() < deadline:
            self._poll(REPORT_SECONDS)
        result = self._result()
        self._progress(result)
        if self.failure:
            message = f"Ingest stopped because {self.failure}; {result.acknowledged:,} lines were acknowledged."
            resume = min(self._pending, default=last + 1)
            raise LinesNotSentError(message, do=f"Repeat it with `--from-line {resume}`: duplicates count once.")
        return result

    def _check_topic(self) -> None:
        what = f"send anything to the topic `{self._topic}`"
        try:
            topic = self._producer.list_topics(self._topic, timeout=METADATA_SECONDS).topics[self._topic]
        except KafkaException as error:
            self._producer.poll(0)
            raise self._errors.translated(error, what) from error
        if topic.error is not None:
            raise self._errors.translated(KafkaException(topic.error), what)

    def _produce(self, number: int, line: bytes, where: dict[str, Any]) -> None:
        def report(error: Any, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
            if error is None and self._on_acknowledged is not None:
                self._on_acknowledged(line, delivery_of(None, message))
            self._delivered(number, error)

        self._producer.produce(self._topic, line, on_delivery=report, **where)

    def _delivered(self, number: int, error: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        if error is None:
            self._acknowledged += 1
            self._pending.discard(number)
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._pending.discard(number)
            self._reject(number)
        elif not self.failure:
            self.failure = f"the broker did not accept line {number} ({error.str()})"

    def _reject(self, number: int) -> None:
        self._rejected += 1
        if len(self._rejected_lines) < MAX_NAMED:
            self._rejected_lines.append(number)

    def _poll(self, seconds: float) -> None:
        self._producer.poll(seconds)
        now = time.monotonic()
        if now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            self._progress(self._result())

    def _result(self) -> IngestResult:
        sent = self._acknowledged + len(self._pending)
        seconds = round(time.monotonic() - self._began, 3)
        return IngestResult(sent, self._acknowledged, self._rejected, seconds, tuple(self._rejected_lines))
