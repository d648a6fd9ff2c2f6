"""How a value is printed: totals from whole numbers, never through a float; ratios as the nearest double."""

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from fractions import Fraction

from msgspec import UNSET

from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import ListItem, Value
from views.core.formula import Item, Worth
from views.core.metric import Metric

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def printed(value: Worth, metric: Metric, digits: int) -> Value:
    """`digits`: decimals of the currency. Money comes in minor units and is shown in the major unit."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [_item(item) for item in value]
    if metric.unit == "money":
        return money(int(value), digits) if metric.formula.is_sum else float(value / 10**digits)
    return int(value) if metric.unit == "n" else float(value)


def money(minor: int, digits: int) -> int | Decimal:
    """An amount in the major unit, with the currency's digits."""
    return Decimal(minor).scaleb(-digits, _EXACT) if digits else minor


def _item(item: Item) -> ListItem:
    said = {name: _number(value) for name, value in item.items() if value is not None}
    end = said.get("to") if "to" in item else UNSET
    return ListItem(
        start=said.get("from", UNSET),
        end=end,
        weekday=said.get("weekday", UNSET),
        hour=said.get("hour", UNSET),
        count=said["count"],
        share=said["share"],
    )


def _number(value: int | Fraction) -> Number:
    return float(value) if isinstance(value, Fraction) else value
