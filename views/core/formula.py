"""Metric formulas: text over summed states, parsed once and evaluated exactly.

    (gross_sales - returns_value) / sale_tx

States are summed before the formula is applied, so `a / b` always means sum(a) / sum(b), never a mean of ratios.
Numbers are Fractions: nothing is rounded before it is printed. A denominator of zero makes the value null, never zero.

A formula consists of whole numbers, `+ - * /`, brackets, `abs(x)`, `least(x, y)` and terms:

    sale_tx                      a state of the metric's own view
    sales.sale_tx                a state of another view; may stand wherever a state may
    labor_ms(kind="worked")      of the cells with that dimension only; several values in brackets
    sku_receipts(sku=with_sku)   of the cells whose `sku` is the `with_sku` of the answer
    total(people_in)             of all cells, however the answer is split
    percentile(wait, 90)         of a Histogram
    bins(stay)                   every bin of a Histogram
    distinct(device)             of a CountDistinct, rounded
    inside(people_in, people_out), most_inside(...)    window by window from the start of the business day
    busiest(people_in, 40)       hours of the week
"""

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self, TypeGuard

from master_dataset.errors import DefinitionError
from views.core.aggregates import Histogram, Value, percentile
from views.core.sketch import estimate
from views.core.view import View

Item = Mapping[str, int | Fraction | None]
Listing = tuple[Item, ...]
FormulaValue = Fraction | Listing | None
"""The value of a formula or term: a number, a list of items, or None."""
PERCENT = 100

STORE = "store"
"""The view of facts about the store itself, known from the registry and not from events."""
OF_HISTOGRAM = ("percentile", "bins")
SEQUENTIAL = ("inside", "most_inside", "busiest")
"""Functions that need every window (or hour), not only sums."""
ARGUMENTS = {
    "percentile": (1, 1),
    "bins": (1, 0),
    "distinct": (1, 0),
    "inside": (2, 0),
    "most_inside": (2, 0),
    "busiest": (1, 1),
}
"""Function to the number of states it takes, and the number of whole numbers after them."""


@dataclass(frozen=True)
class Term:
    """`view`: empty for the metric's own. `where`: dimensions, each with the values that count.

    `renamed`: pairs of a dimension of the view, and the dimension of the answer whose values are looked for in it.
    """

    text: str
    view: str
    states: tuple[str, ...]
    function: str = ""
    number: int = 0
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    is_total: bool = False

    @classmethod
    def read(cls, node: ast.expr) -> Self | None:
        """The term that a node of the formula stands for, None if it is no term. DefinitionError if it is malformed."""
        text = ast.unparse(node).replace("'", '"')
        state = _state(node)
        if state is not None:
            return cls(text, state[0], (state[1],))
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name) and node.func.id == "total" and len(node.args) == 1 and not node.keywords:
            inner = cls.read(node.args[0])
            return replace(inner, text=text, is_total=True) if inner and inner.function not in SEQUENTIAL else None
        if isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS and not node.keywords:
            return cls._of_function(text, node.func.id, node.args)
        state = _state(node.func)
        if state is None or node.args or not node.keywords:
            return None
        said = [(each.arg or "", each.value) for each in node.keywords]
        where = tuple((name, _values(value)) for name, value in said if not isinstance(value, ast.Name))
        renamed = tuple((name, value.id) for name, value in said if isinstance(value, ast.Name))
        return cls(text, state[0], (state[1],), where=where, renamed=renamed)

    @classmethod
    def _of_function(cls, text: str, function: str, arguments: Sequence[ast.expr]) -> Self | None:
        states, numbers = ARGUMENTS[function]
        found = [_state(each) for each in arguments[:states]]
        rest = [each.value for each in arguments[states:] if isinstance(each, ast.Constant)]
        whole = [value for value in rest if type(value) is int]
        views = {state[0] for state in found if state}
        if len(arguments) != states + numbers or len(whole) != numbers or not all(found) or len(views) != 1:
            return None
        names = tuple(state[1] for state in found if state)
        return cls(text, views.pop(), names, function, number=whole[0] if whole else 0)

    @property
    def is_sequential(self) -> bool:
        """Whether it needs every window, not only sums."""
        return self.function in SEQUENTIAL

    @property
    def is_distribution(self) -> bool:
        """Whether its value is a distribution, which is None without any event, not 0."""
        return self.function in (*OF_HISTOGRAM, "busiest")

    def columns(self, view: View) -> tuple[str, ...]:
        """The state columns it needs. DefinitionError if the view lacks one of them, or a dimension."""
        names = self.states
        if self.function in OF_HISTOGRAM:
            names = tuple(f"{self.states[0]}_{suffix}" for suffix in self.histogram(view).columns)
        lacking = [name for name in names if name not in view.columns]
        lacking += [name for name, _ in (*self.where, *self.renamed) if name not in view.dimensions]
        if lacking:
            message = f"`{self.text}` needs `{lacking[0]}`, which the view `{view.name}` does not have."
            there = sorted({*view.columns, *view.metrics, *view.dimensions})
            raise DefinitionError(message, do=f"Use one of: {', '.join(there)}.")
        return names

    def value(self, view: View, values: Sequence[Value]) -> FormulaValue:
        """The value of the term, given the summed values of its columns."""
        if self.function in OF_HISTOGRAM:
            edges, counts = self.histogram(view).edges, [int(value or 0) for value in values[:-2]]
            if self.function == "bins":
                return bins(edges, counts)
            return percentile(edges, counts, values[-2], values[-1], self.number)
        [value] = values
        if self.function == "distinct":
            return Fraction(round(estimate(value))) if isinstance(value, str) else Fraction(0)
        return Fraction(value) if isinstance(value, int) else None

    def histogram(self, view: View) -> Histogram:
        """The Histogram that it is taken from. DefinitionError if its state is none."""
        found = view.metrics.get(self.states[0])
        if not isinstance(found, Histogram):
            message = f"`{self.text}`: `{self.states[0]}` is no Histogram of the view `{view.name}`."
            raise DefinitionError(message, do="Name one.")
        return found


def _state(node: ast.expr) -> tuple[str, str] | None:
    if isinstance(node, ast.Name):
        return "", node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, node.attr
    return None


def _values(node: ast.expr) -> tuple[str, ...]:
    listed = node.elts if isinstance(node, ast.Tuple) else [node]
    found = tuple(each.value for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str))
    if not found or len(found) != len(listed):
        raise DefinitionError(f"`{ast.unparse(node)}` is not a value of a dimension.", do='Write `kind="worked"`.')
    return found


_APPLY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CALL: dict[str, tuple[Callable[..., Fraction], int]] = {"abs": (abs, 1), "least": (min, 2)}
Evaluate = Callable[[Mapping[str, FormulaValue | int]], FormulaValue]
_ALLOWED = "Use terms, whole numbers, `+ - * /`, `abs`, `least` and brackets."


@dataclass(frozen=True)
class Formula:
    """Every term has a number as its value, or is the whole formula and has a list."""

    text: str

    def __post_init__(self) -> None:
        """Reject, at import, a formula that cannot be evaluated."""
        _ = self.terms

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            raise DefinitionError(f"The formula `{self.text}` cannot be read.", do=_ALLOWED) from error

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every term that a value is needed for, in order."""
        return tuple({term.text: term for term in _terms(self._tree)}.values())

    @cached_property
    def names(self) -> frozenset[str]:
        """The texts of the terms, by which their values are named."""
        return frozenset(term.text for term in self.terms)

    @cached_property
    def is_sum(self) -> bool:
        """Whether it is 0 without any event: it divides by no term, and none of its terms is a distribution."""
        divided = (node.right for node in ast.walk(self._tree) if _divides(node))
        divides = any(True for node in divided for _ in _terms(node))
        return not divides and not any(term.is_distribution for term in self.terms)

    def value(self, values: Mapping[str, FormulaValue | int]) -> FormulaValue:
        """The exact value. None if a denominator is zero or a term has no value. KeyError if a term is missing."""
        try:
            return self._evaluate(values)
        except ZeroDivisionError:
            return None

    def denominator(self, values: Mapping[str, FormulaValue | int]) -> FormulaValue:
        """The denominator; None if the formula is no quotient."""
        return self._divisor(values) if self._divisor else None

    @cached_property
    def _divisor(self) -> Evaluate | None:
        return _compiled(self._tree.right) if _divides(self._tree) else None

    @cached_property
    def _evaluate(self) -> Evaluate:
        return _compiled(self._tree)


def _divides(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _called(node: ast.expr) -> tuple[Callable[..., Fraction], Sequence[ast.expr]] | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _CALL:
        return None
    function, arity = _CALL[node.func.id]
    return (function, node.args) if len(node.args) == arity and not node.keywords else None


def _terms(node: ast.expr) -> Iterator[Term]:
    if isinstance(node, ast.BinOp) and type(node.op) in _APPLY:
        yield from _terms(node.left)
        yield from _terms(node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand)
    elif called := _called(node):
        for each in called[1]:
            yield from _terms(each)
    elif not (isinstance(node, ast.Constant) and type(node.value) is int):
        term = Term.read(node)
        if term is None:
            raise DefinitionError(f"`{ast.unparse(node)}` has no place in a formula.", do=_ALLOWED)
        yield term


def _compiled(node: ast.expr) -> Evaluate:
    if isinstance(node, ast.BinOp):
        return _calling(_APPLY[type(node.op)], [node.left, node.right])
    if isinstance(node, ast.UnaryOp):
        return _calling(operator.neg, [node.operand])
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        number = Fraction(node.value)
        return lambda _: number
    called = _called(node)
    if called:
        return _calling(*called)
    [term] = _terms(node)
    return lambda values: _known(values[term.text])


def _calling(function: Callable[..., Fraction], arguments: Sequence[ast.expr]) -> Evaluate:
    compiled = [_compiled(each) for each in arguments]
    return lambda values: _applied(function, *(each(values) for each in compiled))


def _known(found: FormulaValue | int) -> FormulaValue:
    return Fraction(found) if isinstance(found, int) else found


def _applied(function: Callable[..., Fraction], *values: FormulaValue) -> Fraction | None:
    known = [value for value in values if isinstance(value, Fraction)]
    if len(known) < len(values):
        return None
    return function(*known)


def bins(edges: Sequence[int], counts: Sequence[int]) -> Listing | None:
    """Every bin: `from` (inclusive), `to` (exclusive; None: open), count, share in percent. None if all are empty."""
    n = sum(counts)
    if not n:
        return None
    ends = (*edges[1:], None)
    return tuple(
        {"from": edge, "to": end, "count": count, "share": Fraction(PERCENT * count, n)}
        for edge, end, count in zip(edges, ends, counts, strict=True)
    )


def busiest(hours: Mapping[tuple[int, int], int], percent: int) -> Listing | None:
    """The fewest hours of the week that together hold that many percent, the fullest first; of equal ones the earlier.

    Args:
        hours: (ISO weekday, hour of the clock) to a count.
        percent: The share that the hours have to reach.

    Returns:
        Weekday, hour, count and share of each; None if all counts are 0.
    """
    n = sum(hours.values())
    if not n:
        return None
    found: list[Item] = []
    held = 0
    for (weekday, hour), count in sorted(hours.items(), key=lambda each: (-each[1], each[0])):
        if PERCENT * held >= percent * n:
            break
        held += count
        found.append({"weekday": weekday, "hour": hour, "count": count, "share": Fraction(PERCENT * count, n)})
    return tuple(found)


def inside(flows: Iterable[tuple[int, int]]) -> Iterator[int]:
    """The people inside after each window of a business day, which starts with nobody: o = max(0, o + in - out).

    The floor is ours: a camera that missed somebody coming in must not make later visitors vanish.
    """
    held = 0
    for people_in, people_out in flows:
        held = max(0, held + people_in - people_out)
        yield held
