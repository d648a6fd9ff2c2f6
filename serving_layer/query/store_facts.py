"""Facts about stores that a formula may take: what the registry says of them, and how much time of theirs counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from master_dataset.registry.stores import Store
from serving_layer.query.aggregate import PeriodStates
from views.core.formula import FormulaValue
from views.core.local_time import STEP, Span

FLOOR, TARGET = "store.floor_m2", "store.conversion_target"
OPEN_HOURS, SELECTED, EXPECTED = "store.open_hours", "store.selected_ms", "store.expected_ms"
FLOOR_UNKNOWN, TARGETS_DIFFER = "floor_unknown", "targets_differ"
WINDOWS_OF_AN_HOUR = 3600 // STEP
STEP_MS = STEP * 1000


class StoreFacts:
    """The facts of one store in one period."""

    def __init__(self, store: Store, states: PeriodStates, names: frozenset[str]) -> None:
        """`names`: the facts that the formula needs; nothing else is counted."""
        period, self._names = states.period, names
        said = {FLOOR: store.floor_m2, TARGET: store.conversion_target}
        self._constant = {name: _fraction(number) for name, number in said.items() if name in names}
        begun = Span(period.timeline.start, min(period.timeline.end, period.begun))
        counts_open = OPEN_HOURS in names and period.only is not None
        self._open = period.counts(begun) if counts_open else {}
        self._selected = period.counts(begun) if SELECTED in names else {}
        self._expected = states.coverage.expected_ms(period) if EXPECTED in names else {}

    @property
    def flags(self) -> tuple[str, ...]:
        """Why a fact is not known."""
        return (FLOOR_UNKNOWN,) if self._constant.get(FLOOR, 0) is None else ()

    def at(self, number: int) -> dict[str, FormulaValue]:
        """The facts at one point."""
        return self._of(self._open.get(number, 0), self._selected.get(number, 0), self._expected.get(number, 0))

    def whole(self) -> dict[str, FormulaValue]:
        """The facts of the period as a whole."""
        return self._of(*(sum(counted.values()) for counted in (self._open, self._selected, self._expected)))

    def _of(self, windows_open: int, selected: int, expected: int) -> dict[str, FormulaValue]:
        counted = {
            OPEN_HOURS: Fraction(windows_open, WINDOWS_OF_AN_HOUR),
            SELECTED: Fraction(selected * STEP_MS),
            EXPECTED: Fraction(expected),
        }
        return {name: value for name, value in (self._constant | counted).items() if name in self._names}


@dataclass
class SummedFacts:
    """Facts of several stores: added, but for the conversion target, which they have to share.

    Attributes:
        sums: of the facts that every store has.
        lacking: those that some store does not have.
        targets: the conversion targets; None is one of them if a store has none.
        floors: of stores that are in several groups, by their ids: they count once where groups are merged.
    """

    sums: dict[str, Fraction] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)
    targets: set[Fraction | None] = field(default_factory=set)
    floors: dict[str, Fraction] = field(default_factory=dict)

    def add(self, facts: Mapping[str, FormulaValue], moved: str | None = None) -> None:
        """Add the facts of one store. `moved`: its id, if it is in several groups."""
        for name, value in facts.items():
            number = value if isinstance(value, Fraction) else None
            if name == TARGET:
                self.targets.add(number)
            elif number is None:
                self.lacking.add(name)
            elif name == FLOOR and moved is not None:
                self.floors[moved] = number
            else:
                self.sums[name] = self.sums.get(name, Fraction(0)) + number

    def merge(self, other: "SummedFacts") -> None:
        """Add the facts of other stores."""
        self.lacking |= other.lacking
        self.targets |= other.targets
        self.floors |= other.floors
        for name, number in other.sums.items():
            self.sums[name] = self.sums.get(name, Fraction(0)) + number

    def values(self, names: frozenset[str]) -> dict[str, FormulaValue]:
        """The facts that a formula needs; None where they are not known."""
        found: dict[str, FormulaValue] = {
            name: None if name in self.lacking else self.sums.get(name, Fraction(0)) for name in names - {TARGET}
        }
        floor = found.get(FLOOR)
        if isinstance(floor, Fraction):
            found[FLOOR] = floor + sum(self.floors.values())
        if TARGET in names:
            found[TARGET] = next(iter(self.targets)) if len(self.targets) == 1 else None
        return found

    @property
    def flags(self) -> tuple[str, ...]:
        """Why a fact is not known."""
        found = (FLOOR_UNKNOWN,) if FLOOR in self.lacking else ()
        return (*found, TARGETS_DIFFER) if len(self.targets) > 1 else found


def _fraction(number: Decimal | int | None) -> Fraction | None:
    return None if number is None else Fraction(str(number))
