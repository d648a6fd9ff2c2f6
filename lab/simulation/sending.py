"""Sends records of several sources at once: an ingest for each, which takes them in their order."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, Full, Queue

from lab.simulation.record import Delivery
from master_dataset.kafka.ingest import IngestResult, ingest
from master_dataset.sources import registered_sources, source_named

WAITING = 2_000
"""Records of a source that wait to be sent, at most."""
LOOK_SECONDS = 0.5


class _Lane:
    """One source and its ingest."""

    def __init__(self, topic: str, bootstrap: str, pool: ThreadPoolExecutor) -> None:
        self._lines: Queue[bytes | None] = Queue(WAITING)
        source = source_named(topic)
        self.sent: Future[IngestResult] = pool.submit(
            lambda: ingest(source, iter(self._lines.get, None), bootstrap, lambda _: None)
        )

    def put(self, value: bytes | None) -> None:
        """Hand a line over; None is the end. Raises what the ingest has raised."""
        while True:
            if self.sent.done():
                self.sent.result()
                return
            try:
                self._lines.put(value, timeout=LOOK_SECONDS)
            except Full:
                continue
            return

    def end(self) -> None:
        """Let the ingest come to its end, whatever it still has to send is dropped."""
        while True:
            try:
                self._lines.get_nowait()
            except Empty:
                break
        self._lines.put(None)


def send(deliveries: Iterable[Delivery], bootstrap: str) -> int:
    """Send them all, and give how many the broker has acknowledged. BrokerUnavailable, LinesNotSent."""
    with _lanes(bootstrap) as lane_of:
        for each in deliveries:
            lane_of(each.topic).put(each.value)
        return lane_of.acknowledged()


class _Lanes:
    """The lanes of those sources that have had a record."""

    def __init__(self, bootstrap: str, pool: ThreadPoolExecutor) -> None:
        self._bootstrap, self._pool = bootstrap, pool
        self.open: dict[str, _Lane] = {}

    def __call__(self, topic: str) -> _Lane:
        if topic not in self.open:
            self.open[topic] = _Lane(topic, self._bootstrap, self._pool)
        return self.open[topic]

    def acknowledged(self) -> int:
        """Wait for all that is under way."""
        for lane in self.open.values():
            lane.put(None)
        return sum(lane.sent.result().acknowledged for lane in self.open.values())


@contextmanager
def _lanes(bootstrap: str) -> Iterator[_Lanes]:
    with ThreadPoolExecutor(len(registered_sources()), "simulate") as pool:  # every lane needs a thread of its own
        lanes = _Lanes(bootstrap, pool)
        try:
            yield lanes
        finally:
            for lane in lanes.open.values():
                lane.end()
