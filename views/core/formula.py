"""A metric's formula: text over summed states, read once, evaluated exactly.

    (gross_sales - returns_value) / sale_tx

Sums are made before the formula is applied, so `a / b` always means sum(a) / sum(b), never a mean of ratios. Numbers
are Fractions: nothing is rounded before it is printed. A denominator of zero makes the whole value null, never zero.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from master_dataset.errors import DefinitionError

_APPLY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Formula:
    """A name is a state of the metric's own view (`sale_tx`), of another (`sales.sale_tx`), or `store.floor_m2`."""

    text: str

    def __post_init__(self) -> None:
        """Refuse at import what could not be evaluated."""
        _ = self.names

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            message = f"The formula `{self.text}` cannot be read."
            raise DefinitionError(message, do="Use names, whole numbers, `+ - * /` and brackets.") from error

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that a value is needed for, as written."""
        return frozenset(_names(self._tree))

    @cached_property
    def is_sum(self) -> bool:
        """Whether the value is a total: without division it adds up over windows, and nothing sold is 0."""
        return not any(isinstance(node, ast.Div) for node in ast.walk(self._tree))

    def value(self, states: Mapping[str, int | Fraction | None]) -> Fraction | None:
        """The exact value. None if a denominator is zero or a name has no value. KeyError if a name is missing."""
        try:
            return _value(self._tree, states)
        except ZeroDivisionError:
            return None


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _names(node: ast.expr) -> set[str]:
    name = _dotted(node)
    if name is not None:
        return {name}
    if isinstance(node, ast.BinOp) and type(node.op) in _APPLY:
        return _names(node.left) | _names(node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _names(node.operand)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return set()
    message = f"`{ast.unparse(node)}` has no place in a formula."
    raise DefinitionError(message, do="Use names, whole numbers, `+ - * /` and brackets.")


def _value(node: ast.expr, states: Mapping[str, int | Fraction | None]) -> Fraction | None:
    name = _dotted(node)
    if name is not None:
        found = states[name]
        return None if found is None else Fraction(found)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, states), _value(node.right, states)
        return None if left is None or right is None else _APPLY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, states)
        return None if operand is None else -operand
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    raise AssertionError(ast.dump(node))  # `names` refused it at import
