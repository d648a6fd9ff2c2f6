"""Stage 1, resolve: from a request to a query in which every name is looked up and every time is known.

Pure: it reads the registered stores and the catalogue that it is given, and nothing else. What cannot be answered is
refused here, before anything is read.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property, partial
from typing import Literal, NamedTuple

from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.compare.calendar import PERIOD, TARGET, ComparisonCalendar, comparison_calendar, previous_period
from serving_layer.compare.comparable_stores import FirstDates, left_out
from serving_layer.errors import BadQuestionError, TooManyMetricsError
from serving_layer.limits import RANGES, Ranges
from serving_layer.off_loop import long_answer, off_loop
from serving_layer.products.dimensions import (
    ALL_PRODUCTS,
    BRAND,
    CATEGORY,
    PRODUCT_DIMENSIONS,
    SKU,
    Attributes,
    ProductSelection,
    attribute,
    dimension_of,
    is_product_dimension,
)
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.context import context_names
from serving_layer.query.ranges import AskedRange, RangeName
from serving_layer.query.sensor_coverage import PROOFS, sensor_sources
from serving_layer.query.stores import PageRequest
from serving_layer.responses.metrics import LeftOut
from serving_layer.timeline import GRAINS, Grain, QueryRange, Timeline, read_bound, zone_named
from views.core import View
from views.core.formula import FormulaValue
from views.core.local_time import ONE_DAY, STEP, BusinessDays, Span, round_down, round_up
from views.core.metric import Metric

Hours = Literal["all", "open"]
Sort = Literal["value", "-value", "change", "-change", "name"]
BY_STORE, BY_TOTAL, BY_GROUP = "store", "total", "group:"
MOST_TOP = 1000
"""The greatest `top`."""
MOST_METRICS = 10
"""How many metrics one answer may hold."""
CELLS_PER_STORE, CELLS_PER_RANGE = 10, 1000
"""How many cells take as long as resolving a store, and as reading a range in one kind of days."""
CELLS_PER_LABEL = 5
"""How many cells take as long as finding one point of a range."""
MOST_LABELS = 20_000
"""More are found as a part of a long answer."""
_DAY = 96 * STEP


@dataclass(frozen=True)
class MetricRequest:
    """A request for one metric over time, as the caller wrote it.

    Attributes:
        metric: its id.
        stores: ids; none means all registered stores that the caller may see.
        start: an instant with offset, a date in the time zone of the query, or a day counted from today such as `-7d`;
            inclusive. None if `range` is there.
        end: likewise; exclusive. None for the end of today.
        range: the name of a range, instead of both.
        now: the instant that relative days are counted from, in seconds since 1970; the service says it.
        grain: None for days, or the first grain that the metric has a meaning at.
        timezone: None for that of each store.
        by: what to split by: dimensions, and `store` (the default), `total`, or groups such as `group:region`.
        partial: answer without the speed layer if that cannot be read.
        as_of: the number of the publication that alone is read; None for both layers as they are now.
        hours: which windows count.
        compare: what points are compared with; None for nothing.
        comp: comparable stores only.
        context: the kinds of context rows, separated by commas; None for none.
        only_covered: only windows in which the sensors were alive.
        attributes: whether groups of stores and attributes of products are those of each business day, or those of the
            newest version.
        sort: the order of series; None for that of stores, groups and dimensions.
        top: how many series are kept; the rest becomes one. None for all.
        share: whether points say which part of the total they are.
        category: paths such as `Food/Dairy`; only products in one of them, or below it, count. None means all.
        brand: only products of one of these count.
        sku: only these count.
        known_groups: the groups of all stores that the caller may see; the service says them.
    """

    metric: str
    stores: tuple[str, ...]
    start: str | None
    end: str | None
    _: KW_ONLY
    grain: Grain | None = None
    timezone: str | None = None
    by: tuple[str, ...] = ()
    partial: bool = False
    as_of: int | None = None
    hours: Hours = "all"
    compare: str | None = None
    comp: bool = False
    context: str | None = None
    only_covered: bool = False
    attributes: Attributes = "as_then"
    sort: Sort | None = None
    top: int | None = None
    share: bool = False
    category: tuple[str, ...] = ()
    brand: tuple[str, ...] = ()
    sku: tuple[str, ...] = ()
    range: RangeName | None = None
    now: int | None = None
    known_groups: frozenset[str] = frozenset()

    @property
    def reads_targets(self) -> bool:
        """Whether points are compared with targets."""
        return self.compare == TARGET

    @property
    def is_ranked(self) -> bool:
        """Whether series are sorted, cut, or compared with their total."""
        return self.sort is not None or self.top is not None or self.share

    @property
    def selection(self) -> ProductSelection:
        """Which products count. Raises BadQuestionError if it cannot be read."""
        return ProductSelection.read(self.category, self.brand, self.sku)

    @cached_property
    def reads_products(self) -> bool:
        """Whether the answer depends on the product master."""
        by = split_by(self.by).dimensions
        return bool(self.category or self.brand or SKU in by or any(map(is_product_dimension, by)))


@dataclass(frozen=True)
class MetricsRequest:
    """Requests that differ in the metric alone. `is_table`: the answer becomes a file, where nobody sees `next`."""

    requests: tuple[MetricRequest, ...]
    page: PageRequest = field(default_factory=PageRequest)
    is_table: bool = False

    @property
    def first(self) -> MetricRequest:
        """The first of them, for everything in which they are the same."""
        return self.requests[0]


class Ranking(NamedTuple):
    """How series are ordered and cut: see `MetricRequest`. `sort`: None only if nothing is cut."""

    sort: Sort | None = None
    top: int | None = None
    share: bool = False


class StoreQuery(NamedTuple):
    """One store of a query.

    Attributes:
        store: the store.
        zone: the name of the time zone of its answer: the store's own, or the one asked for.
        range: when the query is about, in its business days.
        calendar: which dates its dates are compared with; None if nothing is compared.
    """

    store: Store
    zone: str
    range: QueryRange
    calendar: ComparisonCalendar | None = None

    @property
    def timeline(self) -> Timeline:
        """Assigns its windows to points; found once per range, which takes long for many points."""
        return self.range.timeline


@dataclass(frozen=True)
class ResolvedQuery:
    """A request for one metric with everything looked up.

    Attributes:
        metric: the metric.
        views: those that its formula reads, its own first.
        grain: the grain of the points.
        by: the dimensions that split the answer.
        stores: the stores, without those of `left_out`.
        merges_stores: a series adds up stores; otherwise each is of one.
        groups: the names of the groups by which stores are added up; none for one total.
        attributes: of which time groups and products are.
        selection: the products that count.
        asked: the range as it was asked for, if it is relative to today.
        ranking: how series are ordered and cut; None if they are not.
        only_open: `hours=open` was asked for.
        compare: as it was asked for; None if nothing is compared, or only with targets.
        reads_targets: points are compared with targets.
        left_out: the stores that are not comparable, by what the registry knows; None if all stores were asked for.
        context: the kinds of context rows.
        only_covered: only windows in which the sensors were alive count.
        proofs: the views that prove how long sensors were alive; none if the answer does not depend on it.
    """

    metric: Metric
    views: tuple[View, ...]
    grain: Grain
    by: tuple[str, ...]
    stores: Sequence[StoreQuery]
    merges_stores: bool = False
    groups: tuple[str, ...] = ()
    attributes: Attributes = "as_then"
    selection: ProductSelection = ALL_PRODUCTS
    asked: AskedRange | None = None
    ranking: Ranking | None = None
    only_open: bool = False
    compare: str | None = None
    reads_targets: bool = False
    left_out: Sequence[LeftOut] | None = None
    context: tuple[str, ...] = ()
    only_covered: bool = False
    proofs: tuple[View, ...] = ()

    @property
    def counts_open_windows(self) -> bool:
        """Whether only windows inside the opening hours count: asked for, or because of the metric."""
        return self.only_open or self.metric.is_open_only

    @property
    def leaves_windows_out(self) -> bool:
        """Whether some windows of a day may not count, so that whole days cannot answer."""
        return self.counts_open_windows or self.only_covered

    @property
    def needs_whole_days(self) -> bool:
        """Whether terms of the formula go through the windows one by one, from the start of the business day."""
        return any(term.is_sequential for term in self.metric.terms.values())

    @cached_property
    def range_dates(self) -> frozenset[tuple[date, date]]:
        """First and last (exclusive) business date per store, if the range is relative to today; one if they agree."""
        return frozenset((of.range.first, of.range.last) for of in self.stores) if self.asked else frozenset()

    @property
    def reads_attributes(self) -> bool:
        """Whether the values depend on the product master; titles of series do as well."""
        return self.selection.needs_master or any(map(is_product_dimension, self.by))


def metric_names(text: str) -> tuple[str, ...]:
    """The ids of metrics in a path, separated by commas.

    Raises:
        BadQuestionError: a name is empty, or comes twice.
        TooManyMetricsError: more than one answer may hold.
    """
    names = tuple(name.strip() for name in text.split(","))
    if len(names) > MOST_METRICS:
        message = f"A request can name at most {MOST_METRICS} metrics; this one names {len(names)}."
        raise TooManyMetricsError(message, do="Split it into several requests.")
    if len(names) > 1 and not all(names):
        message = f"`metric={text}` has a comma without a name beside it."
        raise BadQuestionError(message, do="Separate names by one comma each.")
    if len(set(names)) < len(names):
        message = f"`metric={text}` names a metric twice."
        raise BadQuestionError(message, do="Name each metric once.")
    return names


async def resolve_all(
    requests: Sequence[MetricRequest], stores: Sequence[Store], catalogue: Catalogue
) -> list[ResolvedQuery]:
    """Resolve the requests of one answer, off the event loop if there are many stores or kinds of business days.

    The ranges are found once for all requests and stores that have the same. For arguments and errors see `resolve`.
    """
    days = {(store.timezone, store.day_starts_at, store.week_starts_on) for store in stores}
    ranges = StoreRanges(catalogue.ranges)

    def resolved() -> list[ResolvedQuery]:
        return [resolve(request, stores, catalogue, ranges) for request in requests]

    cells = len(requests) * len(stores) * CELLS_PER_STORE + len(days) * CELLS_PER_RANGE
    queries = await off_loop(cells, resolved)
    of_stores = {id(of.range): of.range for query in queries for of in query.stores}.values()
    labels = sum(map(_about_how_many_labels, of_stores))
    with long_answer() if labels > MOST_LABELS else nullcontext():
        for each in of_stores:  # with the weight of all: many short ranges take as long as a long one
            await off_loop(CELLS_PER_LABEL * labels, partial(_find_points, each))
    return queries


def _find_points(of: QueryRange) -> None:
    _ = of.labels, of.timeline.bounds  # kept, for all stages


def _about_how_many_labels(of: QueryRange) -> int:
    seconds = {"15m": STEP, "hour": 4 * STEP, "hour_of_week": 4 * STEP}.get(of.grain, _DAY)
    return (of.span.end - of.span.start) // seconds


def resolve(
    request: MetricRequest, stores: Sequence[Store], catalogue: Catalogue, ranges: "StoreRanges | None" = None
) -> ResolvedQuery:
    """Look up every name of a request, and read its range in the time zone of each store.

    Args:
        request: as the caller wrote it; its `stores` are not read.
        stores: the stores that it is about.
        catalogue: the registered views and metrics, and the longest ranges.
        ranges: those that were read for other requests of the same answer; None: there are none.

    Raises:
        UnknownNameError: no metric, dimension, comparison, holiday or kind of context has this name.
        BadQuestionError: the metric has no meaning at this grain or cannot be split so, or a time cannot be read.
        RangeTooLongError: the range has more days than the grain allows.
        NotAvailableError: no registered view has this kind of context.
        CountryUnknownError: a comparison by holidays, and a store does not say where it is.
    """
    if request.metric not in catalogue.metrics:
        raise UnknownNameError("metric", request.metric, catalogue.metrics)
    metric = catalogue.metrics[request.metric]
    views = tuple(catalogue.views[name] for name in metric.views)
    split = split_by(request.by)
    selection = request.selection
    _refuse_without_items(request, split.dimensions, metric, catalogue)
    _refuse_unsplittable(split.dimensions, metric, views)
    if split.merges_stores or request.is_ranked:
        _refuse_unmergeable(request, metric)
    _refuse_unknown_groups(split.groups, request.known_groups.union(*(store.group_names for store in stores)))
    grain = _grain(request, metric)
    context = () if request.context is None else context_names(request.context, catalogue.views)
    asked = AskedRange(request.start, request.end, request.range)
    adds_stores = split.merges_stores or bool((request.top or request.share) and not split.dimensions)
    if adds_stores:
        _refuse_different_weeks(asked, grain, stores)
        request = _with_dates_of_all(request, asked, stores)
    read = ranges or StoreRanges(catalogue.ranges)
    at = [read.of(request, store, grain, whole_days=metric.whole_days) for store in stores]
    has_one_calendar = adds_stores and request.compare == PERIOD
    calendar = previous_period(list(dict.fromkeys(at))) if has_one_calendar and at else None
    queries = [_store_query(request, store, own, calendar) for store, own in zip(stores, at, strict=True)]
    missing = [found for each in queries if (found := _left_out(each))] if request.comp else None
    excluded = {each.store for each in missing or ()}
    return ResolvedQuery(
        metric=metric,
        views=views,
        grain=grain,
        by=split.dimensions,
        stores=[each for each in queries if each.store.id not in excluded],
        merges_stores=split.merges_stores,
        groups=split.groups,
        attributes=request.attributes,
        selection=selection,
        asked=asked if asked.is_relative else None,
        ranking=_ranking(request, metric, views) if request.is_ranked else None,
        only_open=request.hours == "open",
        compare=None if request.reads_targets else request.compare,
        reads_targets=request.reads_targets,
        left_out=missing,
        context=context,
        only_covered=request.only_covered,
        proofs=_proofs(request, metric, views, catalogue.views),
    )


def query_span(  # noqa: PLR0913 - a range in three parts, and what it is read with
    start: str | None,
    end: str | None,
    days: BusinessDays,
    grain: Grain,
    ranges: Ranges = RANGES,
    *,
    name: RangeName | None = None,
    now: int | None = None,
) -> Span:
    """The whole windows that cover a range, in seconds since 1970.

    Args:
        start: an instant with offset, a date, or a day counted from today; inclusive. None if there is a name.
        end: likewise; exclusive. None for the end of today.
        days: the business days that dates mean.
        grain: of the points; fine grains have shorter ranges.
        ranges: how many days a range may have.
        name: of a range, instead of start and end.
        now: what relative days are counted from, in seconds since 1970; None if there are none.

    Raises:
        BadQuestionError: a time cannot be read, or the end is not after the start.
        RangeTooLongError: too many days.
    """
    start, end = AskedRange(start, end, name).bounds(days, now)
    first, last = round_down(read_bound(start, days.start, "from")), round_up(read_bound(end, days.start, "to"))
    if last - first < STEP:
        raise BadQuestionError(f"`to={end}` is not after `from={start}`.", do="`from` is inclusive and `to` exclusive.")
    length = (last - first) / ONE_DAY.total_seconds()
    fine, coarse = ranges.fine_days, ranges.coarse_days
    if grain in ("15m", "hour") and length > fine:
        fits = "`grain=day`" if length <= coarse else f"at most {fine} days"
        raise RangeTooLongError(
            f"A range at `grain={grain}` can have at most {fine} days; this one has {length:.0f}.", do=f"Use {fits}."
        )
    if length > coarse:
        do = f"Request {coarse} days at a time, with `grain=year`."
        raise RangeTooLongError(f"A range can have at most {coarse} days; this one has {length:.0f}.", do=do)
    return Span(first, last)


class StoreRanges:
    """The ranges of an answer: read once for all stores whose business days are alike."""

    def __init__(self, ranges: Ranges) -> None:
        """`ranges`: how many days a range may have."""
        self._most = ranges
        self._read: dict[tuple[object, ...], QueryRange] = {}

    def of(self, request: MetricRequest, store: Store, grain: Grain, *, whole_days: bool) -> QueryRange:
        """The range of a request in the days of a store.

        Args:
            request: says when, and may name a time zone.
            store: whose days count.
            grain: of the points.
            whole_days: widen the range to whole business days.

        Raises:
            BadQuestionError, RangeTooLongError: see `query_span`.
        """
        zone, own = request.timezone or store.timezone, (store.day_starts_at, store.week_starts_on)
        key = (zone, *own, request.start, request.end, request.range, request.now, grain, whole_days)
        if key not in self._read:
            days = BusinessDays.of(store, zone_named(zone))
            bounds = request.start, request.end
            span = query_span(*bounds, days, grain, self._most, name=request.range, now=request.now)
            self._read[key] = QueryRange(days, days.whole(span) if whole_days else span, grain)
        return self._read[key]


class SplitBy(NamedTuple):
    """What `by=` asks for.

    Attributes:
        merges_stores: series add up stores.
        groups: the names of the groups by which they do; none for one total.
        dimensions: those that split the answer.
    """

    merges_stores: bool
    groups: tuple[str, ...]
    dimensions: tuple[str, ...]


def split_by(by: Sequence[str]) -> SplitBy:
    """Tell what `by=` says of stores from the dimensions in it.

    Raises:
        BadQuestionError: a series would be of one store and of several, or a group has no name.
    """
    names = tuple(dict.fromkeys(by))
    if not all(names):
        raise BadQuestionError("`by` has an empty name.", do="Separate names by one comma each, or leave `by` out.")
    groups = tuple(name.removeprefix(BY_GROUP) for name in names if name.startswith(BY_GROUP))
    of_stores = [name for name in (BY_STORE, BY_TOTAL) if name in names] + [f"{BY_GROUP}{name}" for name in groups[:1]]
    if len(of_stores) > 1:
        one, other = of_stores[:2]
        message = f"`by={one}` and `by={other}` contradict each other: they say which stores a series is of."
        raise BadQuestionError(message, do="Leave one of them out.")
    if not all(groups):
        raise BadQuestionError(f"`by={BY_GROUP}` names no group.", do=f"Write `by={BY_GROUP}region`.")
    rest = tuple(name for name in names if name not in (BY_STORE, BY_TOTAL) and not name.startswith(BY_GROUP))
    return SplitBy(bool(groups) or BY_TOTAL in names, groups, rest)


def _refuse_without_items(request: MetricRequest, by: Sequence[str], metric: Metric, catalogue: Catalogue) -> None:
    """Refuse products where nothing is counted by SKU, and say what is."""
    split = next((name for name in by if name == SKU or is_product_dimension(name)), None)
    only = next((name for name in (CATEGORY, BRAND, SKU) if getattr(request, name)), None)
    if not (split or only) or _has_items(metric, catalogue):
        return
    others = [f"`{each.id}`" for each in catalogue.metrics.values() if each.is_split and _has_items(each, catalogue)]
    message = f"`{metric.id}` does not count by SKU"
    do = f"Use one of: {', '.join(others)}."
    if split:
        raise UnknownNameError("dimension", split, (), do=f"{message}. {do}")
    raise BadQuestionError(f"{message}, so it has no `{only}`.", do=do)


def _has_items(metric: Metric, catalogue: Catalogue) -> bool:
    return any(SKU in catalogue.views[name].dimensions for name in metric.views)


def _refuse_unsplittable(by: Sequence[str], metric: Metric, views: Sequence[View]) -> None:
    if by and not metric.is_split:
        raise BadQuestionError(f"`{metric.id}` cannot be split.", do=f"Leave `by={by[0]}` out.")
    known = {name for view in views for name in view.dimensions} | {BY_STORE, BY_TOTAL, f"{BY_GROUP}NAME"}
    known |= set(PRODUCT_DIMENSIONS) if SKU in known else set()
    for name in by:
        if name in GRAINS:
            raise UnknownNameError("dimension", name, (), do=f"Time is split by `grain`: use `grain={name}`.")
        if not any(dimension_of(view, name) for view in views):
            raise UnknownNameError("dimension", name, known)
        if is_product_dimension(name):
            attribute(name)
    if not set(metric.needs_by) <= set(by):
        needed = " and ".join(f"`{name}`" for name in metric.needs_by)
        message = f"`{metric.id}` is defined per {needed}, so it cannot be added up."
        raise BadQuestionError(message, do=f"Split it with `by={','.join(metric.needs_by)}`.")
    if not any(all(dimension_of(view, name) for name in by) for view in views):
        message = f"No view of `{metric.id}` has all of {', '.join(by)}."
        raise BadQuestionError(message, do="Split by one of them.")


def _refuse_unmergeable(request: MetricRequest, metric: Metric) -> None:
    if any(term.is_sequential for term in metric.terms.values()):
        message = f"`{metric.id}` has no total over stores: it is computed from the windows of one store in order."
        raise BadQuestionError(message, do="Use `by=store`, without `sort`, `top` and `share`.")
    if request.context is not None:
        message = "`context` has rows per store, and the series of this answer are added up or sorted."
        raise BadQuestionError(message, do="Leave `context` out, or use `by=store`, without `sort` and `top`.")


def _refuse_unknown_groups(groups: Sequence[str], known: frozenset[str]) -> None:
    for name in groups:
        if name not in known:
            raise UnknownNameError("group", name, known)


def _refuse_different_weeks(asked: AskedRange, grain: Grain, stores: Sequence[Store]) -> None:
    """Weeks that begin on different days have no total."""
    if grain != "week" and "week" not in (asked.name or ""):
        return
    first: dict[str, str] = {}
    for store in stores:
        first.setdefault(store.week_starts_on, store.id)
    if len(first) > 1:
        (one, of_one), (other, of_other) = list(first.items())[:2]
        message = f"The week of store `{of_one}` begins on `{one}`, and that of store `{of_other}` on `{other}`."
        do = "Request days with `from` and `to`, or name stores whose weeks begin on the same day with `store=`."
        raise BadQuestionError(message, do=do)


def _with_dates_of_all(request: MetricRequest, asked: AskedRange, stores: Sequence[Store]) -> MetricRequest:
    """The request with one pair of dates for stores that are added up: today has begun in all of them."""
    if request.now is None or not asked.is_relative:
        return request
    zones = {(store.timezone, store.day_starts_at): store for store in stores}.values()
    every = [BusinessDays.of(store, zone_named(request.timezone or store.timezone)) for store in zones]
    if not every:
        return request
    start, end = asked.bounds(min(every, key=lambda days: days.day_of(request.now or 0)), request.now)
    return replace(request, start=start, end=end, range=None)


def _ranking(request: MetricRequest, metric: Metric, views: Sequence[View]) -> Ranking:
    sort = request.sort or ("-value" if request.top else None)
    if sort in ("change", "-change") and (request.compare is None or request.reads_targets):
        message = f"`sort={sort}` needs an earlier time to compare with."
        raise BadQuestionError(message, do="Add `compare=previous_week`, or sort by `value`.")
    if sort not in (None, "name") and metric.unit == "list":
        raise BadQuestionError(f"`{metric.id}` is a list, which has no order.", do="Sort by `name`, without `top`.")
    if request.share and not adds_up(metric, {view.name: view for view in views}):
        message = f"`{metric.id}` has no share: it is not a sum, so its parts do not add up to the total."
        raise BadQuestionError(message, do="Leave `share` out, or request the sums that it is made of.")
    return Ranking(sort, request.top, request.share)


def adds_up(metric: Metric, views: Mapping[str, View]) -> bool:
    """Whether the metric of two sets of events is that of both together: it is linear in states that are summed."""
    terms, formula = metric.terms, metric.formula
    columns = (views[metric.view_of(term)].columns[name] for term in terms.values() for name in term.states)
    if metric.facts or metric.only or any(term.function for term in terms.values()):
        return False
    if not formula.is_sum or any(column.by != "sum" for column in columns):
        return False
    one = {text: 3 * number + 2 for number, text in enumerate(terms)}
    other = {text: -7 * number**2 - 5 for number, text in enumerate(terms)}
    both = {text: one[text] + other[text] for text in terms}
    return _number(formula.value(one)) + _number(formula.value(other)) == _number(formula.value(both))


def _number(value: FormulaValue) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(0)


def _grain(request: MetricRequest, metric: Metric) -> Grain:
    allowed = [grain for grain in GRAINS if not metric.grains or grain in metric.grains]
    grain = request.grain or (metric.grains or ("day",))[0]
    found = next((each for each in allowed if each == grain), None)
    if found is None:
        message = f"`{metric.id}` has no meaning at `grain={grain}`."
        raise BadQuestionError(message, do=f"Use one of: {', '.join(allowed)}.")
    return found


def _store_query(
    request: MetricRequest, store: Store, at: QueryRange, calendar: ComparisonCalendar | None
) -> StoreQuery:
    if calendar is None and request.compare is not None and not request.reads_targets:
        calendar = comparison_calendar(request.compare, store, at)
    return StoreQuery(store, request.timezone or store.timezone, at, calendar)


def _left_out(of: StoreQuery) -> LeftOut | None:
    compared = next(of.calendar.days(of.range.first, of.range.last), None) if of.calendar else None
    return left_out(of.store, FirstDates(of.range.first, compared))


def _proofs(
    request: MetricRequest, metric: Metric, views: Sequence[View], registered: Mapping[str, View]
) -> tuple[View, ...]:
    reads_proofs = request.comp or request.only_covered or "low_coverage" in metric.flags
    if not (reads_proofs or request.top or split_by(request.by).merges_stores):
        return ()
    sources = sensor_sources(views)
    return tuple(registered[name] for name, proven in PROOFS.items() if proven & sources and name in registered)
