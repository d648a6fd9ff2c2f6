"""A metric's formula: text over summed states, read once, evaluated exactly.

    (gross_sales - returns_value) / sale_tx

Sums are made before the formula is applied, so `a / b` always means sum(a) / sum(b), never a mean of ratios. Numbers
are Fractions: nothing is rounded before it is printed. A denominator of zero makes the whole value null, never zero.
What may stand for a number is said in `views.core.term`; beside it there are `abs(x)` and `least(x, y)`.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeGuard

from master_dataset.errors import DefinitionError
from views.core.listing import Worth
from views.core.term import Term

_APPLY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CALL: dict[str, tuple[Callable[..., Fraction], int]] = {"abs": (abs, 1), "least": (min, 2)}
Evaluate = Callable[[Mapping[str, Worth | int]], Worth]
_ALLOWED = "Use terms, whole numbers, `+ - * /`, `abs`, `least` and brackets."


@dataclass(frozen=True)
class Formula:
    """Every term is worth a number, or is the whole formula and worth a list."""

    text: str

    def __post_init__(self) -> None:
        """Refuse at import what could not be evaluated."""
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
        """The texts of the terms: what values are named by."""
        return frozenset(term.text for term in self.terms)

    @cached_property
    def is_sum(self) -> bool:
        """Whether of nothing it is 0: it divides by no term, and none of its terms says how things are spread."""
        divided = (node.right for node in ast.walk(self._tree) if _divides(node))
        divides = any(True for node in divided for _ in _terms(node))
        return not divides and not any(term.is_spread for term in self.terms)

    def value(self, worth: Mapping[str, Worth | int]) -> Worth:
        """The exact value. None if a denominator is zero or a term has no value. KeyError if a term is missing."""
        try:
            return self._evaluate(worth)
        except ZeroDivisionError:
            return None

    def denominator(self, worth: Mapping[str, Worth | int]) -> Worth:
        """What the whole is divided by; None if it is no quotient."""
        return self._divisor(worth) if self._divisor else None

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
    function, wanted = _CALL[node.func.id]
    return (function, node.args) if len(node.args) == wanted and not node.keywords else None


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
    return lambda worth: _known(worth[term.text])


def _calling(function: Callable[..., Fraction], arguments: Sequence[ast.expr]) -> Evaluate:
    of = [_compiled(each) for each in arguments]
    return lambda worth: _applied(function, *(each(worth) for each in of))


def _known(found: Worth | int) -> Worth:
    return Fraction(found) if isinstance(found, int) else found


def _applied(function: Callable[..., Fraction], *values: Worth) -> Fraction | None:
    known = [value for value in values if isinstance(value, Fraction)]
    if len(known) < len(values):
        return None
    return function(*known)
