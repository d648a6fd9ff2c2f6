"""How factors are found: by the method of marginal totals.

Over the history, what is expected adds up to what was there: in every hour of the week, in every band of temperature,
over what was wet and over what was dry. Plain sums in rounds, so the same history always has the same factors.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import isclose, prod
from typing import Any, NamedTuple

from serving_layer.index.conditions import Conditions
from serving_layer.index.factors import Factors

FEWEST_DAYS = 5
"""On how many days of the history a kind of weather must have been there to get a factor."""
MOST_ROUNDS = 50
BASE, TEMPERATURE, RAIN = PLACES = range(3)

Sums = dict[Hashable, float]
Factor = Mapping[Any, float]


class Past(NamedTuple):
    """A point of the history."""

    conditions: Conditions
    value: float


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
    """Points by their levels; those of too few days are put to the unknown ones."""
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
