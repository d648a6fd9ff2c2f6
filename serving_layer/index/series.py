"""The index of one store: its history, the factors found in it, and the points asked for."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET

from serving_layer.index.fitting import Past
from serving_layer.index.model import Expectation, Model
from serving_layer.index.seen import Seen
from serving_layer.query.local_time import written
from serving_layer.responses.index import IndexFactors, IndexHistory, IndexPoint, Interval
from views.core.business_days import Span

UNFINISHED = "unfinished"
DIGITS, EXPECTED_DIGITS = 2, 6
"""Decimals of an index; significant digits of an expected value."""


class Fit(NamedTuple):
    """What is said of one store. `history`: None if it has none."""

    history: IndexHistory | None
    factors: IndexFactors
    points: list[IndexPoint]


def fit(points: Sequence[Seen], asked: Span, until: int) -> Fit:
    """`until`: what happened later is not known yet, so that such points are neither history nor have an index."""
    wanted = [each for each in points if each.span.end > asked.start and each.span.start < asked.end]
    before = min(wanted[0].span.start, until)
    history = list(_begun([each for each in points if each.span.end <= before]))
    model = Model.of([Past(each.conditions, each.value) for each in history if each.value is not None])
    is_final = all(each.is_final for each in history)
    shown = [_point(each, model.expectation(each.conditions), until, is_final=is_final) for each in wanted]
    return Fit(_described(history), model.factors.response(), shown)


def _begun(points: Sequence[Seen]) -> Iterator[Seen]:
    """From the first day on which there was anything: a shop that was not there yet did not sell nothing."""
    first = next((each.conditions.day for each in points if each.value), None)
    return (each for each in points if first is not None and each.conditions.day >= first)


def _described(history: Sequence[Seen]) -> IndexHistory | None:
    if not history:
        return None
    number = sum(each.value is not None for each in history)
    return IndexHistory(history[0].start, written(history[-1].span.end), number)


def _point(of: Seen, expected: Expectation, until: int, *, is_final: bool) -> IndexPoint:
    """`is_final`: of the history."""
    index, interval = None, None
    flags = (*of.flags, *expected.flags)
    if of.span.end > until:
        flags = (*flags, UNFINISHED)
    elif of.value is not None and expected.value is not None:
        exact, error = 100 * of.value / expected.value, expected.error
        index = round(exact, DIGITS)
        interval = Interval(round(exact - error, DIGITS), round(exact + error, DIGITS))
    return IndexPoint(
        start=of.start,
        value=of.value,
        expected=None if expected.value is None else float(f"{expected.value:.{EXPECTED_DIGITS}g}"),
        index=index,
        interval=interval,
        points_used=expected.points_used,
        conditions=of.conditions.response(),
        flags=flags or UNSET,
        final=is_final and of.is_final,
    )
