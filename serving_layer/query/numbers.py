"""How a value is printed: totals from whole numbers, never through a float; ratios as the nearest double."""

from fractions import Fraction

import orjson

from views.core.listing import Worth
from views.core.metric import Metric

Number = int | float | orjson.Fragment | None
Printed = Number | list[dict[str, int | float | None]]


def printed(value: Worth, metric: Metric, digits: int) -> Printed:
    """`digits`: decimals of the currency. Money comes in minor units and is shown in the major unit."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [{name: float(of) if isinstance(of, Fraction) else of for name, of in item.items()} for item in value]
    if metric.unit == "money":
        return money(int(value), digits) if metric.formula.is_sum else float(value / 10**digits)
    return int(value) if metric.unit == "n" else float(value)


def money(minor: int, digits: int) -> orjson.Fragment:
    """An amount in the major unit, as a JSON number with the currency's digits."""
    if not digits:
        return orjson.Fragment(str(minor))
    whole, rest = divmod(abs(minor), 10**digits)
    return orjson.Fragment(f"{'-' if minor < 0 else ''}{whole}.{rest:0{digits}d}")
