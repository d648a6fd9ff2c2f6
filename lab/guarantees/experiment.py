"""What an experiment is: one concept, the fault that tries it, and the lines that come of it."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from lab.guarantees import experiments
from lab.guarantees.line import Line

if TYPE_CHECKING:
    from lab.guarantees.ground import Ground


class Need(StrEnum):
    """What an experiment does to its broker."""

    BROKER = "a broker"
    TAP = "a tap before the broker, to harm single requests"
    NODES = "three nodes that it may kill"


@dataclass(frozen=True)
class Experiment:
    """One file of `experiments`: what it shows, what it needs, and how it is run."""

    id: str
    shows: str
    run: Callable[["Ground"], Sequence[Line]]
    need: Need = Need.BROKER


@cache
def registered() -> Mapping[str, Experiment]:
    """Id to experiment, in the order of the ids."""
    names = sorted(each.name for each in pkgutil.iter_modules(experiments.__path__))
    found = [importlib.import_module(f"{experiments.__name__}.{name}").EXPERIMENT for name in names]
    return {each.id: each for each in sorted(found, key=lambda each: each.id)}
