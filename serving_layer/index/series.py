"""The index of one store: its history, the factors found in it, and the points asked for."""

from collections.abc import Iterator, Sequence

from serving_layer.index.fitting import Past
from serving_layer.index.model import Expectation, Model
from serving_layer.index.seen import Seen
from serving_layer.query.local_time import written
from views.core.business_days import Span

Shown = dict[str, object]
UNFINISHED = "unfinished"
DIGITS, EXPECTED_DIGITS = 2, 6
"""Decimals of an index; significant digits of an expected value."""


def series(points: Sequence[Seen], asked: Span, until: int) -> Shown:
    """`until`: what happened later is not known yet, so that such points are neither history nor have an index."""
    wanted = [each for each in points if each.span.end > asked.start and each.span.start < asked.end]
    before = min(wanted[0].span.start, until)
    history = list(_begun([each for each in points if each.span.end <= before]))
    model = Model.of([Past(each.conditions, each.value) for each in history if each.value is not None])
    is_final = all(each.is_final for each in history)
    return {
        "history": _told(history),
        "factors": model.factors.shown(),
        "points": [
            _point(each, model.expectation(each.conditions), until) | {"final": is_final and each.is_final}
            for each in wanted
        ],
    }


def _begun(points: Sequence[Seen]) -> Iterator[Seen]:
    """From the first day on which there was anything: a shop that was not there yet did not sell nothing."""
    first = next((each.conditions.day for each in points if each.value), None)
    return (each for each in points if first is not None and each.conditions.day >= first)


def _told(history: Sequence[Seen]) -> Shown | None:
    if not history:
        return None
    number = sum(each.value is not None for each in history)
    return {"from": history[0].start, "to": written(history[-1].span.end), "points": number}


def _point(of: Seen, expected: Expectation, until: int) -> Shown:
    shown: Shown = {
        "start": of.start,
        "value": of.value,
        "expected": None if expected.value is None else float(f"{expected.value:.{EXPECTED_DIGITS}g}"),
        "index": None,
        "interval": None,
        "points_used": expected.points_used,
        "conditions": of.conditions.shown(),
    }
    flags = (*of.flags, *expected.flags)
    if of.span.end > until:
        flags = (*flags, UNFINISHED)
    elif of.value is not None and expected.value is not None:
        index, error = 100 * of.value / expected.value, expected.error
        interval = {"low": round(index - error, DIGITS), "high": round(index + error, DIGITS)}
        shown |= {"index": round(index, DIGITS), "interval": interval}
    return shown | {"flags": flags} if flags else shown
