"""`compare=target`: beside each point what its stores were to reach on its business days, and by how much they did.

A target is of one store and business day, so the target of a point is a sum: over the days of the point and, where a
series adds up stores, over those of which the value is known. A day without a target is no zero. A point of which some
days have none says so in `before_flags` and has no `change`, because its value counts days that its target lacks.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

from cachetools import LRUCache
from msgspec import UNSET, UnsetType

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import currency
from master_dataset.registry.targets import DIGITS, StoreTargets, TargetSet, decode_block
from serving_layer.caching import keep
from serving_layer.errors import BadQuestionError
from serving_layer.query.render import money
from serving_layer.query.resolve import ResolvedQuery, StoreQuery, adds_up
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import MetricResponse, Point, Series, TargetDays
from serving_layer.timeline import QueryRange, timeline
from views.core import View
from views.core.local_time import BusinessDays
from views.core.metric import Metric

REFRESH_SECONDS = 1.0
"""After this time, the version of a tenant's targets is read again."""
CACHED_TARGETS = 500_000
"""Targets that one process keeps, over all tenants."""
MOST_TENANTS = 10_000
BLOCKS_AT_ONCE = 16
NO_TARGET, TARGETS_MISSING = "no_target", "targets_missing"
"""Flags of `before`: no day of the point has a target; some have none."""
_TOO_FINE = ("15m", "hour", "hour_of_week")
STORES_AT_ONCE = 100
"""The targets of so many stores are added up without a pause."""
POINTS_AT_ONCE = 100
"""After a series with more points, other requests have their turn."""
_MILLION = 10**DIGITS
HOURS_OF_A_DAY = 24
"""By so many the numbers of the labels of weekdays differ."""

SeriesOf = tuple[object, ...]
"""What identifies a series: its store, or the values of its groups and its currency."""


class TargetBlocks(Protocol):
    """Where targets are stored. Every method raises CassandraUnavailableError."""

    async def current(self, tenant: str) -> TargetSet | None:
        """The current version; None if none was loaded."""

    async def block(self, tenant: str, version: str, store: str) -> bytes | None:
        """The block of a store; None if it has no targets, or the version was removed."""


class TargetReader:
    """The targets of all tenants. Belongs to one event loop. Every method raises CassandraUnavailableError."""

    def __init__(self, blocks: TargetBlocks, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._blocks, self._clock = blocks, clock
        self._current: LRUCache[str, tuple[float, TargetSet | None]] = LRUCache(MOST_TENANTS)
        self._cache: LRUCache[tuple[str, str, str], StoreTargets] = LRUCache(
            CACHED_TARGETS, getsizeof=lambda targets: 1 + sum(map(len, targets.values()))
        )
        self._at_once = asyncio.Semaphore(BLOCKS_AT_ONCE)

    async def current(self, tenant: str, *, fresh: bool = False) -> TargetSet | None:
        """The current version of a tenant's targets, at most `REFRESH_SECONDS` old; None if none was loaded.

        `fresh`: it is read after this call began.
        """
        known = None if fresh else self._current.get(tenant)
        if known is None or self._clock() - known[0] >= REFRESH_SECONDS:
            began = self._clock()
            known = self._current[tenant] = began, await self._blocks.current(tenant)
        return known[1]

    async def of_store(self, version: TargetSet, store: str, metric: str) -> Mapping[date, int]:
        """The targets of a store for a metric, in millionths, by business day.

        Raises:
            CassandraUnavailableError: also if the version was replaced several times while it was read.
        """
        key = version.tenant, version.version, store
        targets = self._cache.get(key)
        if targets is None:
            async with self._at_once:
                packed = await self._blocks.block(*key)
                if packed is None and not await self._is_kept(version):
                    message = f"The targets of tenant `{version.tenant}` were replaced while they were read."
                    raise CassandraUnavailableError(message, do="Try again.")
            targets = {} if packed is None else decode_block(packed)
            keep(self._cache, key, targets)
        return targets.get(metric, {})

    async def _is_kept(self, version: TargetSet) -> bool:
        current = await self._blocks.current(version.tenant)
        return current is not None and current.version == version.version


def can_have_targets(metric: Metric, views: Mapping[str, View]) -> bool:
    """Whether targets of days add up to the target of all of them: the metric is a sum."""
    return metric.unit != "list" and adds_up(metric, views)


def target_decimals(metric: Metric) -> int | None:
    """How many decimals a target of the metric may have; None: those of the currency."""
    return {"money": None, "n": 0}.get(metric.unit, DIGITS)


@dataclass(slots=True)
class _Target:
    """The target of one point: in millionths, over so many days of stores with one, and so many without.

    `first`: the date that the point is called by. `end`: where its windows end, in seconds since 1970.
    """

    first: date
    end: int
    value: int = 0
    days: int = 0
    missing: int = 0

    def add(self, own: Mapping[date, int], days: Iterable[date]) -> None:
        """Add the targets that a store has on some days."""
        for day in days:
            target = own.get(day)
            if target is None:
                self.missing += 1
            else:
                self.value += target
                self.days += 1

    def merge(self, other: "_Target") -> None:
        """Add the target of other stores."""
        self.value += other.value
        self.days += other.days
        self.missing += other.missing


@dataclass
class _SeriesTargets:
    """The targets of one series by the number of the label of a point."""

    points: dict[int, _Target] = field(default_factory=dict)

    def at(self, number: int, first: date, end: int) -> _Target:
        """The target of a point, to be added to."""
        target = self.points.get(number)
        if target is None:
            target = self.points[number] = _Target(first, end)
        elif first < target.first or end > target.end:
            target.first, target.end = min(first, target.first), max(end, target.end)
        return target


@dataclass(frozen=True)
class AnswerTargets:
    """The targets that one answer reads. `versions`: the current ones of the tenants of its stores."""

    reader: TargetReader
    versions: tuple[TargetSet, ...] = ()

    async def attach(
        self, query: ResolvedQuery, response: MetricResponse, known_until: int, unknown: Collection[str] = ()
    ) -> None:
        """Add targets to the points of a response.

        Args:
            query: what was asked for; `refuse_without_targets` has let it pass.
            response: its answer.
            known_until: up to when events are known, in seconds since 1970: later points are unfinished.
            unknown: the ids of the stores that are in no value, because nothing is known of them. Their targets are in
                no series that adds up others.
        """
        left_out = () if isinstance(response.left_out, UnsetType) else response.left_out
        absent = {each.store for each in left_out}
        stores = [of for of in query.stores if of.store.id not in absent]
        by_tenant = {version.tenant: version for version in self.versions}
        read = [self._of_store(by_tenant.get(of.store.tenant), of, query.metric) for of in stores]
        targets: dict[SeriesOf, _SeriesTargets] = {}
        of_unknown: dict[SeriesOf, _SeriesTargets] = {}
        for number, (of, own) in enumerate(zip(stores, await asyncio.gather(*read), strict=True), 1):
            _add_store(query, of, own, of_unknown if of.store.id in unknown else targets)
            if not number % STORES_AT_ONCE or len(of.range.labels) > POINTS_AT_ONCE:
                await asyncio.sleep(0)  # other requests have their turn
        shared = response.currency if isinstance(response.currency, str) else None
        shown = {_series_of(query, each, shared) for each in response.series if not each.other}
        for series in response.series:
            key = _series_of(query, series, shared)
            found = targets.get(key) or of_unknown.get(key) or _SeriesTargets()
            if series.other:
                found = _rest(targets, shown, key[-1]) or _rest(of_unknown, shown, key[-1]) or _SeriesTargets()
            code = key[-1] if isinstance(key[-1], str) else None
            digits = currency(code).digits if code and query.metric.unit == "money" else None
            _attach_series(series, found, digits, known_until)
            if any(point.partial is True for point in series.points):
                response.partial = True
            if len(series.points) > POINTS_AT_ONCE:
                await asyncio.sleep(0)  # likewise
        response.compare, response.change_unit = "target", "percent"

    async def _of_store(self, version: TargetSet | None, of: StoreQuery, metric: Metric) -> Mapping[date, int]:
        return {} if version is None else await self.reader.of_store(version, of.store.id, metric.id)


def refuse_without_targets(query: ResolvedQuery) -> None:
    """Refuse a comparison with targets that has no meaning. Raises BadQuestionError."""
    metric = query.metric
    if not can_have_targets(metric, {view.name: view for view in query.views}):
        message = f"`{metric.id}` has no targets: it is not a sum, so targets of days do not add up."
        raise BadQuestionError(message, do="Compare the sums that it is made of with their targets.")
    if query.by or query.reads_attributes:
        message = "Targets are of whole stores, not of parts of their sales."
        raise BadQuestionError(message, do="Leave dimensions and products out, or `compare=target`.")
    if query.grain in _TOO_FINE:
        message = f"Targets are of business days, which `grain={query.grain}` splits."
        raise BadQuestionError(message, do="Use `grain=day` or a coarser one.")
    if query.only_open or query.only_covered:
        message = "Targets are of whole business days, and `hours=open` or `only_covered` leaves windows out."
        raise BadQuestionError(message, do="Leave it out.")
    for of in query.stores:
        if BusinessDays.of(of.store, of.range.days.zone) != of.range.days or of.zone != of.store.timezone:
            message = f"Targets are of the business days of store `{of.store.id}`, in `{of.store.timezone}`."
            raise BadQuestionError(message, do="Leave `timezone` out.")
        if not _is_whole(of.range):
            message = f"Targets are of whole business days, and the range cuts one of store `{of.store.id}`."
            raise BadQuestionError(message, do="Give `from` and `to` as dates.")


class _PointDays(NamedTuple):
    """The business days of a point, the number of its label and its first date, and where its windows end."""

    days: tuple[date, ...]
    number: int
    first: date
    end: int


@lru_cache(maxsize=64)
def _points_of(at: QueryRange) -> tuple[_PointDays, ...]:
    """The days of each point of a range, which many stores share."""
    line, labels = timeline(at.grain, at.days, *at.span), at.labels
    found: dict[int, list[tuple[date, int]]] = {}
    for day, span in at.days.touched(at.span):
        found.setdefault(line.point_of(span.start), []).append((day, span.end))
    return tuple(
        _PointDays(tuple(day for day, _ in days), labels[place].number, labels[place].day or days[0][0], days[-1][1])
        for place, days in found.items()
    )


@lru_cache(maxsize=64)
def _is_whole(at: QueryRange) -> bool:
    return at.days.whole(at.span) == at.span


def _add_store(
    query: ResolvedQuery, of: StoreQuery, own: Mapping[date, int], targets: dict[SeriesOf, _SeriesTargets]
) -> None:
    """Add the targets of one store to the series that it is in, by business day."""
    store, points = of.store, _points_of(of.range)
    code = store.currency.code if query.metric.is_of_money else None
    changes = query.attributes == "as_then" and any(version.valid_from for version in store.groups)
    if not (query.groups and changes):
        groups = (store.current_group(name) for name in query.groups)
        key: SeriesOf = (*groups, code) if query.merges_stores else (store.id, code)
        series = targets.setdefault(key, _SeriesTargets())
        for days, number, first, end in points:
            series.at(number, first, end).add(own, days)
        return
    for days, number, first, end in points:
        for day in days:
            key = (*(store.group(name, day) for name in query.groups), code)
            targets.setdefault(key, _SeriesTargets()).at(number, first, end).add(own, (day,))


def _series_of(query: ResolvedQuery, series: Series, shared: str | None) -> SeriesOf:
    code = (series.currency if isinstance(series.currency, str) else shared) if query.metric.is_of_money else None
    if isinstance(series.store, str):
        return series.store, code
    groups = {} if isinstance(series.group, UnsetType) else series.group
    return (*(groups.get(name) for name in query.groups), code)


def _rest(
    targets: Mapping[SeriesOf, _SeriesTargets], shown: Collection[SeriesOf], code: object
) -> _SeriesTargets | None:
    """The targets of all series of a currency that `top` left out, as one; None if there are none."""
    parts = [part for key, part in targets.items() if key not in shown and key[-1] == code]
    found = _SeriesTargets()
    for part in parts:
        for number, target in part.points.items():
            found.at(number, target.first, target.end).merge(target)
    return found if parts else None


def _attach_series(series: Series, found: _SeriesTargets, digits: int | None, known_until: int) -> None:
    by_label = {target.first: target for target in found.points.values()}
    by_weekday = {number // HOURS_OF_A_DAY: target for number, target in found.points.items()}
    for point in series.points:
        if isinstance(point.weekday, int):
            target = by_weekday.get(point.weekday)
        else:
            target = by_label.get(point.business_date) if isinstance(point.business_date, date) else None
        _attach(point, target, digits, known_until)
    days, missing = (sum(getattr(each, name) for each in found.points.values()) for name in ("days", "missing"))
    series.targets = TargetDays(days, missing)


def _attach(point: Point, target: _Target | None, digits: int | None, known_until: int) -> None:
    if target is None or not target.days:
        point.before, point.change, point.attainment, point.before_flags = None, None, None, (NO_TARGET,)
        return
    point.before = _written(target.value, digits)
    point.partial = True if target.end > known_until else UNSET
    point.change = point.attainment = None
    if target.missing:
        point.before_flags = (TARGETS_MISSING,)
    elif target.value and not isinstance(point.value, Sequence) and point.value is not None:
        value, wanted = Fraction(point.value), Fraction(target.value, _MILLION)
        point.change = float(100 * (value - wanted) / abs(wanted))
        point.attainment = float(100 * value / wanted) if wanted > 0 else None


def _written(millionths: int, digits: int | None) -> Number:
    """In the major unit of a currency with so many digits, or as a number of pieces or hours."""
    if digits is not None:
        return money(millionths * 10**digits // _MILLION, digits)
    whole, rest = divmod(millionths, _MILLION)
    return float(Fraction(millionths, _MILLION)) if rest else whole
