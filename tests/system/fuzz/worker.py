"""The process that fuzzes one target: it mutates, checks and counts until its time is over, and shrinks what fails."""

import gc
import mmap
import struct
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.system.fuzz.target import ACCEPTED, Outcome, Target, place_of

LIMIT_SECONDS = 5.0
"""Of the processor for one input. One that takes longer is checked again: something may have been made once for all."""
WAIT_SECONDS = 4 * LIMIT_SECONDS
"""By the clock, as an input may also make the platform wait; other processes take some of this time."""
MOST_POOLED, MOST_POOLED_BYTES = 2_000, 20_000
"""Inputs from which mutations begin, and bytes of one that is added."""
KNOWN = 0.5
"""The share of unchanged inputs, while there are any: a short run shall do both."""
OF_VALID, VALID_AGAIN = 0.6, 0.1
"""The share of mutations that begin with an accepted input, and of accepted inputs like others that are remembered."""
SHRINK_SECONDS = 20.0
REPORT_SECONDS = 1.0
_HEAD = struct.Struct("=QQ")


class CurrentInput:
    """The input that is being checked, in a file that the watchdog can read when this process no longer answers."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """The file must have `size_for(most_bytes)` bytes."""
        self._most = most_bytes
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @staticmethod
    def size_for(most_bytes: int) -> int:
        """Bytes of the file."""
        return _HEAD.size + most_bytes

    def put(self, number: int, value: bytes) -> None:
        """Note that this input is checked from now on."""
        kept = value[: self._most]
        self._map[_HEAD.size : _HEAD.size + len(kept)] = kept
        self._map[: _HEAD.size] = _HEAD.pack(number, len(kept))

    def get(self) -> tuple[int, bytes]:
        """Its number, from 1, and the input."""
        number, size = _HEAD.unpack(self._map[: _HEAD.size])
        return number, self._map[_HEAD.size : _HEAD.size + size]


@dataclass
class Failure:
    """An input that breaks a promise. `place`: the same for inputs that fail alike. `trace`: how it came about."""

    place: str
    trace: str
    value: bytes


@dataclass
class Tally:
    """What a worker has done. `refused`: how often by code."""

    inputs: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    slowest_ms: float = 0.0
    shapes: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add what another worker has done."""
        self.inputs += other.inputs
        self.accepted += other.accepted
        self.refused += other.refused
        self.slowest_ms = max(self.slowest_ms, other.slowest_ms)
        self.shapes = max(self.shapes, other.shapes)
        self.failed += other.failed


@dataclass(frozen=True)
class Job:
    """What a worker has to do. `round_`: which worker of the same target and seed it is."""

    target: Target
    seed: int
    round_: int
    until: float  # time.monotonic(), which all processes of a machine share
    current: Path
    most_bytes: int


def work(job: Job, reports: Connection) -> None:
    """Fuzz until the time is over. Sends each Failure that is new at once, and the Tally once a second."""
    current = CurrentInput(job.current, job.most_bytes)
    with job.target as target:
        Fuzzing(target, Random(f"{target.name} {job.seed} {job.round_}"), current, reports.send).run(job.until)


class Fuzzing:
    """Mutates inputs of a pool. An input whose outcome is new is added to it."""

    def __init__(
        self, target: Target, chance: Random, current: CurrentInput, report: Callable[[Failure | Tally], None]
    ) -> None:
        """`report`: is given what `work` sends."""
        self._target, self._chance, self._current, self._report = target, chance, current, report
        self._pool: list[bytes] = []
        self._valid: list[bytes] = []
        self._shapes: set[str] = set()
        self.tally = Tally()

    def run(self, until: float) -> None:
        """Check the corpus and the examples, and mutate them meanwhile and then; at least one input."""
        reported = time.monotonic()
        known = [*(each.read_bytes() for each in self._target.corpus()), *self._target.examples()]
        self._pool += [value for value in known if len(value) <= MOST_POOLED_BYTES]
        self._chance.shuffle(known)
        gc.freeze()
        while self.tally.inputs == 0 or time.monotonic() < until:
            if time.monotonic() - reported > REPORT_SECONDS:
                self._report(self.tally)
                reported = time.monotonic()
            if known and self._chance.random() < KNOWN:
                self._try(known.pop())
            else:
                is_of_valid = self._valid and self._chance.random() < OF_VALID
                self._try(self._target.mutated(self._valid if is_of_valid else self._pool, self._chance))
        self._report(self.tally)

    def _try(self, value: bytes) -> None:
        tally = self.tally
        tally.inputs += 1
        self._current.put(tally.inputs, value)
        outcome, failure, seconds = self._checked(value)
        tally.slowest_ms = max(tally.slowest_ms, seconds * 1000)
        if failure is not None:
            tally.failed[failure.place] += 1
            if tally.failed[failure.place] == 1:
                self._report(Failure(failure.place, failure.trace, self._shrunk(value, failure.place)))
            return
        if outcome.code == ACCEPTED:
            tally.accepted += 1
        else:
            tally.refused[outcome.code] += 1
        self._learn(value, outcome)

    def _learn(self, value: bytes, outcome: Outcome) -> None:
        """Add an input to the pool if it led somewhere new, and some of those that are valid in a new way."""
        is_new = outcome.shape not in self._shapes
        self._shapes.add(outcome.shape)
        self.tally.shapes = len(self._shapes)
        if len(value) > MOST_POOLED_BYTES:
            return
        if outcome.code == ACCEPTED and (is_new or self._chance.random() < VALID_AGAIN):
            _add(self._valid, value, self._chance)
        elif is_new:
            _add(self._pool, value, self._chance)

    def _checked(self, value: bytes) -> tuple[Outcome, Failure | None, float]:
        outcome, failure, took = _checked_once(self._target, value)
        if failure is None and took.is_too_long:
            _, failure, again = _checked_once(self._target, value)
            if failure is None and again.is_too_long:
                failure = Failure("takes too long", f"{took}, then {again}", value)
            took = min(took, again)
        return outcome, failure, took.seconds

    def _shrunk(self, value: bytes, place: str) -> bytes:
        """A shorter input that fails in the same place, as far as one is found in a moment."""
        until = time.monotonic() + SHRINK_SECONDS
        size = max(1, len(value) // 2)
        while size and time.monotonic() < until:
            at = 0
            while at < len(value) and time.monotonic() < until:
                shorter = value[:at] + value[at + size :]
                _, failure, _ = self._checked(shorter)
                if failure is not None and failure.place == place:
                    value = shorter
                else:
                    at += size
            size = size // 2
        return value


def _add(pool: list[bytes], value: bytes, chance: Random) -> None:
    """In place of another one, if the pool is full."""
    if len(pool) < MOST_POOLED:
        pool.append(value)
    else:
        pool[chance.randrange(MOST_POOLED)] = value


class Took(NamedTuple):
    """How long a check took: by the clock, and of the processor, in seconds."""

    seconds: float
    processor_seconds: float

    @property
    def is_too_long(self) -> bool:
        return self.processor_seconds > LIMIT_SECONDS or self.seconds > WAIT_SECONDS


def _checked_once(target: Target, value: bytes) -> tuple[Outcome, Failure | None, Took]:
    began, used = time.monotonic(), time.process_time()
    failure, outcome = None, Outcome()
    try:
        outcome = target.check(value)
    except Exception as error:  # noqa: BLE001 - the edge of the harness: to find whatever is raised is its purpose
        failure = Failure(_place(error), "".join(traceback.format_exception(error))[-4_000:], value)
    return outcome, failure, Took(time.monotonic() - began, time.process_time() - used)


def _place(error: Exception) -> str:
    """Where it was raised, and of a broken promise what was said: without values, as they differ between inputs."""
    where, _, said = place_of(error).partition(": ")
    return Outcome("", f"{where}: {said}").shape.strip() if isinstance(error, AssertionError) else where
