"""A question as it was asked, and how it is understood: names looked up, bounds read in each store's time zone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from master_dataset.errors import RangeTooLong, UnknownName
from master_dataset.stores import Store
from serving_layer.local_time import STEP, read_bound, round_down, round_up, zone_named
from serving_layer.metric_answer import Asked, StoreTime
from serving_layer.refusals import BadQuestion
from serving_layer.timeline import Grain, timeline
from views.core import View
from views.core.metric import Metric

DAY = 86_400
FINE_DAYS, COARSE_DAYS = 400, 3660
"""The longest range at 15m and hour, and at all other grains (ten years)."""


@dataclass(frozen=True)
class MetricAsk:
    """`start` and `end`: an instant with offset, or a date in the asked zone. No `stores` means all registered ones.

    `as_of`: the number of the publication that alone is the answer; None for both layers as they are now.
    """

    metric: str
    stores: tuple[str, ...]
    start: str
    end: str
    grain: Grain = "day"
    timezone: str | None = None
    by: tuple[str, ...] = ()
    partial: bool = False
    as_of: int | None = None


@dataclass(frozen=True)
class CellsAsk:
    """`start`, `end` and `as_of` as in MetricAsk; bounds are read in the time zone of each store."""

    view: str
    stores: tuple[str, ...]
    start: str
    end: str
    partial: bool = False
    as_of: int | None = None


def understood(
    ask: MetricAsk, stores: Sequence[Store], metrics: Mapping[str, Metric], views: Mapping[str, View]
) -> Asked:
    """The question with everything looked up. UnknownName, BadQuestion, RangeTooLong."""
    if ask.metric not in metrics:
        raise UnknownName("metric", ask.metric, metrics)
    metric = metrics[ask.metric]
    read = tuple(views[name] for name in metric.views)
    splittable = {name for view in read for name in view.dimensions}
    for name in ask.by:
        if name not in splittable:
            raise UnknownName("dimension", name, splittable)
    if not any(set(ask.by) <= set(view.dimensions) for view in read):
        message = f"No view of `{metric.id}` has all of {', '.join(ask.by)}."
        raise BadQuestion(message, do="Split by one of them.")
    times = []
    for store in stores:
        name = ask.timezone or store.timezone
        zone = zone_named(name)
        start, end = span(ask.start, ask.end, name, ask.grain)
        times.append(StoreTime(store, name, timeline(ask.grain, zone, start, end)))
    return Asked(metric, read, ask.grain, ask.by, times)


def span(start: str, end: str, timezone: str, grain: Grain) -> tuple[int, int]:
    """Whole windows that cover [start, end), in seconds since 1970: nothing asked for is left out."""
    zone = zone_named(timezone)
    first, last = round_down(read_bound(start, zone, "from")), round_up(read_bound(end, zone, "to"))
    if last - first < STEP:
        raise BadQuestion(f"`to={end}` is not after `from={start}`.", do="`from` is inclusive and `to` exclusive.")
    days = (last - first) / DAY
    if grain in ("15m", "hour") and days > FINE_DAYS:
        fits = "`grain=day`" if days <= COARSE_DAYS else f"at most {FINE_DAYS} days"
        raise RangeTooLong(f"{days:.0f} days at `{grain}` are more than {FINE_DAYS}.", do=f"Ask with {fits}.")
    if days > COARSE_DAYS:
        raise RangeTooLong(
            f"{days:.0f} days are more than ten years.", do="Ask for ten years at a time, with `grain=year`."
        )
    return first, last
