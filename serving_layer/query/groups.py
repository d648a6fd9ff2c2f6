"""Totals over stores: the states of several stores merged into one series per group, store by store.

The stage between `aggregate`, which knows one store, and `evaluate`. States are merged by the reducers of their columns
and never values, so a ratio is one of sums over stores, and distinct devices are a union of sketches. Points meet by
their label in the time of each store: a chain's day is the sum of its stores' days of that date. The states of a store
can go once they are merged; what remains is bounded by `MOST_POINTS`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from master_dataset.errors import RangeTooLongError
from serving_layer.compare.comparable_stores import ENOUGH, low_coverage
from serving_layer.query.aggregate import (
    DEVICE_DAYS,
    Group,
    PeriodStates,
    PointStates,
    StateSums,
    StoreStates,
    aggregate,
    empty_sums,
    reason_without_value,
    store_currency,
)
from serving_layer.query.fetch import StoreData
from serving_layer.query.periods_compared import periods_compared, together
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.store_facts import StoreFacts, SummedFacts
from serving_layer.responses.metrics import Compared, LeftOut
from serving_layer.timeline import Period, PointLabel, Timeline, WeekPlace, zone_named
from views.core.local_time import STEP, BusinessDays, Span, disjoint
from views.core.windows import Windows

MOST_POINTS = 2_000_000
"""How many points, over all groups and values of dimensions, the totals of one answer may have while they are made.

Also how many points of stores it may add up one by one.
"""


MOST_POINTS_WRITTEN = 500_000
"""How many points all series of one answer may have."""
ASK_FOR_LESS = "Use a coarser `grain`, a shorter range, fewer stores, or fewer dimensions in `by`."
MOST_STORE_DAYS = 200_000
"""How many days of stores one answer may read window by window: each counts per metric, view and period."""
_DAY = 24 * 60 * 60
Values = tuple[tuple[str, str | None], ...]
"""Names of groups, each with its value; None for stores that are in none."""


class GroupKey(NamedTuple):
    """Which stores are merged.

    Attributes:
        store: the id, where a series is of one store; None where stores are merged.
        groups: the values of the groups that were asked for; none for a total.
        currency: of the stores; None where no money is added.
    """

    store: str | None = None
    groups: Values = ()
    currency: str | None = None

    @property
    def order(self) -> tuple[tuple[bool, str], ...]:
        """Sorts keys, values that are null last."""
        return tuple((text is None, text or "") for text in (self.store, *dict(self.groups).values(), self.currency))


@dataclass
class MergedPoint:
    """A point of a group: those of its stores that have one label.

    Attributes:
        label: with the earliest date of all; `local` is without offset if the stores do not agree on that.
        span: from the first window of any store to where the last one ends.
        has_several_days: whether it has windows of several business days of a store.
        in_week: at the grains `weekday` and `hour_of_week`, which one it is, with the most of them that a store has.
        has_counterpart: whether any store compares it with something.
        stores_differ: whether a store counts in one of its two periods alone, or is in the group for a part of one.
        lengths: how many days the point has, and is compared with, where these differ.
        stores: how many stores have it.
        missing: of these, how many are not in the states, because nothing is known of them.
        is_waited_for: whether the next publication may change it, by events that wait.
    """

    label: PointLabel
    span: Span
    has_several_days: bool
    in_week: WeekPlace | None = None
    has_counterpart: bool = False
    stores_differ: bool = False
    lengths: tuple[int, int] | None = None
    stores: int = 1
    missing: int = 0
    is_waited_for: bool = False

    def merge(self, other: "MergedPoint") -> None:
        """Add the point of other stores."""
        if self.label != other.label:
            self.label = self.label.together(other.label)
        self.stores += other.stores
        self.missing += other.missing
        self.span = Span(min(self.span.start, other.span.start), max(self.span.end, other.span.end))
        self.has_several_days = self.has_several_days or other.has_several_days
        if self.in_week and other.in_week:
            self.in_week = max(self.in_week, other.in_week, key=lambda each: each.present)
        self.has_counterpart = self.has_counterpart or other.has_counterpart
        self.stores_differ = self.stores_differ or other.stores_differ
        self.is_waited_for = self.is_waited_for or other.is_waited_for
        self.lengths = max((each for each in (self.lengths, other.lengths) if each), default=None)


@dataclass
class Covered:
    """Sensor time of several stores, in milliseconds."""

    alive: int = 0
    expected: int = 0

    @property
    def share(self) -> Fraction | None:
        """The part that was covered; None if nothing was expected."""
        return Fraction(self.alive, self.expected) if self.expected else None

    def add(self, alive: int, expected: int) -> None:
        """Add that of others."""
        self.alive += alive
        self.expected += expected


@dataclass
class PeriodTotals:
    """The states of a group in one period. All keys are numbers of labels.

    Attributes:
        sums: one per view and set of terms, as in `PeriodStates`.
        facts: of the stores, per point.
        facts_of_all: of the stores, in the period as a whole.
        covered: sensor time per point, where any is expected and the metric is flagged by it.
        covered_of_all: sensor time of the period as a whole.
        begun: see `Period`.
        over: likewise.
        is_loading: nothing was published yet.
        counts: with `only_covered`, per point whether windows of any store count, unless they have not begun.
    """

    sums: list[StateSums]
    facts: dict[int, SummedFacts] = field(default_factory=dict)
    facts_of_all: SummedFacts = field(default_factory=SummedFacts)
    covered: dict[int, Covered] = field(default_factory=dict)
    covered_of_all: Covered = field(default_factory=Covered)
    begun: int = 0
    over: int = 0
    is_loading: bool = False
    counts: dict[int, bool] = field(default_factory=dict)

    def reach(self, other: "Period | PeriodTotals") -> None:
        """Know of windows until then as well."""
        self.begun, self.over = max(self.begun, other.begun), max(self.over, other.over)

    def merge(self, other: "PeriodTotals") -> int:
        """Add the states of other stores; how many points are new."""
        new = sum(mine.merge(theirs) for mine, theirs in zip(self.sums, other.sums, strict=True))
        for number, facts in other.facts.items():
            self.facts.setdefault(number, SummedFacts()).merge(facts)
        self.facts_of_all.merge(other.facts_of_all)
        for number, covered in other.covered.items():
            self.covered.setdefault(number, Covered()).add(covered.alive, covered.expected)
        self.covered_of_all.add(other.covered_of_all.alive, other.covered_of_all.expected)
        self.reach(other)
        self.is_loading |= other.is_loading
        for number, counts in other.counts.items():
            self.counts[number] = self.counts.get(number, False) or counts
        return new

    def add(
        self, query: ResolvedQuery, of: StoreQuery, states: PeriodStates, numbers: Iterable[int], *, is_elsewhere: bool
    ) -> int:
        """Merge the states of one store; how many points are new.

        Args:
            query: the query.
            of: the store.
            states: its states by the place of a point.
            numbers: the places of the points that the store has in this group.
            is_elsewhere: whether the store is in other groups as well.
        """
        moved = of.store.id if is_elsewhere else None
        labels = [label.number for label in of.range.labels]
        new = sum(mine.merge(theirs, labels) for mine, theirs in zip(self.sums, states.sums, strict=True))
        if query.metric.facts:
            facts = StoreFacts(of.store, states, query.metric.facts)
            self.facts_of_all.add(facts.whole(), moved)
            for number in numbers:
                self.facts.setdefault(labels[number], SummedFacts()).add(facts.at(number), moved)
        if "low_coverage" in query.metric.flags:
            for number, covered in states.coverage.covered_ms(states.period).items():
                self.covered.setdefault(labels[number], Covered()).add(*covered)
                self.covered_of_all.add(*covered)
        if query.only_covered:
            for number in numbers:
                self.counts[labels[number]] = self.counts.get(labels[number], False) or number not in states.uncovered
        self.reach(states.period)
        self.is_loading |= states.period.is_loading
        return new


@dataclass
class GroupStates:
    """Everything that the values of a group are computed from.

    Attributes:
        key: which stores.
        now: the period that was asked for.
        before: the period that it is compared with.
        points: by the numbers of their labels.
        counted: the ids of the stores that are in the states.
        missing: those that are not, because nothing is known of them.
        reasons: why nothing is known of them.
        poor: those of `counted` whose sensors were alive for too little of the time.
        before_counted: the ids of the stores that are in the states of the period before.
        apart: those that count in one period alone, or are in the group for a part of the time.
        zones: the names of the time zones of their points.
        compared: the two periods, if the query compares.
    """

    key: GroupKey
    now: PeriodTotals
    before: PeriodTotals
    points: dict[int, MergedPoint] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    poor: set[str] = field(default_factory=set)
    before_counted: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)
    zones: set[str] = field(default_factory=set)
    compared: Compared | None = None

    @classmethod
    def empty(cls, query: ResolvedQuery, key: GroupKey) -> "GroupStates":
        """A group without any store."""
        return cls(key, PeriodTotals(empty_sums(query)), PeriodTotals(empty_sums(query)))

    @property
    def stores(self) -> set[str]:
        """The ids of all its stores."""
        return self.counted | self.missing

    @property
    def ordered(self) -> list[MergedPoint]:
        """Its points in the order of time."""
        return [self.points[number] for number in sorted(self.points)]

    def series(self, by: Sequence[str]) -> list[Group]:
        """The values of the dimensions of its series, in order, also of those that only one period has."""
        if not by:
            return [()]
        found = {
            tuple(dict(zip(sums.split, group, strict=True))[name] for name in by)
            for period in (self.now, self.before)
            for sums in period.sums
            if set(sums.split) == set(by)
            for group in sums.points
        }
        return sorted(found, key=order_of)

    def add(self, query: ResolvedQuery, part: StoreStates) -> int:
        """Merge the states of a store, as far as it is in this group; how many points are new."""
        of, id_, had = part.query, part.query.store.id, len(self.points)
        numbers, compared = _bounds(of, part.spans), _compared_places(part)
        reason = reason_without_value(query, of, part.now)
        reason_before = reason_without_value(query, of, part.before) if part.before else None
        apart = frozenset[int]()
        if query.compare:
            begun = [] if reason else [number for number, bound in numbers.items() if bound.start < part.until]
            known_before = frozenset[int]() if reason_before else compared
            apart = _apart(part, begun, known_before)
            if part.spans is not None or bool(begun) != bool(known_before):
                self.apart.add(id_)
        knows_days = DEVICE_DAYS in query.metric.flags
        self._add_points(part, numbers, compared, apart, is_missing=reason is not None, knows_days=knows_days)
        new, is_elsewhere = len(self.points) - had, part.spans is not None
        self.now.reach(part.now.period)
        if numbers and reason:
            self.missing.add(id_)
            self.reasons.add(reason)
        elif numbers:
            self.counted.add(id_)
            share = part.now.sensor_share
            self.poor |= {id_} if share is not None and share < ENOUGH else set()
            new += self.now.add(query, of, part.now, numbers, is_elsewhere=is_elsewhere)
        if compared and part.before:
            if reason_before:
                self.reasons.add(reason_before)
            else:
                self.before_counted.add(id_)
                new += self.before.add(query, of, part.before, compared, is_elsewhere=is_elsewhere)
        if of.calendar is not None:
            periods = periods_compared(part, of.calendar.calendar, only_covered=query.only_covered)
            self.compared = periods if self.compared is None else together(self.compared, periods)
        return new

    def merge(self, other: "GroupStates") -> None:
        """Merge another group into this one, of which a store may be in both."""
        self.now.merge(other.now)
        self.before.merge(other.before)
        for point in other.points.values():
            self._add_point(MergedPoint(**vars(point)))
        self.counted |= other.counted
        self.missing = (self.missing | other.missing) - self.counted
        self.before_counted |= other.before_counted
        self.apart |= other.apart
        self.reasons |= other.reasons
        self.poor |= other.poor
        self.zones |= other.zones
        if other.compared:
            self.compared = other.compared if self.compared is None else together(self.compared, other.compared)

    def _add_points(  # noqa: PLR0913 - what a point depends on
        self,
        part: StoreStates,
        now: Mapping[int, Span],
        compared: frozenset[int],
        apart: frozenset[int],
        *,
        is_missing: bool,
        knows_days: bool,
    ) -> None:
        """Add the points that a store has in this group.

        Args:
            part: the store.
            now: the places of its points, with their bounds.
            compared: the places of those that have a counterpart.
            apart: the places of those that cannot be compared; see `_apart`.
            is_missing: nothing is known of the store.
            knows_days: whether it matters which points have windows of several business days.
        """
        of, days = part.query, part.query.range.days
        lengths = part.comparison.lengths if part.comparison else {}
        waits = part.waiting.number > 0
        self.zones |= {of.zone} if now or compared else set()
        for number in sorted({*now, *compared}):
            bound = now.get(number, of.timeline.bounds[number])
            point = MergedPoint(
                label=of.range.labels[number],
                span=bound,
                has_several_days=knows_days and days.day_of(bound.start) != days.day_of(bound.end - STEP),
                in_week=part.places_in_week[number] if part.places_in_week else None,
                has_counterpart=number in compared,
                stores_differ=number in apart,
                lengths=lengths.get(number),
                missing=int(is_missing and number in now),
                is_waited_for=waits and part.waiting.may_change(bound),
            )
            self._add_point(point)

    def _add_point(self, point: MergedPoint) -> None:
        there = self.points.get(point.label.number)
        if there is None:
            self.points[point.label.number] = point
        else:
            there.merge(point)


class Totals:
    """The groups of an answer, to which stores are added one after the other."""

    def __init__(self, query: ResolvedQuery) -> None:
        """`query`: says how stores are grouped."""
        self.query = query
        self.waiting = 0
        self.zones: set[str] = set()
        self.event_flags: Counter[str] = Counter()
        self.is_partial = False
        self._groups: dict[GroupKey, GroupStates] = {}
        self._left_out: dict[str, LeftOut] = {}
        self._points = 0

    @property
    def points(self) -> int:
        """How many points all series have."""
        return self._points

    @property
    def groups(self) -> list[GroupStates]:
        """Every group, in order."""
        return [self._groups[key] for key in sorted(self._groups, key=lambda key: key.order)]

    @property
    def missing(self) -> set[str]:
        """The ids of the stores of which nothing is known."""
        return set[str]().union(*(group.missing for group in self._groups.values()))

    @property
    def left_out(self) -> Sequence[LeftOut] | None:
        """The stores that are not comparable; None if comparable ones were not asked for."""
        if self.query.left_out is None:
            return None
        return [*self.query.left_out, *(self._left_out[store] for store in sorted(self._left_out))]

    def adopt(
        self, groups: Iterable[GroupStates], points: int, *, waiting: int, zones: set[str], event_flags: Counter[str]
    ) -> None:
        """Take groups of other stores, before any store is added.

        Args:
            groups: with different keys.
            points: how many points they have.
            waiting: how many events of their stores wait for the next publication.
            zones: the time zones of their stores.
            event_flags: how many events of their stores carry each flag.

        Raises:
            RangeTooLongError: they have more points than `MOST_POINTS`.
        """
        self._groups |= {group.key: group for group in groups}
        self._points += points
        self.waiting += waiting
        self.zones |= zones
        self.event_flags += event_flags
        self._refuse_long()

    def add(self, data: StoreData) -> None:
        """Merge the states of one store into its groups.

        Raises:
            MixedCurrenciesError: the store has amounts of several currencies.
            RangeTooLongError: the totals would have more than `MOST_POINTS`.
        """
        query, whole = self.query, aggregate(self.query, data)
        if query.left_out is not None and (found := low_coverage(data.query.store, whole.coverage_share)):
            self._left_out[data.query.store.id] = found
            return
        self.waiting += whole.waiting.number
        self.zones.add(data.query.zone)
        self.event_flags += whole.now.event_flags
        self.is_partial = self.is_partial or whole.is_partial
        currency = store_currency(query, whole)
        for groups, spans in memberships(query, data).items():
            key = GroupKey(None if query.merges_stores else data.query.store.id, groups, currency)
            if key not in self._groups:
                self._groups[key] = GroupStates.empty(query, key)
            part = whole if spans is None else aggregate(query, data, spans)
            self._points += self._groups[key].add(query, part)
        self._refuse_long()

    def refuse_slow(self, stores: Collection[str]) -> None:
        """Refuse a query before anything is read of these stores, if they have too many points to be added up.

        Raises:
            RangeTooLongError: they have more points than `MOST_POINTS`.
        """
        self._refuse_more(sum(len(of.range.labels) for of in self.query.stores if of.store.id in stores))

    def _refuse_long(self) -> None:
        self._refuse_more(self._points)

    @staticmethod
    def _refuse_more(points: int) -> None:
        if points > MOST_POINTS:
            raise RangeTooLongError(f"The totals have more than {MOST_POINTS:,} points.", do=ASK_FOR_LESS)


def refuse_many_points(points: int) -> None:
    """Refuse what would have too many points when it is written.

    Args:
        points: how many all series have.

    Raises:
        RangeTooLongError: these are more than `MOST_POINTS_WRITTEN`.
    """
    if points > MOST_POINTS_WRITTEN:
        raise RangeTooLongError(f"The answer has more than {MOST_POINTS_WRITTEN:,} points.", do=ASK_FOR_LESS)


def refuse_many_days(queries: Iterable[ResolvedQuery], stores: Collection[str]) -> None:
    """Refuse queries of one answer before anything is read of these stores window by window, if that would be too much.

    Raises:
        RangeTooLongError: it would be more than `MOST_STORE_DAYS`.
    """
    found = 0
    for query in queries:
        periods = 2 if query.compare else 1
        days = (-(-(of.timeline.end - of.timeline.start) // _DAY) for of in query.stores if of.store.id in stores)
        found += sum(days) * periods * len(query.views)
    if found > MOST_STORE_DAYS:
        message = f"The answer would be added up from the quarter hours of {found:,} days of stores."
        rule = f"At most {MOST_STORE_DAYS:,} may be, where each counts per metric, view and compared period."
        do = "Use a shorter range, fewer stores or metrics, or whole business days without further options."
        raise RangeTooLongError(f"{message} {rule}", do=do)


def memberships(query: ResolvedQuery, data: StoreData) -> Mapping[Values, Sequence[Span] | None]:
    """The groups that a store is in while the windows last that were read of it.

    A store is in a group by its own business days, whatever the time zone of the answer.

    Returns:
        By the values of its groups the windows in which it is in them; None: in all.
    """
    store, names = data.query.store, query.groups
    if not names or query.attributes == "current":
        return {tuple((name, store.current_group(name)) for name in names): None}
    days = BusinessDays.of(store, zone_named(store.timezone))
    changes = sorted({days.start(version.valid_from) for version in store.groups if version.valid_from})
    found: dict[Values, list[Span]] = {}
    for period in (data.now, data.before):
        if period is None:
            continue
        line = period.period.timeline
        bounds = [line.start, *(at for at in changes if line.start < at < line.end), line.end]
        for span in map(Span, bounds, bounds[1:]):
            day = days.day_of(span.start)
            found.setdefault(tuple((name, store.group(name, day)) for name in names), []).append(span)
    return {values: disjoint(spans) for values, spans in found.items()} if len(found) > 1 else dict.fromkeys(found)


def order_of(group: Group) -> tuple[tuple[bool, str], ...]:
    """Sorts the values of dimensions, those that are null last."""
    return tuple((value is None, value or "") for value in group)


def merged_states(sums: StateSums, points: Iterable[PointStates]) -> PointStates | None:
    """The states of several points as those of one; None without any."""
    found: PointStates | None = None
    for point in points:
        if found is None:
            found = PointStates(list(point.states), point.is_provisional)
        else:
            sums.merge_point(found, point)
    return found


def _bounds(of: StoreQuery, spans: Sequence[Span] | None) -> dict[int, Span]:
    """Per place of a point from its first window to where its last one ends, of the windows in `spans`."""
    if spans is None:
        return dict(enumerate(of.timeline.bounds))
    found: dict[int, Span] = {}
    for part in spans:
        for span, number in of.timeline.between(part):
            cut = Span(max(span.start, part.start), min(span.end, part.end))
            there = found.get(number, cut)
            found[number] = Span(min(there.start, cut.start), max(there.end, cut.end))
    return found


def _compared_places(part: StoreStates) -> frozenset[int]:
    """The places of the points that are compared with windows of this group."""
    if part.comparison is None or part.before is None:
        return frozenset()
    if part.spans is None:
        return frozenset(part.comparison.points)
    line, only = part.before.period.timeline, part.before.period.only or Windows()
    return frozenset(map(line.point_of, only))


def _apart(part: StoreStates, now: Collection[int], before: Collection[int]) -> frozenset[int]:
    """The places of points whose two periods are not both of this store.

    Args:
        part: the store.
        now: the places of points that have begun, and of which something is known.
        before: the places of points with a counterpart of which something is known.
    """
    both = set(now).intersection(before)
    if part.spans is not None and part.comparison is not None:  # it may be in the group for a part of a point
        lines = part.query.timeline, part.comparison.timeline
        whole = [(_seconds(line, [Span(line.start, line.end)]), _seconds(line, part.spans)) for line in lines]
        both = {number for number in both if all(every[number] == own[number] for every, own in whole)}
    return frozenset(now).union(before) - both


def _seconds(line: Timeline, spans: Iterable[Span]) -> Counter[int]:
    """By place of a point how much time of it lies in `spans`."""
    found = Counter[int]()
    for part in spans:
        for span, number in line.between(part):
            found[number] += min(span.end, part.end) - max(span.start, part.start)
    return found
