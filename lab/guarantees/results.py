"""What became of the numbers 0..n-1 that were sent: lost, duplicated, reordered. Exact, since each is known.

One line of the table: what was counted, what was expected, and whether that is the same.

The table of what was proved, from the JSON of it: the same on a terminal and on the page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple


class Tally(NamedTuple):
    """`lost`: numbers that are nowhere. `duplicated`: copies beyond the first. `reordered`: steps back."""

    lost: int
    duplicated: int
    reordered: int


def inversions(numbers: Iterable[int]) -> int:
    """How often the next number is less than the one before it."""
    return sum(after < before for before, after in pairwise(numbers))


def tally(sent: int, *seen: Sequence[int]) -> Tally:
    """Count what was seen, partition by partition (order means nothing between two), of the numbers 0..sent-1.

    ValueError if a number was seen that nobody sent: then nothing that was counted means anything.
    """
    distinct = {number for partition in seen for number in partition}
    if strange := distinct - set(range(sent)):
        raise ValueError(f"numbers that were never sent: {sorted(strange)[:5]}")
    copies = sum(len(partition) for partition in seen)
    return Tally(sent - len(distinct), copies - len(distinct), sum(inversions(partition) for partition in seen))


def together(tallies: Iterable[Tally]) -> Tally:
    """Of several topics or endpoints that were to get the same."""
    return Tally(*map(sum, zip(*tallies, strict=True)))


class Bound(NamedTuple):
    """The least and the most that a count may be; None: any."""

    least: int = 0
    most: int | None = None

    def holds(self, count: int) -> bool:
        """Whether it is within."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        """As a person writes it: 10, >= 1, <= 2, any."""
        if self.least == self.most:
            return f"{self.least:,}"
        least = [f">= {self.least:,}"] if self.least else []
        most = [f"<= {self.most:,}"] if self.most is not None else []
        return " and ".join([*least, *most]) or "any"


ANY = Bound()
ZERO = Bound(0, 0)


def exactly(count: int) -> Bound:
    """Neither less nor more."""
    return Bound(count, count)


def at_least(count: int) -> Bound:
    """So many or more."""
    return Bound(least=count)


def at_most(count: int) -> Bound:
    """So many or less."""
    return Bound(most=count)


class Verdict(StrEnum):
    """What a line comes to."""

    AS_EXPECTED = "as expected"
    DIFFERENT = "DIFFERENT"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Line:
    """A delivery mode under a fault. `sent`: records; `tally`: what became of them.

    `also`: further counts by name (`ok`, `log`). `expected`: a bound for each count that decides; what it does not name
    of lost, duplicated and reordered has to be 0. `printed`: times and rates, which decide nothing.
    """

    mode: str
    fault: str
    sent: int
    tally: Tally
    expected: Mapping[str, Bound] = field(default_factory=dict)
    also: Mapping[str, int] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)

    @property
    def counted(self) -> Mapping[str, int]:
        """Every count by its name."""
        return {**self.tally._asdict(), **self.also}

    @property
    def bounds(self) -> Mapping[str, Bound]:
        """Every bound by the name of its count."""
        return {**dict.fromkeys(Tally._fields, ZERO), **self.expected}

    @property
    def verdict(self) -> Verdict:
        """Whether every count is within its bound. KeyError if something is expected that was not counted."""
        as_expected = all(bound.holds(self.counted[name]) for name, bound in self.bounds.items())
        return Verdict.AS_EXPECTED if as_expected else Verdict.DIFFERENT

    def as_json(self) -> dict[str, Any]:
        """For `--json` and the page."""
        said = {name: str(bound) for name, bound in self.bounds.items()}
        first = {"mode": self.mode, "fault": self.fault, "sent": self.sent, **self.tally._asdict()}
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
    "counted besides",
    "verdict",
)
_TALLY = ("lost", "duplicated", "reordered")


def rows(experiment: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each line of an experiment; one that says why for an experiment that was skipped or failed."""
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
