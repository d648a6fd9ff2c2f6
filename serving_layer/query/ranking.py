"""Sorted series, the top of them, and shares of the total: `sort=`, `top=`, `share=`.

Series are ranked by their value over the whole range: states are merged over all points, and the formula is applied to
them. They are ranked among those that can be compared: with dimensions in `by` within one store or group, otherwise
the stores or groups of one currency. Amounts of several currencies are never compared, nor added.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from serving_layer.query.aggregate import CURRENCY, Group
from serving_layer.query.evaluate import LOADING, GroupValues, change, group_points, whole_values
from serving_layer.query.groups import GroupKey, GroupStates, order_of
from serving_layer.query.resolve import Ranking, ResolvedQuery
from serving_layer.query.top import TopSeries
from views.core.metric import MASKED

Shares = dict[int, Fraction | None]
"""By the number of a label the value of the total; None if it is not known."""


@dataclass(frozen=True)
class Candidate:
    """A series that may be shown. `chosen`: its values of the dimensions."""

    group: GroupStates
    chosen: Group

    @property
    def name(self) -> tuple[object, ...]:
        """Sorts candidates by name."""
        return (*self.group.key.order, *order_of(self.chosen))


def ranked(query: ResolvedQuery, ranking: Ranking, groups: Sequence[GroupStates]) -> Iterator[GroupValues]:
    """The series of groups in their order, with what `top` leaves out as one series at the end of each list.

    Args:
        query: says which metric, and how series are split.
        ranking: how they are ordered and cut.
        groups: states merged over stores.
    """
    for candidates in _comparable(query, groups):
        ordered = _sorted(query, ranking, candidates)
        kept, rest = ordered[: ranking.top], ordered[len(ordered) if ranking.top is None else ranking.top :]
        [code] = _by_currency(query, [candidates[0].chosen]) if candidates and query.by else [None]
        totals = _totals(query, _whole(query, groups, candidates), code) if ranking.share else None
        for each in kept:
            dimensions = tuple(zip(query.by, each.chosen, strict=True))
            yield _shared(GroupValues(each.group, dimensions, *group_points(query, each.group, [each.chosen])), totals)
        if rest:
            yield _shared(_other(query, rest), totals)


def ranked_top(query: ResolvedQuery, ranking: Ranking, groups: Sequence[TopSeries]) -> Iterator[GroupValues]:
    """As `ranked`, of groups whose series are cut and ordered."""
    for each in groups:
        totals = None
        if ranking.share:
            same = [of.whole for of in groups if of.whole.key.currency == each.whole.key.currency]
            totals = _totals(query, same if query.merges_stores else [each.whole])
        for chosen in each.kept:
            dimensions = tuple(zip(query.by, chosen, strict=True))
            points, compared = group_points(query, each.shown, [chosen])
            yield _shared(GroupValues(each.shown, dimensions, points, compared), totals)
        if each.rest:
            points, compared = group_points(query, each.rest, each.rest.series(query.by))
            yield _shared(GroupValues(each.rest, (), points, compared, is_other=True), totals)


def points_written(query: ResolvedQuery, groups: Sequence[GroupStates]) -> int:
    """At most how many points the series of groups have, of which `top` leaves some out."""
    top = query.ranking.top if query.ranking else None
    if top is None:
        return sum(len(group.series(query.by)) * len(group.points) for group in groups)
    found = 0
    for candidates in _comparable(query, groups):
        lengths = sorted((len(each.group.points) for each in candidates), reverse=True)
        rest = {id(each.group): each.group.points for each in candidates} if len(lengths) > top else {}
        found += sum(lengths[:top]) + len(set().union(*rest.values()))
    return found


def _comparable(query: ResolvedQuery, groups: Sequence[GroupStates]) -> Iterator[list[Candidate]]:
    if query.by:
        for group in groups:
            for series in _by_currency(query, group.series(query.by)).values():
                yield [Candidate(group, chosen) for chosen in series]
        return
    for currency in dict.fromkeys(group.key.currency for group in groups):
        yield [Candidate(group, ()) for group in groups if group.key.currency == currency]


def _by_currency(query: ResolvedQuery, series: Sequence[Group]) -> Mapping[str | None, Sequence[Group]]:
    """Series by the currency of their amounts, if that is a dimension; all under None if nothing tells them apart."""
    if CURRENCY not in query.by or not query.metric.is_of_money:
        return {None: series}
    found: dict[str | None, list[Group]] = {}
    for each in series:
        found.setdefault(each[query.by.index(CURRENCY)], []).append(each)
    return found


def _whole(
    query: ResolvedQuery, groups: Sequence[GroupStates], candidates: Sequence[Candidate]
) -> Sequence[GroupStates]:
    """What shares are of: one store, if series are parts of it, otherwise all groups of the currency."""
    if query.by and not query.merges_stores:
        return [candidates[0].group] if candidates else []
    return [group for group in groups if candidates and group.key.currency == candidates[0].group.key.currency]


def _sorted(query: ResolvedQuery, ranking: Ranking, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those whose value is not known come last, and equal ones by name."""
    ordered = sorted(candidates, key=lambda each: each.name)
    if ranking.sort in (None, "name"):
        return ordered if ranking.sort else list(candidates)
    is_descending, by_change = ranking.sort.startswith("-"), ranking.sort.endswith("change")

    def place(of: Candidate) -> tuple[bool, Fraction]:
        now, before = whole_values(query, of.group, of.chosen)
        found = change(now, before) if by_change else now
        return found is None, (-found if is_descending else found) if found is not None else Fraction(0)

    return sorted(ordered, key=place)


def _other(query: ResolvedQuery, rest: Sequence[Candidate]) -> GroupValues:
    """One series of all of them, their states merged."""
    dimensions: tuple[tuple[str, str | None], ...] = ()
    if query.by:
        group, chosen = rest[0].group, [each.chosen for each in rest]
        for code in set(_by_currency(query, chosen)) - {None}:
            dimensions = ((CURRENCY, code),)
    else:
        group, chosen = GroupStates.empty(query, GroupKey(currency=rest[0].group.key.currency)), [()]
        for each in rest:
            group.merge(each.group)
    return GroupValues(group, dimensions, *group_points(query, group, chosen), is_other=True)


def _totals(query: ResolvedQuery, groups: Sequence[GroupStates], code: str | None = None) -> Shares:
    """The value of all the groups together, which is their sum; not known where that of one is masked or loading.

    `code`: the currency of the series that count, where series are apart by currency; None for all.
    """
    found: Shares = {}
    for group in groups:
        points, _ = group_points(query, group, _by_currency(query, group.series(query.by)).get(code, []))
        for at, point in zip(group.ordered, points, strict=True):
            number, sum_so_far = at.label.number, found.get(at.label.number, Fraction(0))
            if isinstance(point.value, Fraction) and sum_so_far is not None:
                found[number] = sum_so_far + point.value
            elif MASKED in point.flags or LOADING in point.flags:
                found[number] = None
    return found


def _shared(values: GroupValues, totals: Shares | None) -> GroupValues:
    if totals is None:
        return values
    shares: list[Fraction | None] = []
    for at, point in zip(values.group.ordered, values.points, strict=True):
        total = totals.get(at.label.number)
        shares.append(100 * point.value / total if isinstance(point.value, Fraction) and total else None)
    return replace(values, shares=shares)
