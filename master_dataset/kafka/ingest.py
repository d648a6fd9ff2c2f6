"""JSON Lines as bytes: one record a line, read in bounded memory whatever a file holds.

Brings lines to the topic of a source: in order, acknowledged by every replica, once each.

What cannot become an event is sent too: it becomes a dead letter with its bytes and its place. Only a line larger than
the broker takes is rejected. A line that arrives twice, since an ingest was resumed, is a duplicate and counts once.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from confluent_kafka import KafkaError, KafkaException, Producer

from master_dataset.errors import BrokerUnavailableError, LinesNotSentError
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import key_of
from master_dataset.source import Source

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


METADATA_SECONDS = 15.0
AFTER_FAILURE_SECONDS = 5.0  # how long what is under way may still be acknowledged
SERVE_EVERY = 256  # lines between two looks at what was acknowledged
TELL_SECONDS = 0.1
MOST_NAMED = 20  # rejected lines that are named, not only counted
NO_KEY_PARTITION = 0  # no event can be in it, so one place is as good as any; at random, a repetition would differ


@dataclass(frozen=True)
class IngestResult:
    """What became of the lines: `sent` to the broker, `acknowledged` by it, `rejected` as larger than it takes."""

    sent: int = 0
    acknowledged: int = 0
    rejected: int = 0
    seconds: float = 0.0
    rejected_lines: tuple[int, ...] = ()  # the first of them


@dataclass(frozen=True)
class IngestOptions:
    """How an ingest goes about it."""

    first_line: int = 1  # the number of the first line, for those who resume
    give_up_seconds: float = 300.0  # how long a line may stay unacknowledged: a broker's restart is shorter


Progress = Callable[[IngestResult], None]


def ingest(
    source: Source[Any],
    lines: Iterable[bytes],
    bootstrap: str,
    progress: Progress,
    terms: IngestOptions | None = None,
) -> IngestResult:
    """Send every line that is not blank, and return once the broker has acknowledged all.

    A restart of the broker is waited for. Raises BrokerUnavailableError when nothing was sent yet, and LinesNotSentError, which
    says where to resume, when one line stays unacknowledged for longer than the terms say. `progress` is told some ten
    times a second.
    """
    terms = terms or IngestOptions()
    sending = _Sending(source, bootstrap, progress, terms.give_up_seconds)
    number = terms.first_line - 1
    try:
        for number, line in enumerate(lines, terms.first_line):
            if not line or line.isspace():
                continue
            sending.send(number, line)
            if sending.failure:
                break
    except KeyboardInterrupt:
        sending.failure = "it was interrupted"
    return sending.finish(number)


class _Sending:
    """One producer and the lines it still owes. Memory is bounded by the producer's queue."""

    def __init__(self, source: Source[Any], bootstrap: str, progress: Progress, give_up_seconds: float) -> None:
        self._source, self._topic, self._key_of, self._progress = source, source.topic, key_of(source), progress
        self._began = self._told = time.monotonic()
        self._owed: set[int] = set()  # numbers of lines that are neither acknowledged nor rejected
        self._acknowledged = self._rejected = 0
        self._rejected_lines: list[int] = []
        self.failure = ""
        self._producer = Producer(producer_settings(bootstrap, "galatea-ingest", give_up_seconds))
        self._find_topic()

    def send(self, number: int, line: bytes) -> None:
        """Queue one line; waits while the queue is full."""
        if len(line) > MAX_LINE_BYTES:
            self._reject(number)
            return
        line = mask_value(self._source, line)
        key = self._key_of(line)
        self._owed.add(number)
        while not self.failure:
            try:
                self._produce(number, line, {"partition": NO_KEY_PARTITION} if key is None else {"key": key})
                break
            except BufferError:
                self._serve(TELL_SECONDS)
            except KafkaException as error:
                self._delivered(number, error.args[0])
        if number % SERVE_EVERY == 0 or time.monotonic() - self._told >= TELL_SECONDS:
            self._serve(0)

    def finish(self, last: int) -> IngestResult:
        """Wait for what is owed. `last` is the number of the last line that was read."""
        patience = time.monotonic() + (AFTER_FAILURE_SECONDS if self.failure else float("inf"))
        while len(self._producer) and time.monotonic() < patience:
            self._serve(TELL_SECONDS)
        result = self._result()
        self._progress(result)
        if self.failure:
            message = f"Ingest stopped because {self.failure}; {result.acknowledged:,} lines were acknowledged."
            resume = min(self._owed, default=last + 1)
            raise LinesNotSentError(
                message, do=f"Repeat it with `--from-line {resume}`: what arrives twice counts once."
            )
        return result

    def _find_topic(self) -> None:
        try:
            topic = self._producer.list_topics(self._topic, timeout=METADATA_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise BrokerUnavailableError(
                "The broker does not answer; nothing was sent.", do="galatea status"
            ) from error
        if topic.error is not None:
            raise BrokerUnavailableError(f"There is no topic `{self._topic}`; nothing was sent.", do="galatea up")

    def _produce(self, number: int, line: bytes, where: dict[str, Any]) -> None:
        self._producer.produce(self._topic, line, on_delivery=lambda error, _: self._delivered(number, error), **where)

    def _delivered(self, number: int, error: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
        if error is None:
            self._acknowledged += 1
            self._owed.discard(number)
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._owed.discard(number)
            self._reject(number)
        elif not self.failure:
            self.failure = f"the broker did not take line {number} ({error.str()})"

    def _reject(self, number: int) -> None:
        self._rejected += 1
        if len(self._rejected_lines) < MOST_NAMED:
            self._rejected_lines.append(number)

    def _serve(self, seconds: float) -> None:
        self._producer.poll(seconds)
        now = time.monotonic()
        if now - self._told >= TELL_SECONDS:
            self._told = now
            self._progress(self._result())

    def _result(self) -> IngestResult:
        sent = self._acknowledged + len(self._owed)
        seconds = round(time.monotonic() - self._began, 3)
        return IngestResult(sent, self._acknowledged, self._rejected, seconds, tuple(self._rejected_lines))
