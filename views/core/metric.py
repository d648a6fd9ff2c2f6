"""A metric: a name that people use, a formula over states of views, and how its value is printed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

from master_dataset.errors import DefinitionError
from views.core.formula import STORE, Formula, FormulaValue, Term, busiest, inside
from views.core.view import View

Unit = Literal["n", "money", "percent", "ratio", "ms", "hours", "years", "celsius", "mm", "list"]
"""`n` whole pieces, `money` the currency's major unit, `percent` 100 x the fraction, `ratio` the fraction itself."""

STORE_FACTS = frozenset(
    f"{STORE}.{name}" for name in ("floor_m2", "open_hours", "selected_ms", "expected_ms", "conversion_target")
)
OF_ANSWERS = ("open_only", "estimate", "device_based")
"""Flags that hold for every value of the metric, and so for the answer as a whole."""
MASKED = "masked"
"""The flag of a value that is null because sensors worked for less than half of the time."""
FEW = 30
"""Minimum denominator of a share; below it, a share says little."""
ALL = 100


class Only(NamedTuple):
    """The value is null, and the point carries `flag`, if any, unless the sum `above_zero` is above zero."""

    above_zero: Formula
    flag: str = ""


class Caution(NamedTuple):
    """The point carries `flag` if the sum `above_zero` is above zero, and `unless` is given and is zero."""

    above_zero: Formula
    flag: str
    unless: Formula | None = None


@dataclass(frozen=True)
class Metric:
    """`view`: where terms without a prefix are found. `adds_money`: of several currencies there is no such number.

    `flags`: what a point or the answer may carry beside the value; none but `masked` changes the value. `grains`: those
    that it has a meaning at, the first if none is asked for; all if empty. `whole_days`: the range is widened to whole
    business days. `is_split`: whether it may be split by dimensions. `needs_by`: dimensions that it has to be split by,
    because a sum over them means nothing. `note`: where the formula is from, and which of
    several usual ones it is. `example`: what the terms of the formula are in a small case, for the reference.
    """

    id: str
    name: str
    formula: Formula
    unit: Unit
    view: str
    flags: tuple[str, ...] = ()
    adds_money: bool = False
    only: Only | None = None
    cautions: tuple[Caution, ...] = ()
    grains: tuple[str, ...] = ()
    whole_days: bool = False
    is_split: bool = True
    needs_by: tuple[str, ...] = ()
    note: str = ""
    example: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Reject unknown store facts and undeclared flags."""
        unknown = {f"{STORE}.{term.states[0]}" for term in self._terms() if term.view == STORE} - STORE_FACTS
        if unknown:
            message = f"The metric `{self.id}` uses `{min(unknown)}`, which is not a fact of a store."
            raise DefinitionError(message, do=f"Use one of: {', '.join(sorted(STORE_FACTS))}.")
        lacking = {name for term in self._terms() for _, name in term.renamed} - {*self.needs_by}
        if lacking:
            message = f"The metric `{self.id}` looks for values of `{min(lacking)}`, by which it need not be split."
            raise DefinitionError(message, do="Add it to `needs_by`.")
        said = {each.flag for each in self.cautions} | ({self.only.flag} if self.only else set())
        if not said - {""} <= set(self.flags):
            raise DefinitionError(f"The metric `{self.id}` does not declare all its flags.", do="Add it to `flags`.")

    @cached_property
    def terms(self) -> Mapping[str, Term]:
        """Every term whose value cells have to give, by its text."""
        return {term.text: term for term in self._terms() if term.view != STORE}

    @cached_property
    def facts(self) -> frozenset[str]:
        """Every fact of the store that is needed."""
        return frozenset(term.text for term in self._terms() if term.view == STORE)

    @cached_property
    def views(self) -> tuple[str, ...]:
        """Every view that is read, the metric's own first."""
        others = {self.view_of(term) for term in self.terms.values()} - {self.view}
        return (self.view, *sorted(others))

    def view_of(self, term: Term) -> str:
        """The name of the view that a term is found in."""
        return term.view or self.view

    @property
    def is_of_money(self) -> bool:
        """Whether money is added for it, even if the result is a percentage."""
        return self.adds_money or self.unit == "money"

    @property
    def is_open_only(self) -> bool:
        """Whether only windows inside the opening hours count."""
        return "open_only" in self.flags

    def value(self, values: Mapping[str, FormulaValue | int]) -> tuple[FormulaValue, tuple[str, ...]]:
        """The exact value (money in minor units, percent already times 100) and the flags that hold for it."""
        if self.only and not _is_above_zero(self.only.above_zero, values):
            return None, (self.only.flag,) if self.only.flag else ()
        value = self.formula.value(values)
        if isinstance(value, Fraction) and self.unit == "percent":
            value *= ALL
        return value, tuple(self._flags(value, values))

    def _flags(self, value: FormulaValue, values: Mapping[str, FormulaValue | int]) -> Iterator[str]:
        for each in self.cautions:
            if _is_above_zero(each.above_zero, values) and not (each.unless and _is_above_zero(each.unless, values)):
                yield each.flag
        if not isinstance(value, Fraction):
            return
        if "above_100" in self.flags and value > ALL:
            yield "above_100"
        if "below_zero" in self.flags and value < 0:
            yield "below_zero"
        if "small_sample" in self.flags:
            few = self.formula.denominator(values)
            if isinstance(few, Fraction) and few < FEW:
                yield "small_sample"

    def _terms(self) -> Iterator[Term]:
        yield from self.formula.terms
        if self.only:
            yield from self.only.above_zero.terms
        for each in self.cautions:
            yield from each.above_zero.terms
            yield from each.unless.terms if each.unless else ()


def _is_above_zero(formula: Formula, values: Mapping[str, FormulaValue | int]) -> bool:
    found = formula.value(values)
    return isinstance(found, Fraction) and found > 0


def worked(metric: Metric, views: Mapping[str, View]) -> FormulaValue:
    """The value of `Metric.example`. Terms that only flags need are 0 there.

    Numbers stand for themselves, and for an estimate; several numbers for what a Histogram holds, pairs for the people
    in and out of windows in order, and hours of the week for their counts.
    """
    values = dict.fromkeys([*metric.terms, *metric.facts], Fraction(0)) | {
        text: _given(metric, views, text, given) for text, given in metric.example.items()
    }
    return metric.value(values)[0]


def of_nothing(metric: Metric, views: Mapping[str, View]) -> FormulaValue:
    """The value without any event, where the store has the source: 0 or none."""
    values: dict[str, FormulaValue] = dict.fromkeys(metric.facts, Fraction(0))
    for text, term in metric.terms.items():
        view = views[metric.view_of(term)]
        empty = [0 if view.columns[name].by == "sum" else None for name in term.columns(view)]
        nothing = {} if term.is_distribution else [(0, 0)]
        values[text] = _ordered(term, nothing) if term.is_sequential else term.value(view, empty)
    return metric.value(values)[0]


def _given(metric: Metric, views: Mapping[str, View], text: str, given: Any) -> FormulaValue:  # noqa: ANN401 - see `worked`
    if isinstance(given, int):
        return Fraction(given)
    term = metric.terms[text]
    if term.is_sequential:
        return _ordered(term, given)
    view = views[metric.view_of(term)]
    edges = term.histogram(view).edges
    places = [max(place for place, edge in enumerate(edges) if not place or edge <= value) for value in given]
    return term.value(view, [*(places.count(place) for place in range(len(edges))), min(given), max(given)])


def _ordered(term: Term, given: Any) -> FormulaValue:  # noqa: ANN401 - see `worked`
    if term.function == "busiest":
        return busiest(given, term.number)
    held = list(inside(given))
    return Fraction(held[-1] if term.function == "inside" else max(held))
