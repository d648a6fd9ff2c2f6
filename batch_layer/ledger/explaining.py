"""Why a cell's shown value changed: pure rules over the states of one cell.

    corrected - shown  must be  the events that waited  (+)  what miskeyed deliveries were counted wrongly (R13)

Everything else is `unexplained`, an alarm: the layers disagree.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from views.control.recompute import Cause
from views.core.aggregates import Column, Value
from views.core.cells import States

_SUMS_AT_MOST = 5_000
"""How many combinations of miskeyed deliveries are tried before a cell counts as unexplained."""


class Contribution(NamedTuple):
    """What one event, or one delivery, adds to the cell."""

    identity: str
    states: States


def cause_of(
    columns: Sequence[Column],
    pair: tuple[States | None, States | None],
    waited: Sequence[Contribution],
    miskeyed: Sequence[Contribution],
    replaced: Sequence[Contribution] = (),
) -> Cause | None:
    """None if nothing changed. `pair`: shown, corrected. `miskeyed`: every delivery of events met in two partitions.

    `replaced`: what was counted before, and is part of what waited now.
    """
    shown, corrected = pair
    if shown == corrected:
        return None
    expected = _merged(columns, [shown, *(each.states for each in waited)])
    if expected == corrected:
        return "waited"
    if replaced and _replaces(columns, pair, waited, replaced):
        return "waited"
    if miskeyed and _differ_by_some(columns, expected, corrected, [each.states for each in miskeyed]):
        return "miskeyed"
    return "unexplained"


def _merged(columns: Sequence[Column], parts: Iterable[States | None]) -> States | None:
    found = [part for part in parts if part is not None]
    if not found:
        return None
    return reduce(lambda left, right: tuple(c.merge(a, b) for c, a, b in zip(columns, left, right, strict=True)), found)


def _replaces(
    columns: Sequence[Column],
    pair: tuple[States | None, States | None],
    came: Sequence[Contribution],
    went: Sequence[Contribution],
) -> bool:
    """Whether removing the former and adding the latter explains the whole difference. Only sums can be subtracted."""
    shown, corrected = pair
    for at, column in enumerate(columns):
        difference = _number(corrected, at) - _number(shown, at)
        added, taken = (sum(_number(each.states, at) for each in some) for some in (came, went))
        if column.by == "sum" and difference != added - taken:
            return False
    return True


def _differ_by_some(
    columns: Sequence[Column], expected: States | None, corrected: States | None, deliveries: Sequence[States]
) -> bool:
    """Whether some of these deliveries, each counted once too often or too little, are all of the difference.

    Only sums can be taken back. Of a least or greatest value, the wrong or the right one has to be of a delivery.
    """
    sums = [at for at, column in enumerate(columns) if column.by == "sum"]
    difference_of_sums = tuple(_number(corrected, at) - _number(expected, at) for at in sums)
    reached = {tuple(0 for _ in sums)}
    for states in deliveries:
        own = tuple(_number(states, at) for at in sums)
        reached |= {tuple(a + sign * b for a, b in zip(each, own, strict=True)) for each in reached for sign in (1, -1)}
        if len(reached) > _SUMS_AT_MOST:
            return False
    others = [at for at, column in enumerate(columns) if column.by in ("min", "max")]
    values = {at: {each[at] for each in deliveries} for at in others}
    seen = all(
        (one := _value(expected, at)) == (other := _value(corrected, at)) or {one, other} & values[at] for at in others
    )
    return difference_of_sums in reached and seen


def _value(states: States | None, at: int) -> Value:
    return None if states is None else states[at]


def _number(states: States | None, at: int) -> int:
    value: Value = states[at] if states is not None else 0
    return value if isinstance(value, int) else 0
