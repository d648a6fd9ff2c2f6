"""What is expected of a point, and how much such points differ from what is expected of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from serving_layer.index.conditions import Cell, Conditions
from serving_layer.index.factors import Factors
from serving_layer.index.fitting import Past, fitted
from serving_layer.index.student import quantile

FEWEST, FEWEST_HOLIDAYS = 4, 3
"""How many points of the same hour of the week, and how many holidays, the history must have."""
TOO_LITTLE_HISTORY, NOTHING_EXPECTED, WEATHER_LEFT_OUT = "too_little_history", "nothing_expected", "weather_left_out"


class Matching(NamedTuple):
    """A past point: its value, and what the factors expect of its conditions."""

    value: float
    expected: float


class Expectation(NamedTuple):
    """`error`: by how many per cent of it a single point may be beside it, 95 times of 100."""

    value: float | None
    error: float
    points_used: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """`ordinary`: past points by hour of the week. `holidays`: those of public holidays by hour; all, at grain day."""

    factors: Factors
    ordinary: Mapping[Cell, Sequence[Matching]]
    holidays: Mapping[int | None, Sequence[Matching]]

    @classmethod
    def of(cls, past: Sequence[Past]) -> "Model":
        """Public holidays are left out of the factors."""
        factors = fitted([each for each in past if not each.conditions.holidays])
        ordinary: dict[Cell, list[Matching]] = {}
        holidays: dict[int | None, list[Matching]] = {}
        for conditions, value in past:
            each = Matching(value, factors.expected(conditions))
            if conditions.holidays:
                holidays.setdefault(conditions.cell[1], []).append(each)
            else:
                ordinary.setdefault(conditions.cell, []).append(each)
        return cls(factors, ordinary, holidays)

    def expectation(self, of: Conditions) -> Expectation:
        """Null, and why, where the history does not say."""
        matching = self.ordinary.get(of.cell, ())
        is_enough = len(matching) >= FEWEST
        if of.holidays:
            matching = self.holidays.get(of.cell[1], ())
            is_enough = is_enough and len(matching) >= FEWEST_HOLIDAYS
        if not is_enough:
            return Expectation(None, 0.0, len(matching), (TOO_LITTLE_HISTORY,))
        factor = _share(matching) if of.holidays else 1.0
        expected, ratios = self.factors.expected(of) * factor, list(_ratios(matching, factor))
        if expected <= 0 or len(ratios) < FEWEST_HOLIDAYS:
            return Expectation(None, 0.0, len(matching), (NOTHING_EXPECTED,))
        flags = () if self.factors.know_weather(of) else (WEATHER_LEFT_OUT,)
        return Expectation(expected, _error(ratios), len(ratios), flags)


def _share(holidays: Sequence[Matching]) -> float:
    """What holidays have of what would be expected of them, were they none."""
    expected = sum(each.expected for each in holidays)
    return sum(each.value for each in holidays) / expected if expected > 0 else 0.0


def _ratios(matching: Iterable[Matching], factor: float) -> Iterable[float]:
    return (each.value / (each.expected * factor) for each in matching if each.expected * factor > 0)


def _error(ratios: Sequence[float]) -> float:
    """Half of the prediction interval of one more point, whose mean is known from these alone."""
    number = len(ratios)
    spread = sqrt(sum((each - 1) ** 2 for each in ratios) / (number - 1))
    return 100 * quantile(number - 1) * spread * sqrt(1 + 1 / number)
