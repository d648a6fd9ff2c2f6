"""How a value is printed: totals from whole numbers, never through a float; ratios as the nearest double."""

from fractions import Fraction

import orjson

from views.core.metric import Metric

Number = int | float | orjson.Fragment | None


def printed(value: Fraction | None, metric: Metric, digits: int) -> Number:
    """`digits`: decimals of the currency. Money comes in minor units and is shown in the major unit."""
    if value is None:
        return None
    if metric.unit == "money":
        return money(int(value), digits) if metric.formula.is_sum else float(value / 10**digits)
    return int(value) if metric.formula.is_sum else float(value)


def money(minor: int, digits: int) -> orjson.Fragment:
    """An amount in the major unit, as a JSON number with the currency's digits."""
    if not digits:
        return orjson.Fragment(str(minor))
    whole, rest = divmod(abs(minor), 10**digits)
    return orjson.Fragment(f"{'-' if minor < 0 else ''}{whole}.{rest:0{digits}d}")
