"""One line of the table: what was counted, what was expected, and whether that is the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from lab.guarantees.counting import Tally


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
