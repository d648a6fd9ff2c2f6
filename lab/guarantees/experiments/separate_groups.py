"""P22, work of different kinds needs consumer groups of its own.

Two endpoints get the same records in order, so each failure blocks the records after it. One of them is down: it
rejects everything, or never responds. (a) One member that serves both stops at its first record, and the healthy
endpoint gets nothing more. (b) With a member in a group of its own for each, in one process, only the one whose
endpoint is down stops: the healthy one gets everything while the other gets nothing. In the end both have everything,
either way. So deliveries to several endpoints need a group for each. The members are those of Galatea's webhooks
(`master_dataset.kafka.consumer`).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from lab.guarantees.clients import member, until
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Bound, Result, at_least, count_numbers, exactly, total_counts
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, Done, Reject, Retry

TRIES = 50
LIMITS = ConsumerLimits(longest_wait=0.01)
REFUSES, SILENT = "one of two endpoints is down", "one of two endpoints never answers"


class Endpoint:
    """Takes records, in order, while it is up. `is_silent`: down, it does not answer at all."""

    def __init__(self, *, is_silent: bool = False) -> None:
        """It is up."""
        self.up, self._is_silent = asyncio.Event(), is_silent
        self.up.set()
        self.taken: list[int] = []
        self.tried = 0

    def accepts(self, _record: ConsumerRecord) -> bool:
        """Everything."""
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> Done | Retry:
        """Take them, or be down."""
        if not self.up.is_set():
            self.tried += 1
            if not self._is_silent:
                return Retry("503: come again")
            await self.up.wait()
        self.taken += [int(record.value) for record in records]
        return Done()

    async def store_rejected(self, _record: ConsumerRecord, _refused: Reject) -> Done:
        """Nothing is refused for good here."""
        return Done()


class Both(Endpoint):
    """One handler for two endpoints: a batch is done when both have it."""

    def __init__(self, healthy: Endpoint, other: Endpoint) -> None:
        """The healthy one is given a batch first, and once."""
        super().__init__()
        self._healthy, self._other = healthy, other
        self._given = -1

    async def handle(self, records: Sequence[ConsumerRecord]) -> Done | Retry:
        """What the other endpoint says."""
        fresh = [record for record in records if record.offset > self._given]
        if fresh:
            await self._healthy.handle(fresh)
            self._given = fresh[-1].offset
        return await self._other.handle(records)


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """One group for both, then a group each: beside an endpoint that refuses, and beside one that never answers."""
    sent = setup.size.records
    topic = setup.filled("p22", ((b"one store", str(number).encode()) for number in range(sent)))
    return [
        asyncio.run(_together(setup, topic, sent)),
        asyncio.run(_apart(setup, topic, sent, is_silent=False)),
        asyncio.run(_apart(setup, topic, sent, is_silent=True)),
    ]


async def _together(setup: ExperimentSetup, topic: str, sent: int) -> Result:
    """The other endpoint is down from the first record on, for so many tries."""
    healthy, other = Endpoint(), Endpoint()
    other.up.clear()
    moves = _moves(healthy, other)
    async with member(_settings(setup, "both"), topic, Both(healthy, other), LIMITS):
        await until(lambda: other.tried >= TRIES, moves)
        meanwhile = _meanwhile(healthy, other)
        other.up.set()
        await until(lambda: _has_all(sent, healthy, other), moves)
    return _line("one group for both endpoints", REFUSES, (healthy, other), meanwhile, {"delivered": exactly(1)}, sent)


async def _apart(setup: ExperimentSetup, topic: str, sent: int, *, is_silent: bool) -> Result:
    """The other endpoint is down until the healthy one has everything, or gets nothing more."""
    healthy, other = Endpoint(), Endpoint(is_silent=is_silent)
    other.up.clear()
    least, name, moves = 1 if is_silent else TRIES, "silent" if is_silent else "down", _moves(healthy, other)
    async with (
        member(_settings(setup, name), topic, other, LIMITS),
        member(_settings(setup, f"beside-{name}"), topic, healthy, LIMITS),
    ):
        await until(lambda: other.tried >= least and _has_all(sent, healthy), moves)
        meanwhile = _meanwhile(healthy, other)
        other.up.set()
        await until(lambda: _has_all(sent, healthy, other), moves)
    fault, expected = SILENT if is_silent else REFUSES, {"delivered": exactly(sent), "tried": at_least(least)}
    return _line("a group for each endpoint", fault, (healthy, other), meanwhile, expected, sent)


def _settings(setup: ExperimentSetup, name: str) -> dict[str, Any]:
    return {**setup.kafka.client(), "group.id": setup.name(f"p22-{name}")}


def _has_all(sent: int, *endpoints: Endpoint) -> bool:
    return all(len(each.taken) >= sent for each in endpoints)


def _moves(*endpoints: Endpoint) -> Callable[[], int]:
    return lambda: sum(len(each.taken) + each.tried for each in endpoints)


def _meanwhile(healthy: Endpoint, other: Endpoint) -> dict[str, int]:
    """What has happened while the other endpoint is down."""
    return {"delivered": len(healthy.taken), "delivered to the other": len(other.taken), "tried": other.tried}


def _line(  # noqa: PLR0913, PLR0917 - the parts of a result
    mode: str,
    fault: str,
    endpoints: tuple[Endpoint, Endpoint],
    meanwhile: dict[str, int],
    expected: dict[str, Bound],
    sent: int,
) -> Result:
    found = total_counts(count_numbers(sent, each.taken) for each in endpoints)
    bounds = {"delivered to the other": exactly(0), "tried": at_least(TRIES), **expected}
    said = {f"{name} meanwhile": bounds[name] for name in meanwhile}
    return Result(
        mode,
        fault,
        2 * sent,
        found,
        said,
        {f"{name} meanwhile": count for name, count in meanwhile.items()},
    )


EXPERIMENT = Experiment("P22", "different work in groups of its own", run)
