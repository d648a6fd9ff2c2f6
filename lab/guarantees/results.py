"""Results of experiments: exact counts of lost, duplicated and reordered numbers, the expected bounds, and the table.

The table is made from the JSON of the results, so that the terminal and the documentation show the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple


class Counts(NamedTuple):
    """`lost`: missing numbers. `duplicated`: copies after the first. `reordered`: numbers below their predecessor."""

    lost: int
    duplicated: int
    reordered: int


def inversions(numbers: Iterable[int]) -> int:
    """Count the numbers that are less than their predecessor."""
    return sum(after < before for before, after in pairwise(numbers))


def count_numbers(sent: int, *seen: Sequence[int]) -> Counts:
    """Count what was received of the numbers 0..sent-1.

    Args:
        sent: How many numbers were sent.
        seen: The received numbers of each partition. Order between partitions has no meaning.

    Raises:
        ValueError: A number was received that was never sent, so no count would mean anything.
    """
    distinct = {number for partition in seen for number in partition}
    if strange := distinct - set(range(sent)):
        raise ValueError(f"numbers that were never sent: {sorted(strange)[:5]}")
    copies = sum(len(partition) for partition in seen)
    return Counts(sent - len(distinct), copies - len(distinct), sum(inversions(partition) for partition in seen))


def total_counts(counts: Iterable[Counts]) -> Counts:
    """Add up the counts of several topics or endpoints that should have received the same."""
    return Counts(*map(sum, zip(*counts, strict=True)))


class Bound(NamedTuple):
    """The least and the greatest allowed count; None: no upper bound."""

    least: int = 0
    most: int | None = None

    def holds(self, count: int) -> bool:
        """Whether the count is within the bound."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        """For example 10, >= 1, <= 2, any."""
        if self.least == self.most:
            return f"{self.least:,}"
        least = [f">= {self.least:,}"] if self.least else []
        most = [f"<= {self.most:,}"] if self.most is not None else []
        return " and ".join([*least, *most]) or "any"


ANY = Bound()
ZERO = Bound(0, 0)


def exactly(count: int) -> Bound:
    """Require this count."""
    return Bound(count, count)


def at_least(count: int) -> Bound:
    """Require this count or more."""
    return Bound(least=count)


def at_most(count: int) -> Bound:
    """Require this count or less."""
    return Bound(most=count)


class Verdict(StrEnum):
    """Verdict on a result or an experiment."""

    AS_EXPECTED = "as expected"
    DIFFERENT = "DIFFERENT"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """One delivery mode under one fault. `sent`: number of records; `counts`: what became of them.

    `also`: further counts by name (`ok`, `log`). `expected`: bounds that decide the verdict; lost, duplicated and
    reordered must be 0 unless named. `printed`: times and rates, which do not affect the verdict.
    """

    mode: str
    fault: str
    sent: int
    counts: Counts
    expected: Mapping[str, Bound] = field(default_factory=dict)
    also: Mapping[str, int] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)

    @property
    def counted(self) -> Mapping[str, int]:
        """Every count by name."""
        return {**self.counts._asdict(), **self.also}

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """Every bound by the name of its count, with the default of 0."""
        return {**dict.fromkeys(Counts._fields, ZERO), **self.expected}

    @property
    def verdict(self) -> Verdict:
        """Whether every count is within its bound. Raises KeyError if an expected count was not taken."""
        as_expected = all(bound.holds(self.counted[name]) for name, bound in self.bounds.items())
        return Verdict.AS_EXPECTED if as_expected else Verdict.DIFFERENT

    def as_json(self) -> dict[str, Any]:
        """For `--json` and the documentation."""
        said = {name: str(bound) for name, bound in self.bounds.items()}
        first = {"mode": self.mode, "fault": self.fault, "sent": self.sent, **self.counts._asdict()}
        rest = {"also": dict(self.also), "expected": said, "printed": dict(self.printed)}
        return {**first, **rest, "verdict": self.verdict.value}


COLUMNS = (
    "",
    "delivery mode",
    "injected fault",
    "sent",
    "lost",
    "duplicated",
    "reordered",
    "expected",
    "also counted",
    "verdict",
)
_TALLY = ("lost", "duplicated", "reordered")


def rows(experiment: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each result, or one that says why the experiment was skipped or failed."""
    if not experiment["lines"]:
        said = (experiment["id"], experiment["shows"], experiment["why"])
        return [(*said, *[""] * (len(COLUMNS) - len(said) - 1), experiment["verdict"])]
    return [(experiment["id"], *_cells(line)) for line in experiment["lines"]]


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    bounds = [f"{name} {bound}" for name, bound in line["expected"].items() if bound != str(ZERO)]
    besides = [f"{name} {count:,}" for name, count in line["also"].items()]
    besides += [f"{name} {text}" for name, text in line["printed"].items()]
    return (
        line["mode"],
        line["fault"],
        f"{line['sent']:,}",
        *(f"{line[name]:,}" for name in _TALLY),
        ", ".join(bounds) or "all 0",
        ", ".join(besides),
        line["verdict"],
    )
