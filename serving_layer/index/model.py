"""The model of an index: what is expected of a point, and how much such points differ from what is expected.

An expected value is a product: a base per hour of the week, a factor per band of temperature, and a factor for rain. A
public holiday has a factor of its own. Factors are found by the method of marginal totals: over the history, expected
values add up to what was there, in every hour of the week, every band of temperature, and over wet and dry points. They
are plain sums in rounds, so the same history always gives the same factors.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import isclose, prod, sqrt
from typing import Any, NamedTuple

from serving_layer.index.request import IndexGrain
from serving_layer.responses.metrics import IndexConditions, IndexFactors, WeatherRow

PERCENT = 95
"""Of the prediction interval."""
FEWEST, FEWEST_HOLIDAYS = 4, 3
"""How many points of the same hour of the week, and how many holidays, the history must have."""
TOO_LITTLE_HISTORY, NOTHING_EXPECTED, WEATHER_LEFT_OUT = "too_little_history", "nothing_expected", "weather_left_out"
FEWEST_DAYS = 5
"""How many days of the history must have had a kind of weather for it to get a factor."""
MOST_ROUNDS = 50
BASE, TEMPERATURE, RAIN = PLACES = range(3)
Sums = dict[Hashable, float]
Factor = Mapping[Any, float]

EDGES = (0, 10, 20, 30)
BANDS = ("below 0", "0 to 10", "10 to 20", "20 to 30", "30 and above")
"""Of the average temperature of a point, in C; each begins at its lower edge."""
RAINS_FROM: Mapping[IndexGrain, float] = {"hour": 0.1, "day": 1.0}
"""From how many mm on it rained. 1 mm is the wet day of climatology."""

WeekHour = tuple[int, int | None]
"""ISO weekday of the business day, and hour of the clock; None at the grain day."""
Levels = tuple[WeekHour, str | None, bool | None]
"""Hour of the week, band of temperature, rain; None where there is no factor."""


class Conditions(NamedTuple):
    """The conditions of a point. `temperature`, `rain`: None if not observed. `holidays`: their names, if any."""

    day: date
    cell: WeekHour
    temperature: str | None = None
    rain: bool | None = None
    holidays: tuple[str, ...] = ()

    @property
    def levels(self) -> Levels:
        """The keys of its factors, in the order of `Factors`."""
        return self.cell, self.temperature, self.rain

    def response(self) -> IndexConditions:
        """The conditions as the response shows them."""
        return IndexConditions(self.temperature, self.rain, self.holidays)


def weather(row: WeatherRow | None, grain: IndexGrain) -> tuple[str | None, bool | None]:
    """The band of temperature and whether it rained, from a row of `context=weather`; None if not known."""
    if row is None:
        return None, None
    band = None if row.temperature_avg is None else BANDS[bisect_right(EDGES, row.temperature_avg)]
    return band, row.precipitation >= RAINS_FROM[grain]


@dataclass(frozen=True)
class Factors:
    """The factors of a history. Weather that the history hardly has gets none. Factors are 1 on average."""

    base: Mapping[WeekHour, float]
    temperature: Mapping[str, float]
    rain: Mapping[bool, float]

    def expected(self, of: Conditions) -> float:
        """The expected value if the day were no holiday. 0 for an hour of the week that the history lacks."""
        cell, temperature, rain = of.levels
        weather = self.temperature.get(temperature or "", 1.0) * (1.0 if rain is None else self.rain.get(rain, 1.0))
        return self.base.get(cell, 0.0) * weather

    def knows_weather(self, of: Conditions) -> bool:
        """Whether there is a factor for all of its weather."""
        return of.temperature in self.temperature and of.rain in self.rain

    def response(self) -> IndexFactors:
        """As the answer shows them. The bases are not shown: they are in the expected values."""
        return IndexFactors(
            temperature={band: round(factor, 4) for band, factor in sorted(self.temperature.items())},
            rain={"wet" if is_wet else "dry": round(factor, 4) for is_wet, factor in sorted(self.rain.items())},
        )


class Past(NamedTuple):
    """A point of the history."""

    conditions: Conditions
    value: float


class Matching(NamedTuple):
    """A past point: its value, and what the factors expect of its conditions."""

    value: float
    expected: float


class Expectation(NamedTuple):
    """What is expected of a point. `error`: half of the 95 % prediction interval, in percent of `value`."""

    value: float | None
    error: float
    points_used: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """A fitted model. `ordinary`: past points by hour of the week. `holidays`: those of holidays, by hour."""

    factors: Factors
    ordinary: Mapping[WeekHour, Sequence[Matching]]
    holidays: Mapping[int | None, Sequence[Matching]]

    @classmethod
    def of(cls, past: Sequence[Past]) -> "Model":
        """Fit a model to a history. Public holidays are left out of the factors."""
        factors = fitted([each for each in past if not each.conditions.holidays])
        ordinary: dict[WeekHour, list[Matching]] = {}
        holidays: dict[int | None, list[Matching]] = {}
        for conditions, value in past:
            each = Matching(value, factors.expected(conditions))
            if conditions.holidays:
                holidays.setdefault(conditions.cell[1], []).append(each)
            else:
                ordinary.setdefault(conditions.cell, []).append(each)
        return cls(factors, ordinary, holidays)

    def expectation(self, of: Conditions) -> Expectation:
        """What is expected under these conditions; None, with a flag, where the history has too little."""
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
        flags = () if self.factors.knows_weather(of) else (WEATHER_LEFT_OUT,)
        return Expectation(expected, _error(ratios), len(ratios), flags)


def _share(holidays: Sequence[Matching]) -> float:
    """What holidays had, as a part of what would be expected if they were ordinary days."""
    expected = sum(each.expected for each in holidays)
    return sum(each.value for each in holidays) / expected if expected > 0 else 0.0


def _ratios(matching: Iterable[Matching], factor: float) -> Iterable[float]:
    return (each.value / (each.expected * factor) for each in matching if each.expected * factor > 0)


def _error(ratios: Sequence[float]) -> float:
    """Half of the prediction interval of one more point, whose mean is known from these alone."""
    number = len(ratios)
    spread = sqrt(sum((each - 1) ** 2 for each in ratios) / (number - 1))
    return 100 * quantile(number - 1) * spread * sqrt(1 + 1 / number)


class Group(NamedTuple):
    """All points of the same levels."""

    levels: tuple[Hashable, ...]
    total: float
    number: int


def fitted(past: Sequence[Past]) -> Factors:
    """The factors of a history of ordinary days."""
    groups = _grouped(past)
    factors: list[Factor] = [{}, {}, {}]
    factors[BASE] = _marginal(groups, factors, BASE)
    for _ in range(MOST_ROUNDS):
        before = tuple(factors)
        factors[TEMPERATURE] = _around_one(groups, factors, TEMPERATURE)
        factors[RAIN] = _around_one(groups, factors, RAIN)
        factors[BASE] = _marginal(groups, factors, BASE)
        if all(_are_close(one, two) for one, two in zip(before, factors, strict=True)):
            break
    return Factors(*factors)


def _grouped(past: Sequence[Past]) -> list[Group]:
    """Points by their levels. A level of too few days counts as unknown."""
    days: dict[tuple[int, Hashable], set[Hashable]] = {}
    for each in past:
        for place in PLACES:
            days.setdefault((place, each.conditions.levels[place]), set()).add(each.conditions.day)
    values: dict[tuple[Hashable, ...], list[float]] = {}
    for each in past:
        cell, *weather = each.conditions.levels
        known = (level if len(days[place, level]) >= FEWEST_DAYS else None for place, level in enumerate(weather, 1))
        values.setdefault((cell, *known), []).append(each.value)
    return [Group(levels, sum(found), len(found)) for levels, found in values.items()]


def _marginal(groups: Sequence[Group], factors: Sequence[Factor], place: int) -> Factor:
    """What the factors of this place must be for its totals to be right, the others being what they are."""
    there: Sums = {}
    expected: Sums = {}
    for group in groups:
        level = group.levels[place]
        if level is not None:
            others = prod(factors[other].get(group.levels[other], 1.0) for other in PLACES if other != place)
            there[level] = there.get(level, 0.0) + group.total
            expected[level] = expected.get(level, 0.0) + group.number * others
    if place == BASE:
        return {level: there[level] / of if of else 0.0 for level, of in expected.items()}
    return {level: max(there[level], 0.0) / of if of > 0 else 1.0 for level, of in expected.items()}


def _around_one(groups: Sequence[Group], factors: Sequence[Factor], place: int) -> Factor:
    """The same, so that they are 1 on average over the points that have one: 1 then stands for unknown weather."""
    found = _marginal(groups, factors, place)
    known = [(group.number, found[group.levels[place]]) for group in groups if group.levels[place] is not None]
    total = sum(number * factor for number, factor in known)
    scale = sum(number for number, _ in known) / total if total else 1.0
    return {level: factor * scale for level, factor in found.items()}


def _are_close(one: Factor, two: Factor) -> bool:
    return one.keys() == two.keys() and all(isclose(one[each], two[each], rel_tol=1e-9) for each in two)


_TABLE = """
    12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131
    2.120 2.110 2.101 2.093 2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042
"""
STUDENT_T = tuple(map(float, _TABLE.split()))
"""Student's t for two-sided intervals of 95 %, for 1 to 30 degrees of freedom."""


def quantile(freedom: int) -> float:
    """Student's t for at least one degree of freedom; beyond 30 that of 30, which is a little wider."""
    return STUDENT_T[min(freedom, len(STUDENT_T)) - 1]
