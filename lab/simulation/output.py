"""Output."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any

import orjson

from lab.simulation.records import Delivery
from lab.simulation.simulation import Simulation
from lab.simulation.stores import stores_text
from master_dataset.errors import RequestError
from master_dataset.kafka.ingest import IngestResult, ingest
from master_dataset.sources import registered_sources, source_named

SIMULATED = "Simulated: no shop, person, device or receipt in it is real."
Told = Callable[[datetime], None]
"""Hears of every record how far the time has come."""


def write(simulation: Simulation, folder: Path, told: Told) -> None:
    """Write all of it. RequestError if the folder holds anything already, or cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RequestError(f"`{folder}` is not empty, and nothing in it is overwritten.", do="Name a new folder.")
        (folder / "stores.yaml").write_text(f"# {SIMULATED}\n{stores_text(simulation.stores)}", encoding="utf-8")
        _write_lines(simulation, folder, told)
        (folder / "manifest.json").write_bytes(orjson.dumps(manifest(simulation), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise RequestError(f"`{folder}` cannot be written: {error.strerror}.", do="Name another folder.") from error


def manifest(simulation: Simulation) -> dict[str, Any]:
    """What the simulation says of itself once all of it was given."""
    return {
        "simulated": True,
        "note": SIMULATED,
        "seed": simulation.seed,
        "from": simulation.first,
        "to": simulation.last,
        "faults": simulation.faults,
        "stores": _ids(simulation),
        "sent": simulation.tally.sent,
        "sources": simulation.tally.told(),
    }


def _ids(simulation: Simulation) -> Sequence[str]:
    return [store.id for store in simulation.stores]


def _write_lines(simulation: Simulation, folder: Path, told: Told) -> None:
    with ExitStack() as opened:
        files = {
            topic: opened.enter_context((folder / f"{topic}.jsonl").open("wb")) for topic in sorted(simulation.topics)
        }
        for send_at, topic, value in simulation.deliveries():
            files[topic].write(value + b"\n")
            told(send_at)


def paced(
    deliveries: Iterable[Delivery],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Delivery]:
    """Give each when its time has come: `speed` seconds of theirs are one of the clock's. They are not changed."""
    began, first = clock(), None
    for each in deliveries:
        at = each.send_at.timestamp()
        first = at if first is None else first
        ahead = began + (at - first) / speed - clock()
        if ahead > 0:
            sleep(ahead)
        yield each


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
    """Send them all, and give how many the broker has acknowledged. BrokerUnavailableError, LinesNotSentError."""
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
