"""What a formula takes from the cells of a view: a summed state, or what follows from one.

    sale_tx                      a state of the metric's own view
    sales.sale_tx                one of another view
    labor_ms(kind="worked")      of the cells with that dimension alone; several values in brackets
    total(people_in)             of all cells, however the answer is split
    percentile(wait, 90)         of a Histogram
    bins(stay)                   every bin of a Histogram
    distinct(device)             of a CountDistinct, rounded
    inside(people_in, people_out), most_inside(...)    window by window from the start of the business day
    busiest(people_in, 40)       hours of the week

States of another view may stand wherever a state may.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from master_dataset.errors import DefinitionError
from views.core.aggregates import Histogram, Value
from views.core.listing import Worth, bins
from views.core.percentile import percentile
from views.core.sketch import estimate
from views.core.view import View

STORE = "store"
"""The view of facts about the store itself, known from the registry and not from events."""
OF_HISTOGRAM = ("percentile", "bins")
IN_ORDER = ("inside", "most_inside", "busiest")
"""Those that need every window (or hour) by itself, and not only sums."""
ARGUMENTS = {
    "percentile": (1, 1),
    "bins": (1, 0),
    "distinct": (1, 0),
    "inside": (2, 0),
    "most_inside": (2, 0),
    "busiest": (1, 1),
}
"""Function to how many states it takes, and how many whole numbers after them."""


@dataclass(frozen=True)
class Term:
    """`view`: empty for the metric's own. `where`: dimensions, each with the values that count."""

    text: str
    view: str
    states: tuple[str, ...]
    function: str = ""
    number: int = 0
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    is_total: bool = False

    @classmethod
    def read(cls, node: ast.expr) -> Self | None:
        """The term that is written there, None if it is something else. DefinitionError if it is a wrong one."""
        text = ast.unparse(node).replace("'", '"')
        place = _place(node)
        if place is not None:
            return cls(text, place[0], (place[1],))
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name) and node.func.id == "total" and len(node.args) == 1 and not node.keywords:
            inner = cls.read(node.args[0])
            return replace(inner, text=text, is_total=True) if inner and inner.function not in IN_ORDER else None
        if isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS and not node.keywords:
            return cls._of_function(text, node.func.id, node.args)
        place = _place(node.func)
        if place is None or node.args or not node.keywords:
            return None
        where = tuple((each.arg or "", _values(each.value)) for each in node.keywords)
        return cls(text, place[0], (place[1],), where=where)

    @classmethod
    def _of_function(cls, text: str, function: str, arguments: Sequence[ast.expr]) -> Self | None:
        states, numbers = ARGUMENTS[function]
        places = [_place(each) for each in arguments[:states]]
        rest = [each.value for each in arguments[states:] if isinstance(each, ast.Constant)]
        found = [value for value in rest if type(value) is int]
        views = {place[0] for place in places if place}
        if len(arguments) != states + numbers or len(found) != numbers or not all(places) or len(views) != 1:
            return None
        names = tuple(place[1] for place in places if place)
        return cls(text, views.pop(), names, function, number=found[0] if found else 0)

    @property
    def is_in_order(self) -> bool:
        """Whether it needs every window by itself."""
        return self.function in IN_ORDER

    @property
    def is_spread(self) -> bool:
        """Whether it says how things are spread, so that of nothing it says nothing."""
        return self.function in (*OF_HISTOGRAM, "busiest")

    def columns(self, view: View) -> tuple[str, ...]:
        """The state columns it needs. DefinitionError if the view lacks one of them, or a dimension."""
        names = self.states
        if self.function in OF_HISTOGRAM:
            names = tuple(f"{self.states[0]}_{suffix}" for suffix in self.histogram(view).columns)
        lacking = [name for name in names if name not in view.columns]
        lacking += [name for name, _ in self.where if name not in view.dimensions]
        if lacking:
            message = f"`{self.text}` needs `{lacking[0]}`, which the view `{view.name}` does not have."
            there = sorted({*view.columns, *view.metrics, *view.dimensions})
            raise DefinitionError(message, do=f"There is: {', '.join(there)}.")
        return names

    def worth(self, view: View, values: Sequence[Value]) -> Worth:
        """What it is worth, of the summed values of its columns."""
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


def _place(node: ast.expr) -> tuple[str, str] | None:
    if isinstance(node, ast.Name):
        return "", node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, node.attr
    return None


def _values(node: ast.expr) -> tuple[str, ...]:
    listed = node.elts if isinstance(node, ast.Tuple) else [node]
    found = tuple(each.value for each in listed if isinstance(each, ast.Constant) and isinstance(each.value, str))
    if not found or len(found) != len(listed):
        raise DefinitionError(f"`{ast.unparse(node)}` is no value of a dimension.", do='Write `kind="worked"`.')
    return found
