"""What the columns of a table hold: by their names, and by the units of what was asked for."""

from collections.abc import Collection, Iterable
from decimal import Decimal, localcontext
from enum import StrEnum

from galatea.client.rows import Plain

WHOLE = frozenset({"weekday", "hour", "days_now", "days_before", "publication", "waiting_for_batch"})
INSTANTS = frozenset({"start", "cut", "speed_as_of"})
REALS = frozenset({"change", "change_points", "hours_present"})
TRUTHS = frozenset({"final", "partial"})
VALUES = frozenset({"value", "before"})
DIGITS = 38
"""Of a decimal, as many as Arrow has."""


class Kind(StrEnum):
    """Types of columns. MONEY: the places that every currency of ISO 4217 fits in; FINE: a mean of money has more."""

    TEXT = "text"
    WHOLE = "whole"
    MONEY = "money"
    FINE = "fine"
    REAL = "real"
    TRUTH = "truth"
    INSTANT = "instant"


PLACES = {Kind.MONEY: 4, Kind.FINE: 18}


def kind_of(column: str, units: Collection[str], cells: Iterable[Plain]) -> Kind:
    """Of one column."""
    if column in VALUES:
        return _kind_of_values(set(units), cells)
    named = {Kind.INSTANT: INSTANTS, Kind.TRUTH: TRUTHS, Kind.REAL: REALS, Kind.WHOLE: WHOLE}
    return next((kind for kind, names in named.items() if column in names), Kind.TEXT)


def fitting(cell: Plain, kind: Kind) -> object:
    """A cell as a column of that kind holds it; None stays None."""
    if not isinstance(cell, int | Decimal) or isinstance(cell, bool):
        return cell
    if kind in PLACES:
        with localcontext(prec=DIGITS):  # a mean of money is a double already: no digit of it is beyond the places
            return round(Decimal(cell), PLACES[kind])
    if kind is Kind.TEXT:
        return str(cell)
    return float(cell) if kind is Kind.REAL else cell


def _kind_of_values(units: set[str], cells: Iterable[Plain]) -> Kind:
    """Several units in one column, money among them: all are decimals, since a double would spoil the money."""
    if "list" in units:
        return Kind.TEXT
    if units <= {"n"}:
        return Kind.WHOLE
    if "money" not in units:
        return Kind.REAL
    places = max((_places(cell) for cell in cells if isinstance(cell, Decimal)), default=0)
    return Kind.MONEY if places <= PLACES[Kind.MONEY] else Kind.FINE


def _places(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0
