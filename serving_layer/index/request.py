"""A request for an index: as for a metric, and how many weeks of history the model is made from."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from master_dataset.errors import RangeTooLongError
from master_dataset.registry.stores import Store
from serving_layer.query.ranges import RangeName
from serving_layer.query.resolve import Hours, MetricRequest, query_span
from serving_layer.responses.encoding import iso_epoch
from serving_layer.timeline import zone_named
from views.core.local_time import ONE_DAY, STEP, BusinessDays, Span

IndexGrain = Literal["hour", "day"]
FEWEST_WEEKS, USUAL_WEEKS, MOST_WEEKS = 8, 13, 26
MOST_DAYS = 92
"""The longest range: the history ends where it begins, and says less of every day that is farther away."""


@dataclass(frozen=True)
class IndexRequest:
    """For the fields see `MetricRequest`. `history_weeks`: how long before `start` the history begins."""

    metric: str
    stores: tuple[str, ...]
    start: str | None
    end: str | None
    grain: IndexGrain = "day"
    timezone: str | None = None
    partial: bool = False
    as_of: int | None = None
    hours: Hours = "all"
    history_weeks: int = USUAL_WEEKS
    range: RangeName | None = None
    now: int | None = None

    def range_of(self, store: Store) -> "IndexRange":
        """The time that it is about at one store. BadQuestionError, RangeTooLongError."""
        days = BusinessDays.of(store, zone_named(self.timezone or store.timezone))
        span = query_span(self.start, self.end, days, self.grain, name=self.range, now=self.now)
        length = round((span.end - span.start) / ONE_DAY.total_seconds())
        if length > MOST_DAYS:
            message = f"A request for an index can have at most {MOST_DAYS} days; this one has {length}."
            raise RangeTooLongError(message, do="Split it into several requests.")
        first = days.day_of(span.start) - ONE_DAY * 7 * self.history_weeks
        last = days.day_of(span.end - STEP) + ONE_DAY
        return IndexRange(span, Span(days.start(first), days.start(last)))

    def of_metric(self, store: Store, index_range: "IndexRange") -> MetricRequest:
        """The request for the metric itself, over history and range as one."""
        start, end = (iso_epoch(bound) for bound in index_range.whole)
        return MetricRequest(
            self.metric,
            (store.id,),
            start,
            end,
            grain=self.grain,
            timezone=self.timezone,
            partial=self.partial,
            as_of=self.as_of,
            hours=self.hours,
            context="weather,holidays",
        )


class IndexRange(NamedTuple):
    """The range asked for, and `whole`: whole days from the first of the history to the last of the range."""

    span: Span
    whole: Span
