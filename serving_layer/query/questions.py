"""A question as it was asked, and how it is understood: names looked up, bounds read in each store's time zone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.api.limits import RANGES, Ranges
from serving_layer.compare.calendar import QueryRange, comparison_calendar
from serving_layer.compare.comparable_stores import Sides, left_out
from serving_layer.context.kinds import context_names
from serving_layer.errors import BadQuestionError
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.resolved_query import ResolvedQuery, StoreTime
from serving_layer.query.sensor_coverage import PROOFS, sensed
from serving_layer.query.timeline import Grain, read_bound, timeline, zone_named
from serving_layer.responses.metrics import LeftOut
from views.core import View
from views.core.local_time import STEP, BusinessDays, Span, round_down, round_up
from views.core.metric import Metric

Hours = Literal["all", "open"]
GRAINS: tuple[Grain, ...] = get_args(Grain)
DAY = 86_400


@dataclass(frozen=True)
class MetricRequest:
    """`start` and `end`: an instant with offset, or a date in the asked zone. No `stores` means all registered ones.

    `as_of`: the number of the publication that alone is the answer; None for both layers as they are now. `comp`: only
    comparable stores. `compare`, `context`: as they were asked; None for nothing beside the points. `grain`: None for
    days, or the first grain that the metric has a meaning at. `only_covered`: only windows in which sensors were alive.
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
class CellsRequest:
    """`start`, `end` and `as_of` as in MetricAsk; bounds are read in the time zone of each store."""

    view: str
    stores: tuple[str, ...]
    start: str
    end: str
    partial: bool = False
    as_of: int | None = None


def resolve(ask: MetricRequest, stores: Sequence[Store], catalogue: Catalogue) -> ResolvedQuery:
    """The question with everything looked up. UnknownNameError, BadQuestionError, RangeTooLongError, NotAvailableError, CountryUnknownError."""
    metrics, views = catalogue.metrics, catalogue.views
    if ask.metric not in metrics:
        raise UnknownNameError("metric", ask.metric, metrics)
    metric = metrics[ask.metric]
    read = tuple(views[name] for name in metric.views)
    _refuse_unsplittable(ask, metric, read)
    grain = _grain(ask, metric)
    context = () if ask.context is None else context_names(ask.context, views)
    times = [_time_of(ask, store, _Grained(metric, grain, catalogue.ranges)) for store in stores]
    missing = [found for each in times if (found := _left_out(each))] if ask.comp else None
    gone = {each.store for each in missing or ()}
    return ResolvedQuery(
        metric,
        read,
        grain,
        ask.by,
        [each for each in times if each.store.id not in gone],
        ask.hours == "open",
        ask.compare,
        missing,
        context,
        ask.only_covered,
        _proofs(ask, metric, read, views),
    )


def _proofs(ask: MetricRequest, metric: Metric, read: Sequence[View], views: Mapping[str, View]) -> tuple[View, ...]:
    """The views that say how long sensors were alive, if the answer depends on that."""
    if not (ask.comp or ask.only_covered or "low_coverage" in metric.flags):
        return ()
    sources = sensed(read)
    return tuple(views[name] for name, proven in PROOFS.items() if proven & sources and name in views)


def _grain(ask: MetricRequest, metric: Metric) -> Grain:
    allowed = [grain for grain in GRAINS if not metric.grains or grain in metric.grains]
    wanted = ask.grain or (metric.grains or ("day",))[0]
    found = next((grain for grain in allowed if grain == wanted), None)
    if found is None:
        message = f"`{metric.id}` has no meaning at `grain={wanted}`."
        raise BadQuestionError(message, do=f"Ask with one of: {', '.join(allowed)}.")
    return found


def _refuse_unsplittable(ask: MetricRequest, metric: Metric, read: Sequence[View]) -> None:
    if ask.by and not metric.is_split:
        raise BadQuestionError(f"`{metric.id}` cannot be split.", do="Leave `by` out.")
    splittable = {name for view in read for name in view.dimensions}
    for name in ask.by:
        if name not in splittable:
            raise UnknownNameError("dimension", name, splittable)
    if not any(set(ask.by) <= set(view.dimensions) for view in read):
        message = f"No view of `{ask.metric}` has all of {', '.join(ask.by)}."
        raise BadQuestionError(message, do="Split by one of them.")


class _Grained(NamedTuple):
    metric: Metric
    grain: Grain
    ranges: Ranges


def _time_of(ask: MetricRequest, store: Store, of: _Grained) -> StoreTime:
    zone = ask.timezone or store.timezone
    days = BusinessDays.of(store, zone_named(zone))
    asked = span(ask.start, ask.end, days, of.grain, of.ranges)
    at = QueryRange(days, days.whole(asked) if of.metric.whole_days else asked, of.grain)
    by = None if ask.compare is None else comparison_calendar(ask.compare, store, at)
    return StoreTime(store, zone, timeline(of.grain, days, *at.span), at, by)


def _left_out(of: StoreTime) -> LeftOut | None:
    compared = next(of.by.days(of.at.first, of.at.last), None) if of.by else None
    return left_out(of.store, Sides(of.at.first, compared))


def span(start: str, end: str, days: BusinessDays, grain: Grain, ranges: Ranges = RANGES) -> Span:
    """Whole windows that cover [start, end): nothing asked for is left out."""
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
