"""A bug, the check that has to catch it, and whether it does."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum

from tests.seeded.line import Change

Check = Callable[[], None]
"""Raises AssertionError if an invariant does not hold."""


class Kind(StrEnum):
    """What catches it."""

    MODEL = "model"
    SIMULATION = "simulation"
    LAW = "law"
    WORLD = "World"
    SPARK = "Spark"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class Bug:
    """`says`: what is done wrong. `caught_by`: the invariant that does not hold then; of an impossible one, why it is.

    `check` is None where the bug needs more than this process (`where` is its test), or is impossible. Without
    `changes` the check itself takes a rule away from the model, which `tests/model` tries with all its rules.
    """

    name: str
    says: str
    kind: Kind
    caught_by: str
    check: Check | None = None
    changes: tuple[Change, ...] = ()
    where: str = "tests/seeded"

    @contextmanager
    def on(self) -> Iterator[None]:
        """The product has it. Nothing else may run in this process meanwhile."""
        with ExitStack() as stack:
            for change in self.changes:
                stack.enter_context(change.on())
            yield

    def is_caught(self) -> bool:
        """Whether its check fails while it is on. Anything but a broken invariant is raised."""
        assert self.check is not None
        with self.on():
            return not holds(self.check)


def holds(check: Check) -> bool:
    """Whether the check passes."""
    try:
        check()
    except AssertionError:
        return False
    return True
