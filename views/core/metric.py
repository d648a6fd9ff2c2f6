"""A metric: a name that people use, a formula over states of views, and how its value is printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

from master_dataset.errors import DefinitionError
from views.core.formula import Formula

Unit = Literal["n", "money", "percent", "ratio"]
"""`n` whole pieces, `money` the currency's major unit, `percent` 100 x the fraction, `ratio` the fraction itself."""

STORE = "store"
"""The prefix of facts about the store itself, known from the registry and not from events."""
STORE_FACTS = frozenset({"store.floor_m2", "store.open_hours"})


class Only(NamedTuple):
    """The value is null, and the point carries `flag`, unless the sum `above_zero` is above zero."""

    above_zero: Formula
    flag: str


@dataclass(frozen=True)
class Metric:
    """`view`: where names without a prefix are found. `adds_money`: of several currencies there is no such number.

    `flags`: what a point or the answer may carry beside the value; a flag never changes the value.
    """

    id: str
    name: str
    formula: Formula
    unit: Unit
    view: str
    flags: tuple[str, ...] = ()
    adds_money: bool = False
    only: Only | None = None

    def __post_init__(self) -> None:
        """Refuse a store fact that nobody knows."""
        unknown = {name for name in self.formula.names if name.startswith(f"{STORE}.")} - STORE_FACTS
        if unknown:
            message = f"The metric `{self.id}` uses `{min(unknown)}`, which is no fact of a store."
            raise DefinitionError(message, do=f"There is: {', '.join(sorted(STORE_FACTS))}.")

    @cached_property
    def states(self) -> Mapping[str, tuple[str, str]]:
        """Every state needed: the name as written to (view, state)."""
        names = self.formula.names | (self.only.above_zero.names if self.only else frozenset())
        return {name: self._place(name) for name in sorted(names - STORE_FACTS)}

    @cached_property
    def views(self) -> tuple[str, ...]:
        """Every view that is read, the metric's own first."""
        others = {view for view, _ in self.states.values()} - {self.view}
        return (self.view, *sorted(others))

    @property
    def is_of_money(self) -> bool:
        """Whether money is added for it, even if the result is a percentage."""
        return self.adds_money or self.unit == "money"

    @property
    def is_open_only(self) -> bool:
        """Whether only windows inside the opening hours count."""
        return "open_only" in self.flags

    def value(self, states: Mapping[str, int | Fraction | None]) -> tuple[Fraction | None, tuple[str, ...]]:
        """The exact value (money in minor units, percent already times 100) and the flags that hold for it."""
        if self.only:
            limit = self.only.above_zero.value(states)
            if limit is None or limit <= 0:
                return None, (self.only.flag,)
        value = self.formula.value(states)
        if value is not None and self.unit == "percent":
            value *= 100
            if "above_100" in self.flags and value > 100:  # noqa: PLR2004 - per cent
                return value, ("above_100",)
        return value, ()

    def _place(self, name: str) -> tuple[str, str]:
        view, _, state = name.rpartition(".")
        return (view or self.view, state)
