"""Stage 1, resolve: from a request to a query in which every name is looked up and every time is known.

Pure: it reads the registered stores and the catalogue that it is given, and nothing else. What cannot be answered is
refused here, before anything is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.api.limits import RANGES, Ranges
from serving_layer.compare.calendar import ComparisonCalendar, comparison_calendar
from serving_layer.compare.comparable_stores import FirstDates, left_out
from serving_layer.context.kinds import context_names
from serving_layer.errors import BadQuestionError, TooManyMetricsError
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.sensor_coverage import PROOFS, sensor_sources
from serving_layer.query.stores import PageRequest
from serving_layer.query.timeline import GRAINS, Grain, QueryRange, Timeline, read_bound, timeline, zone_named
from serving_layer.responses.metrics import LeftOut
from views.core import View
from views.core.local_time import STEP, BusinessDays, Span, round_down, round_up
from views.core.metric import Metric

Hours = Literal["all", "open"]
DAY = 86_400
BY_STORE, BY_TOTAL = "store", "total"
MOST_METRICS = 10
"""How many metrics one answer may hold."""


@dataclass(frozen=True)
class MetricRequest:
    """A request for one metric over time, as the caller wrote it.

    Attributes:
        metric: its id.
        stores: ids; none means all registered stores that the caller may see.
        start: an instant with offset, or a date in the time zone of the query; inclusive.
        end: likewise; exclusive.
        grain: None for days, or the first grain that the metric has a meaning at.
        timezone: None for that of each store.
        by: what to split by: dimensions, and `store` (the default) or `total`.
        partial: answer without the speed layer if that cannot be read.
        as_of: the number of the publication that alone is read; None for both layers as they are now.
        hours: which windows count.
        compare: what points are compared with; None for nothing.
        comp: comparable stores only.
        context: the kinds of context rows, separated by commas; None for none.
        only_covered: only windows in which the sensors were alive.
    """

    metric: str
    stores: tuple[str, ...]
    start: str
    end: str
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


class StoreQuery(NamedTuple):
    """One store of a query.

    Attributes:
        store: the store.
        zone: the name of the time zone of its answer: the store's own, or the one asked for.
        timeline: assigns its windows to points.
        range: when the query is about, in its business days.
        calendar: which dates its dates are compared with; None if nothing is compared.
    """

    store: Store
    zone: str
    timeline: Timeline
    range: QueryRange
    calendar: ComparisonCalendar | None = None


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
        only_open: `hours=open` was asked for.
        compare: as it was asked for; None if nothing is compared.
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
    only_open: bool = False
    compare: str | None = None
    left_out: Sequence[LeftOut] | None = None
    context: tuple[str, ...] = ()
    only_covered: bool = False
    proofs: tuple[View, ...] = ()

    @property
    def counts_open_windows(self) -> bool:
        """Whether only windows inside the opening hours count: asked for, or because of the metric."""
        return self.only_open or self.metric.is_open_only

    @property
    def needs_whole_days(self) -> bool:
        """Whether terms of the formula go through the windows one by one, from the start of the business day."""
        return any(term.is_sequential for term in self.metric.terms.values())


def metric_names(text: str) -> tuple[str, ...]:
    """The ids of metrics in a path, separated by commas.

    Raises:
        BadQuestionError: a name is empty, or comes twice.
        TooManyMetricsError: more than one answer may hold.
    """
    names = tuple(name.strip() for name in text.split(","))
    if len(names) > MOST_METRICS:
        message = f"{len(names)} metrics in one answer are more than {MOST_METRICS}."
        raise TooManyMetricsError(message, do="Ask in several questions.")
    if len(names) > 1 and not all(names):
        message = f"`metric={text}` has a comma without a name beside it."
        raise BadQuestionError(message, do="Separate names by one comma each.")
    if len(set(names)) < len(names):
        message = f"`metric={text}` names a metric twice."
        raise BadQuestionError(message, do="Name each metric once.")
    return names


def resolve(request: MetricRequest, stores: Sequence[Store], catalogue: Catalogue) -> ResolvedQuery:
    """Look up every name of a request, and read its range in the time zone of each store.

    Args:
        request: as the caller wrote it; its `stores` are not read.
        stores: the stores that it is about.
        catalogue: the registered views and metrics, and the longest ranges.

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
    _refuse_unsplittable(split.dimensions, metric, views)
    if split.merges_stores:
        _refuse_unmergeable(request, metric)
    grain = _grain(request, metric)
    context = () if request.context is None else context_names(request.context, catalogue.views)
    queries = [_store_query(request, store, metric, grain, catalogue.ranges) for store in stores]
    missing = [found for each in queries if (found := _left_out(each))] if request.comp else None
    excluded = {each.store for each in missing or ()}
    return ResolvedQuery(
        metric=metric,
        views=views,
        grain=grain,
        by=split.dimensions,
        stores=[each for each in queries if each.store.id not in excluded],
        merges_stores=split.merges_stores,
        only_open=request.hours == "open",
        compare=request.compare,
        left_out=missing,
        context=context,
        only_covered=request.only_covered,
        proofs=_proofs(request, metric, views, catalogue.views),
    )


def query_span(start: str, end: str, days: BusinessDays, grain: Grain, ranges: Ranges = RANGES) -> Span:
    """The whole windows that cover a range, in seconds since 1970.

    Args:
        start: an instant with offset, or a date; inclusive.
        end: likewise; exclusive.
        days: the business days that dates mean.
        grain: of the points; fine grains have shorter ranges.
        ranges: how many days a range may have.

    Raises:
        BadQuestionError: a time cannot be read, or the end is not after the start.
        RangeTooLongError: too many days.
    """
    first, last = round_down(read_bound(start, days.start, "from")), round_up(read_bound(end, days.start, "to"))
    if last - first < STEP:
        raise BadQuestionError(f"`to={end}` is not after `from={start}`.", do="`from` is inclusive and `to` exclusive.")
    length = (last - first) / DAY
    fine, coarse = ranges.fine_days, ranges.coarse_days
    if grain in ("15m", "hour") and length > fine:
        fits = "`grain=day`" if length <= coarse else f"at most {fine} days"
        raise RangeTooLongError(f"{length:.0f} days at `{grain}` are more than {fine}.", do=f"Ask with {fits}.")
    if length > coarse:
        do = f"Ask for {coarse} days at a time, with `grain=year`."
        raise RangeTooLongError(f"{length:.0f} days are more than {coarse}.", do=do)
    return Span(first, last)


class SplitBy(NamedTuple):
    """What `by=` asks for. `merges_stores`: series add up stores. `dimensions`: those that split the answer."""

    merges_stores: bool
    dimensions: tuple[str, ...]


def split_by(by: Sequence[str]) -> SplitBy:
    """Tell what `by=` says of stores from the dimensions in it.

    Raises:
        BadQuestionError: a series would be of one store and of several.
    """
    names = tuple(dict.fromkeys(by))
    if BY_STORE in names and BY_TOTAL in names:
        message = "`by=store` and `by=total` contradict each other: a series is of one store, or adds up several."
        raise BadQuestionError(message, do="Leave one of them out.")
    return SplitBy(BY_TOTAL in names, tuple(name for name in names if name not in (BY_STORE, BY_TOTAL)))


def _refuse_unsplittable(by: Sequence[str], metric: Metric, views: Sequence[View]) -> None:
    if by and not metric.is_split:
        raise BadQuestionError(f"`{metric.id}` cannot be split.", do=f"Leave `by={by[0]}` out.")
    splittable = {name for view in views for name in view.dimensions}
    for name in by:
        if name not in splittable:
            raise UnknownNameError("dimension", name, {*splittable, BY_STORE, BY_TOTAL})
    if not any(set(by) <= set(view.dimensions) for view in views):
        message = f"No view of `{metric.id}` has all of {', '.join(by)}."
        raise BadQuestionError(message, do="Split by one of them.")


def _refuse_unmergeable(request: MetricRequest, metric: Metric) -> None:
    if any(term.is_sequential for term in metric.terms.values()):
        message = f"`{metric.id}` has no total over stores: it goes through the windows of one store in order."
        raise BadQuestionError(message, do="Ask with `by=store`.")
    if request.context is not None:
        message = "`context` has rows per store, and the series of this answer add up stores."
        raise BadQuestionError(message, do="Leave `context` out, or ask with `by=store`.")


def _grain(request: MetricRequest, metric: Metric) -> Grain:
    allowed = [grain for grain in GRAINS if not metric.grains or grain in metric.grains]
    grain = request.grain or (metric.grains or ("day",))[0]
    found = next((each for each in allowed if each == grain), None)
    if found is None:
        message = f"`{metric.id}` has no meaning at `grain={grain}`."
        raise BadQuestionError(message, do=f"Ask with one of: {', '.join(allowed)}.")
    return found


def _store_query(request: MetricRequest, store: Store, metric: Metric, grain: Grain, ranges: Ranges) -> StoreQuery:
    zone = request.timezone or store.timezone
    days = BusinessDays.of(store, zone_named(zone))
    span = query_span(request.start, request.end, days, grain, ranges)
    at = QueryRange(days, days.whole(span) if metric.whole_days else span, grain)
    calendar = None if request.compare is None else comparison_calendar(request.compare, store, at)
    return StoreQuery(store, zone, timeline(grain, days, *at.span), at, calendar)


def _left_out(of: StoreQuery) -> LeftOut | None:
    compared = next(of.calendar.days(of.range.first, of.range.last), None) if of.calendar else None
    return left_out(of.store, FirstDates(of.range.first, compared))


def _proofs(
    request: MetricRequest, metric: Metric, views: Sequence[View], registered: Mapping[str, View]
) -> tuple[View, ...]:
    reads_proofs = request.comp or request.only_covered or "low_coverage" in metric.flags
    if not (reads_proofs or split_by(request.by).merges_stores):
        return ()
    sources = sensor_sources(views)
    return tuple(registered[name] for name, proven in PROOFS.items() if proven & sources and name in registered)
