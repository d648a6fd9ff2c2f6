"""A metric worked out: of the small case that stands beside it, and of nothing at all."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from views.core.inside import inside
from views.core.listing import Worth, busiest
from views.core.metric import Metric
from views.core.term import Term
from views.core.view import View


def worked(metric: Metric, views: Mapping[str, View]) -> Worth:
    """The value of `Metric.example`. Terms that only flags need are 0 there.

    Numbers stand for themselves, and for an estimate; several numbers for what a Histogram holds, pairs for the people
    in and out of windows in order, and hours of the week for their counts.
    """
    worth = dict.fromkeys([*metric.terms, *metric.facts], Fraction(0)) | {
        text: _given(metric, views, text, given) for text, given in metric.example.items()
    }
    return metric.value(worth)[0]


def of_nothing(metric: Metric, views: Mapping[str, View]) -> Worth:
    """The value without any event, where the store has the source: 0 or none."""
    worth: dict[str, Worth] = dict.fromkeys(metric.facts, Fraction(0))
    for text, term in metric.terms.items():
        view = views[metric.view_of(term)]
        empty = [0 if view.columns[name].by == "sum" else None for name in term.columns(view)]
        nothing = {} if term.is_spread else [(0, 0)]
        worth[text] = _ordered(term, nothing) if term.is_in_order else term.worth(view, empty)
    return metric.value(worth)[0]


def _given(metric: Metric, views: Mapping[str, View], text: str, given: Any) -> Worth:  # noqa: ANN401 - see `worked`
    if isinstance(given, int):
        return Fraction(given)
    term = metric.terms[text]
    if term.is_in_order:
        return _ordered(term, given)
    view = views[metric.view_of(term)]
    edges = term.histogram(view).edges
    places = [max(place for place, edge in enumerate(edges) if not place or edge <= value) for value in given]
    return term.worth(view, [*(places.count(place) for place in range(len(edges))), min(given), max(given)])


def _ordered(term: Term, given: Any) -> Worth:  # noqa: ANN401 - see `worked`
    if term.function == "busiest":
        return busiest(given, term.number)
    held = list(inside(given))
    return Fraction(held[-1] if term.function == "inside" else max(held))
