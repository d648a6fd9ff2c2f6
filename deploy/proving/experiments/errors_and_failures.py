"""P21, an error and a failure are two things.

An error comes again with the same record: every hundredth is refused by the sink (422), today and tomorrow. A failure
passes: in the middle the sink is down for a while (503), and then takes the same record. Who tells them apart puts the
bad record aside as a dead letter with its reason and goes on, and repeats the other in order until it is taken: nothing
is lost. Who skips on any exception loses every record that came while the sink was down, and says nothing.
"""

from collections.abc import Sequence

from confluent_kafka import Message

from deploy.proving.counting import Tally, inversions, tally
from deploy.proving.experiment import Experiment
from deploy.proving.ground import Ground
from deploy.proving.line import Line, exactly
from deploy.proving.reading import commit, numbers, resumed, until_end
from deploy.proving.sending import flush, producer

EVERY, OUTAGE_TRIES = 100, 20
REASON = "rejected"


class Rejected(Exception):
    """422: this record is wrong, and will be."""


class Down(Exception):
    """503: whatever the record, come again."""


class Sink:
    """Refuses every hundredth record; after half of them it is down for so many tries."""

    def __init__(self, half: int) -> None:
        """Takes `half` records before it goes down."""
        self.taken: list[int] = []
        self._half, self._tries_down = half, OUTAGE_TRIES

    def take(self, number: int) -> None:
        """Take it, or say why not."""
        if len(self.taken) >= self._half and self._tries_down:
            self._tries_down -= 1
            raise Down
        if number % EVERY == EVERY - 1:
            raise Rejected
        self.taken.append(number)


class Skipping:
    """Goes on whatever happens. Do not do this."""

    def __init__(self, sink: Sink) -> None:
        """Gives everything to the sink, once."""
        self._sink = sink

    def work(self, message: Message) -> None:
        """One try."""
        try:
            self._sink.take(int(message.value() or b""))
        except (Rejected, Down):
            return


class Telling:
    """Tells an error from a failure."""

    def __init__(self, sink: Sink, bootstrap: str, dead_letters: str) -> None:
        """What the sink refuses goes to the topic of dead letters."""
        self._sink, self._dead_letters = sink, dead_letters
        self._producer = producer(bootstrap, acks="all", enable_idempotence=True)

    def work(self, message: Message) -> None:
        """Until the record is taken or put aside."""
        while True:
            try:
                self._sink.take(int(message.value() or b""))
            except Down:
                continue  # the same record again, and nothing before it: the order is kept
            except Rejected:
                self._producer.produce(self._dead_letters, message.value(), headers={"reason": REASON})
                flush(self._producer)
            return


def run(ground: Ground) -> Sequence[Line]:
    """The same sink, met in two ways."""
    sent = ground.size.records
    topic, bad = ground.numbered("p21"), sent // EVERY
    skipped, told, letters = Sink(sent // 2), Sink(sent // 2), ground.topic("p21-dead-letters")
    _read(ground, topic, "skipping", Skipping(skipped))
    _read(ground, topic, "telling", Telling(told, ground.bootstrap, letters))
    put_aside = numbers(ground.bootstrap, letters)[0]
    fault = f"{bad} records bad, the sink down for {OUTAGE_TRIES} tries"
    return [
        Line(
            "skip on any exception", fault, sent, Tally(sent - len(skipped.taken), 0, inversions(skipped.taken)),
            {"lost": exactly(bad + OUTAGE_TRIES)},
        ),
        Line(
            "dead letter, or retry in order", fault, sent,
            tally(sent, told.taken, put_aside),
            {"delivered": exactly(sent - bad), "dead letters": exactly(bad)},
            {"delivered": len(told.taken), "dead letters": len(put_aside)},
        ),
    ]  # fmt: skip


def _read(ground: Ground, topic: str, name: str, reading: Skipping | Telling) -> None:
    """Work off, then commit: P02."""
    reader = resumed(ground.bootstrap, ground.name(f"p21-{name}"), topic)
    for message in until_end(reader):
        reading.work(message)
        commit(reader, message)
    reader.close()


EXPERIMENT = Experiment("P21", "an error is put aside, a failure is repeated", run)
