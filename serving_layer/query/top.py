"""The top series of a group of stores, found by columns: whatever their number, only those that are shown are built.

The formula is computed exactly for all series at once, as quotients of whole numbers. Doubles only choose which series
can be among the first, with a margin far above their error; those are compared exactly.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from serving_layer.query.aggregate import Group
from serving_layer.query.day_columns import MOST, Booleans, Integers, MergedStates, NeedsWindowsError
from serving_layer.query.day_totals import MergedDays
from serving_layer.query.groups import GroupStates, order_of
from serving_layer.query.resolve import Ranking, ResolvedQuery
from views.core.formula import Formula, Term

_MARGIN = 1e-12
"""A quotient of whole numbers below 2^63 differs from its double by less than 1e-15 of it."""


@dataclass(frozen=True)
class TopSeries:
    """One group of stores, with the series that are shown.

    Attributes:
        shown: the group, with the states of these series alone.
        kept: their values of the dimensions, in order.
        rest: the group, with the states of all others as one series; None if there are none.
        whole: the group, with the states of all series as one.
    """

    shown: GroupStates
    kept: Sequence[Group]
    rest: GroupStates | None
    whole: GroupStates

    @property
    def points(self) -> int:
        """How many points its series have."""
        return (len(self.kept) + bool(self.rest)) * len(self.shown.points)


def top_series(query: ResolvedQuery, ranking: Ranking, merged: MergedDays) -> list[TopSeries] | None:
    """The top of each group; None if it has to be found series by series.

    Args:
        query: says which metric, and how series are split.
        ranking: how they are ordered and cut.
        merged: the states of all groups.
    """
    if (
        not query.by
        or ranking.top is None
        or ranking.sort not in ("value", "-value")
        or not _is_quotient(query, merged)
    ):
        return None
    try:
        return [_top(query, ranking, group, merged.states_of(number)) for number, group in enumerate(merged.groups)]
    except NeedsWindowsError:
        return None


def _is_quotient(query: ResolvedQuery, merged: MergedDays) -> bool:
    """Whether the value of a series is made of sums alone, of the series or of all series together."""
    for states in merged.states:
        sums = states.sums
        if sums.split not in ((), tuple(query.by)) or any(term.function for term in sums.terms):
            return False
        if any(sums.view.columns[name].by != "sum" for name in sums.columns):
            return False
    return True


def _top(query: ResolvedQuery, ranking: Ranking, group: GroupStates, states: Sequence[MergedStates]) -> TopSeries:
    split = [each for each in states if each.sums.split]
    series = split[0].series  # all are numbered alike
    present = np.zeros(len(series), bool)
    for each in split:
        present[each.place] = True
    value = _values(query, states, len(series))
    if not group.counted:
        value = replace(value, known=np.zeros(len(series), bool))
    kept = first_series(value, series, np.flatnonzero(present), ranking)
    is_kept = np.zeros(len(series), bool)
    is_kept[kept] = True
    one: Group = (None,) * len(query.by)
    shown = [each.where(is_kept[each.place]) if each.sums.split else each for each in states]
    rest = [each.where(~is_kept[each.place]).as_one_series(one) if each.sums.split else each for each in states]
    whole = [each.as_one_series(one) if each.sums.split else each for each in states]
    return TopSeries(
        _with_states(group, shown),
        [series[place] for place in kept],
        _with_states(group, rest) if len(kept) < np.count_nonzero(present) else None,
        _with_states(group, whole),
    )


def _with_states(group: GroupStates, states: Sequence[MergedStates]) -> GroupStates:
    """The group with these states, and everything else as it is."""
    sums = [replace(own, points=each.points()) for own, each in zip(group.now.sums, states, strict=True)]
    return replace(group, now=replace(group.now, sums=sums))


@dataclass(frozen=True)
class Exact:
    """A number per series: `over` / `under`, where it is `known`; `under` is above zero."""

    over: Integers
    under: Integers
    known: Booleans


@dataclass(frozen=True)
class Quotients:
    """Numbers while they are computed; `under` None: 1 everywhere. `known`: None: everywhere."""

    over: Integers
    under: Integers | None = None
    known: Booleans | None = None

    def __add__(self, other: "Quotients") -> "Quotients":
        """The sum."""
        over = _sum(_product(self.over, other.under), _product(other.over, self.under))
        return Quotients(over, _under(self, other), _both(self.known, other.known))

    def __neg__(self) -> "Quotients":
        """With the other sign."""
        return replace(self, over=-self.over)

    def __mul__(self, other: "Quotients") -> "Quotients":
        """The product."""
        return Quotients(_product(self.over, other.over), _under(self, other), _both(self.known, other.known))

    def inverse(self) -> "Quotients":
        """One divided by it; not known where it is zero."""
        sign, is_zero = np.sign(self.over), self.over == 0
        under = np.where(is_zero, 1, np.abs(self.over))
        ones = np.ones(1, np.int64) if self.under is None else self.under
        return Quotients(sign * ones, under, _both(self.known, ~is_zero))

    def __abs__(self) -> "Quotients":
        """Without sign."""
        return replace(self, over=np.abs(self.over))

    def least(self, other: "Quotients") -> "Quotients":
        """The lesser of both."""
        mine, theirs = _product(self.over, other.under), _product(other.over, self.under)
        return Quotients(np.minimum(mine, theirs), _under(self, other), _both(self.known, other.known))


def _product(one: Integers, other: Integers | None) -> Integers:
    if other is None:
        return one
    if _most(one) * _most(other) >= MOST:
        raise NeedsWindowsError
    return one * other


def _sum(one: Integers, other: Integers) -> Integers:
    if _most(one) + _most(other) >= MOST:
        raise NeedsWindowsError
    return one + other


def _under(one: Quotients, other: Quotients) -> Integers | None:
    return other.under if one.under is None else _product(one.under, other.under)


def _both(one: Booleans | None, other: Booleans | None) -> Booleans | None:
    return other if one is None else one if other is None else one & other


def _most(numbers: Integers) -> int:
    return max(int(numbers.max()), -int(numbers.min())) if len(numbers) else 0


def _values(query: ResolvedQuery, states: Sequence[MergedStates], size: int) -> Exact:
    """The value of the metric for each of the `size` series, over all labels; percentages as they are without 100."""
    terms: dict[str, Integers] = {}
    for each in states:
        own = size if each.sums.split else 1
        for term in each.sums.terms:
            [column] = (each.columns[each.sums.columns.index(name)] for name in term.columns(each.sums.view))
            terms[term.text] = column.merged(each.place, own).values
    found = quotients(query.metric.formula, terms, size)
    if query.metric.only is None:
        return found
    only = quotients(query.metric.only.above_zero, terms, size)
    return replace(found, known=found.known & only.known & (only.over > 0))


def quotients(formula: Formula, terms: Mapping[str, Integers], size: int) -> Exact:
    """A formula computed for `size` series. `terms`: by their text, one number per series or one for all.

    Raises:
        NeedsWindowsError: a number might need more than 64 bits, or a term is missing.
    """
    found = _computed(ast.parse(formula.text, mode="eval").body, terms)
    under = np.ones(1, np.int64) if found.under is None else found.under
    known = np.ones(size, bool) if found.known is None else found.known & np.ones(size, bool)
    return Exact(np.broadcast_to(found.over, size), np.broadcast_to(under, size), known)


def _computed(node: ast.expr, terms: Mapping[str, Integers]) -> Quotients:
    """As `Formula.value` computes it; NeedsWindowsError if whole numbers might need more than 64 bits."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_computed(node.left, terms), _computed(node.right, terms))
    if isinstance(node, ast.UnaryOp):
        return -_computed(node.operand, terms)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Quotients(np.array([node.value], np.int64))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("abs", "least"):
        arguments = [_computed(each, terms) for each in node.args]
        return abs(arguments[0]) if node.func.id == "abs" else arguments[0].least(arguments[1])
    term = Term.read(node)
    if term is None or term.text not in terms:
        raise NeedsWindowsError
    return Quotients(terms[term.text])


_OPERATORS: Mapping[type[ast.operator], Callable[[Quotients, Quotients], Quotients]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one + -other,
    ast.Mult: lambda one, other: one * other,
    ast.Div: lambda one, other: one * other.inverse(),
}


def first_series(value: Exact, series: Sequence[Group], places: Integers, ranking: Ranking) -> list[int]:
    """The places of the first series: those without a value come last, and equal ones by name."""
    top, sign = ranking.top or 0, -1 if ranking.sort == "-value" else 1
    known, unknown = places[value.known[places]], places[~value.known[places]]
    if len(known) > top:
        about = sign * value.over[known] / value.under[known]
        last = np.partition(about, top - 1)[top - 1]
        known = known[about <= last + abs(last) * _MARGIN]

    def exact(place: int) -> tuple[Fraction, tuple[tuple[bool, str], ...]]:
        return Fraction(sign * int(value.over[place]), int(value.under[place])), order_of(series[place])

    found = sorted(known.tolist(), key=exact)[:top]
    if len(found) < top:
        found += sorted(unknown.tolist(), key=lambda place: order_of(series[place]))[: top - len(found)]
    return found
