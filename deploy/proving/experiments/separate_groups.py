"""P22, work of different kinds belongs into groups of its own.

Two endpoints get the same records, in order, so each failure blocks what comes behind it. One of them is down. (a)
One reader that serves both stops at its first record, and the healthy endpoint gets nothing more although it could.
(b) With a group for each, only the reader of the one that is down stands still; the healthy one has everything before
the other is up again. In the end both have everything, either way. So whoever
delivers to several endpoints wants a group for each.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from deploy.proving.counting import Tally, tally
from deploy.proving.experiment import Experiment
from deploy.proving.ground import Ground
from deploy.proving.line import Line, exactly
from deploy.proving.reading import commit, resumed, until_end

TRIES, AGAIN_SECONDS = 50, 0.01


class Down(Exception):
    """503: come again."""


class Endpoint:
    """Takes records while it is up."""

    def __init__(self) -> None:
        """It is up."""
        self.up = threading.Event()
        self.up.set()
        self.taken: list[int] = []
        self.refused = 0

    def take(self, number: int) -> None:
        """Take it, or be down."""
        if not self.up.is_set():
            self.refused += 1
            raise Down
        self.taken.append(number)

    def insist(self, number: int) -> None:
        """Repeat until it is taken."""
        while True:
            try:
                return self.take(number)
            except Down:
                time.sleep(AGAIN_SECONDS)


def run(ground: Ground) -> Sequence[Line]:
    """One group for both, then a group each."""
    topic, sent = ground.numbered("p22"), ground.size.records
    return [_together(ground, topic, sent), _apart(ground, topic, sent)]


def _together(ground: Ground, topic: str, sent: int) -> Line:
    """The other endpoint is down from the first record on, for so many tries."""
    healthy, other, meanwhile = Endpoint(), Endpoint(), 0
    other.up.clear()

    def both(number: int) -> None:
        nonlocal meanwhile
        healthy.insist(number)
        while other.refused < TRIES:
            with suppress(Down):
                other.take(number)
            meanwhile = len(healthy.taken)
        other.up.set()
        other.insist(number)

    _read(ground, topic, "both", both)
    return _line("one group for both endpoints", sent, (healthy, other), meanwhile, 1)


def _apart(ground: Ground, topic: str, sent: int) -> Line:
    """The other endpoint is down until the healthy one has everything."""
    healthy, other = Endpoint(), Endpoint()
    other.up.clear()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(_read, ground, topic, "other", other.insist)
        try:
            pool.submit(_read, ground, topic, "healthy", healthy.insist).result()
            meanwhile = len(healthy.taken)
        finally:
            other.up.set()
        waiting.result()
    return _line("a group for each endpoint", sent, (healthy, other), meanwhile, sent)


def _read(ground: Ground, topic: str, name: str, deliver: Callable[[int], None]) -> None:
    reader = resumed(ground.bootstrap, ground.name(f"p22-{name}"), topic)
    for message in until_end(reader):
        deliver(int(message.value() or b""))
        commit(reader, message)
    reader.close()


def _line(mode: str, sent: int, endpoints: tuple[Endpoint, Endpoint], meanwhile: int, expected: int) -> Line:
    healthy, other = (tally(sent, each.taken) for each in endpoints)
    both = Tally(*(one + two for one, two in zip(healthy, other, strict=True)))
    counted = {"delivered meanwhile": meanwhile}
    return Line(
        mode, "one of two endpoints is down", 2 * sent, both, {"delivered meanwhile": exactly(expected)}, counted
    )


EXPERIMENT = Experiment("P22", "different work in groups of its own", run)
