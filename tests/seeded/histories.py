"""Checks by the model: histories of the whole lambda, each answer compared with a naive recompute."""

from collections.abc import Callable, Iterable

from tests.model.history import lived, steps_of
from tests.model.rules import Rule
from tests.model.steps import AIMED, Scene

MOST = 400


def never_differ(most: int, scene: Scene = ()) -> Callable[[], None]:
    """No history differs, of so many. `scene`: is played somewhere in each."""

    def check() -> None:
        _look(range(most), None, scene)

    return check


def without(rule: Rule) -> Callable[[], None]:
    """No history differs although the rule is taken away, of which the bug is the opposite."""

    def check() -> None:
        _look(range(MOST), rule, AIMED.get(rule, ()))

    return check


def _look(seeds: Iterable[int], rule: Rule | None, scene: Scene) -> None:
    for seed in seeds:
        ended = lived(steps_of(seed, scene), rule)
        assert ended.difference is None, f"seed {seed}: {ended.difference}"
