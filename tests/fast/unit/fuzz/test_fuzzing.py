"""Fuzzing finds exceptions, broken promises, and inputs that take long, hang, end the process or fill the memory."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from tests.system.fuzz import target as target_module
from tests.system.fuzz import worker
from tests.system.fuzz.mutations import MOST_BYTES, MUTATIONS, Mutation
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target
from tests.system.fuzz.watchdog import WatchLimits, fuzz
from tests.system.fuzz.worker import CurrentInput, Failure, Fuzzing, Tally

SHORT = WatchLimits(hangs_seconds=3.0, input_bytes=1_000)
SMALL = WatchLimits(memory_bytes=512 * 1024**2, input_bytes=1_000)


class Scripted(Target):
    """Does what the first word of an input says."""

    name: ClassVar[str] = "scripted"

    def __init__(self, *words: bytes) -> None:
        self._words = words

    def examples(self) -> Sequence[bytes]:
        return self._words

    def mutated(self, pool: Sequence[bytes], chance: Random) -> bytes:
        return chance.choice(pool) + b" again"

    def check(self, value: bytes) -> Outcome:
        match value.split(b" ")[0]:
            case b"raise":
                raise KeyError(value)
            case b"broken":
                raise PromiseBrokenError(f"status 500 after {len(value)}")
            case b"hang":
                time.sleep(60)
            case b"leave":
                os._exit(7)
            case b"grow":
                held = b"x" * (700 * 1024**2)
                time.sleep(60 + len(held) % 2)
            case b"refuse":
                return Outcome("refused", "a message")
        return Outcome()


def run(target: Target, tmp_path: Path) -> tuple[Tally, list[Failure]]:
    """Fuzz in this process for a moment."""
    path = tmp_path / "current"
    path.write_bytes(bytes(CurrentInput.size_for(100)))
    reports: list[Failure | Tally] = []
    fuzzing = Fuzzing(target, Random("a test"), CurrentInput(path, 100), reports.append)
    fuzzing.run(time.monotonic() + 0.3)
    return fuzzing.tally, [each for each in reports if isinstance(each, Failure)]


def test_outcomes_are_counted_by_code(tmp_path: Path) -> None:
    tally, failures = run(Scripted(b"accept", b"refuse"), tmp_path)

    assert failures == []
    assert tally.accepted > 0
    assert tally.refused["refused"] > 0
    assert tally.inputs == tally.accepted + tally.refused.total()


@pytest.mark.parametrize(("word", "place"), [(b"raise", "KeyError at "), (b"broken", "status _ after _")])
def test_what_is_raised_is_reported_once_by_its_place_and_shrunk(word: bytes, place: str, tmp_path: Path) -> None:
    tally, [failure] = run(Scripted(word + b" a b c"), tmp_path)

    assert place in failure.place
    assert tally.failed[failure.place] == tally.inputs > 1
    assert failure.value == word


def test_an_input_that_takes_long_twice_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIMIT_SECONDS", -1.0)

    _, [failure] = run(Scripted(b"accept"), tmp_path)

    assert failure.place == "takes too long"


@pytest.mark.parametrize(
    ("word", "limits", "why"),
    [
        (b"hang", SHORT, "no result after 3 s"),
        (b"leave", SMALL, "the process ended with 7"),
        (b"grow", SMALL, "more than 512 MB"),
    ],
)
def test_a_process_that_no_longer_answers_is_replaced_and_its_input_is_known(
    word: bytes, limits: WatchLimits, why: str
) -> None:
    found = fuzz(Scripted(word), 1, 0.1, limits=limits)

    [failure] = found.failures.values()
    assert why in failure.place
    assert failure.value.startswith(word)
    assert found.tally.inputs >= 1


def test_an_input_is_kept_under_the_hash_of_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "CORPUS", tmp_path)
    target = Scripted()

    assert target.corpus() == []
    paths = {target.keep(value) for value in (b"one", b"two", b"one")}

    assert target.corpus() == sorted(paths)
    assert {path.read_bytes() for path in paths} == {b"one", b"two"}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.__name__ for each in MUTATIONS])
def test_every_mutation_takes_any_input(mutation: Mutation) -> None:
    chance = Random("a test")
    values = [b"", b"a", b"select 1", b'{"a": [1, 2.5, "\xff"]}', b"\n\n", bytes(range(256))]

    made = {mutation(chance.choice(values), values, chance, (b"word",)) for _ in range(300)}

    assert len(made) > 5
    assert max(map(len, made)) < MOST_BYTES
