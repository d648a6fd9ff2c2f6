"""Many histories: how many differ, and how many it takes until a rule that was taken away is missed."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.fast.model.history import lived, steps_of
from tests.fast.model.rules import Rule
from tests.fast.model.steps import AIMED

BY_ARROW_EVERY = 50
"""So often a history is added up by Arrow."""


class Counted(NamedTuple):
    """Of some histories; `different`: the seeds of those that ended with a difference."""

    histories: int = 0
    steps: int = 0
    comparisons: int = 0
    different: tuple[int, ...] = ()

    def plus(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(*(mine + its for mine, its in zip(self, other, strict=True)))  # type: ignore[operator]


def run(seeds: Iterable[int]) -> Counted:
    """Let these histories happen, with all rules."""
    counted = Counted()
    for seed in seeds:
        ended = lived(steps_of(seed), by_arrow=seed % BY_ARROW_EVERY == 0)
        counted = counted.plus(Counted(1, ended.steps, ended.comparisons, (seed,) if ended.difference else ()))
    return counted


class Missed(NamedTuple):
    """`histories`: until the first difference, that one included; None if there was none. `difference`: which."""

    rule: Rule
    histories: int | None
    difference: str


def missed(rule: Rule, first: int, most: int, *, aimed: bool = False) -> Missed:
    """Take the rule away, and let histories happen until one differs. `aimed`: at what chance alone rarely makes."""
    scene = AIMED.get(rule, ()) if aimed else ()
    for number, seed in enumerate(range(first, first + most), 1):
        ended = lived(steps_of(seed, scene), rule)
        if ended.difference:
            return Missed(rule, number, ended.difference)
    return Missed(rule, None, "")
