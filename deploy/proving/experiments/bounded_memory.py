"""P20, a reader that is slower than its topic needs back pressure, or its memory grows until it dies.

Ten records come for each that is worked off. A queue without a bound takes them all: its peak is the whole topic.
With a bound the consumer pauses its partition when the queue is full, which tells the client to fetch no more, and
resumes it when there is room; records wait in the broker, which is made for that. (The client has a buffer of its
own, 64 MB unless said: here 1 MB.) Nothing is lost either way; only one of them can go on for ever.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, TopicPartition

from deploy.proving.counting import tally
from deploy.proving.experiment import Experiment
from deploy.proving.ground import Ground
from deploy.proving.line import ZERO, Bound, Line, at_least, at_most
from deploy.proving.reading import resumed

TIMES_FASTER, RECORD_BYTES, LIMIT, ENOUGH = 10, 1024, 500, 250
MEGABYTE = 1 << 20
SOON_SECONDS = 1.0
SMALL_BUFFER = {"queued.max.messages.kbytes": 1024}


def run(ground: Ground) -> Sequence[Line]:
    """The same topic, read twice."""
    sent = 5 * ground.size.records
    filling = ((None, str(number).encode().ljust(RECORD_BYTES)) for number in range(sent))
    topic = ground.filled("p20", filling)
    bounded = {"peak records": at_most(LIMIT + TIMES_FASTER), "pauses": at_least(1), "resumes": at_least(1)}
    unbounded = {"peak records": at_least(sent // 2), "pauses": ZERO, "resumes": ZERO}
    return [
        _line(ground, topic, sent, None, unbounded),
        _line(ground, topic, sent, LIMIT, bounded),
    ]


class Intake:
    """A queue before slow work. `limit`: records at which the partition is paused; None: never."""

    def __init__(self, reader: Consumer, topic: str, limit: int | None) -> None:
        """The reader is assigned already."""
        self._reader, self._place, self._limit = reader, [TopicPartition(topic, 0)], limit
        self.queue: deque[bytes] = deque()
        self.peak = self.peak_bytes = self.pauses = self.resumes = 0
        self.ended = False

    def take(self) -> None:
        """Let come what comes while one record is worked off."""
        is_paused = self.pauses > self.resumes
        for message in self._reader.consume(TIMES_FASTER, 0 if is_paused or self.ended else SOON_SECONDS):
            error = message.error()
            if error is None:
                self.queue.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                self.ended = True
        self.peak = max(self.peak, len(self.queue))
        self.peak_bytes = max(self.peak_bytes, RECORD_BYTES * len(self.queue))
        if self._limit is None or self.ended:
            return
        if not is_paused and len(self.queue) >= self._limit:
            self._reader.pause(self._place)
            self.pauses += 1
        elif is_paused and len(self.queue) <= ENOUGH:
            self._reader.resume(self._place)
            self.resumes += 1


def _line(ground: Ground, topic: str, sent: int, limit: int | None, expected: Mapping[str, Bound]) -> Line:
    reader = resumed(ground.bootstrap, ground.name(f"p20-{limit}"), topic, SMALL_BUFFER)
    intake, done = Intake(reader, topic, limit), []
    while not intake.ended or intake.queue:
        intake.take()
        if intake.queue:
            done.append(int(intake.queue.popleft()))
    reader.close()
    counted = {"peak records": intake.peak, "pauses": intake.pauses, "resumes": intake.resumes}
    return Line(
        "unbounded queue" if limit is None else f"bounded queue of {limit:,}", f"work {TIMES_FASTER} x slower", sent,
        tally(sent, done), expected, counted, {"peak": f"{intake.peak_bytes / MEGABYTE:.1f} MB"},
    )  # fmt: skip


EXPERIMENT = Experiment("P20", "unbounded against bounded memory", run)
