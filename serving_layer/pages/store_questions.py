"""What the page of a store asks about one day. Ids are those of the metrics; nothing is reckoned here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from master_dataset.registry.stores import Store
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.question import Question
from serving_layer.query.timeline import Grain

TILES = (
    "net_sales",
    "traffic_in",
    "conversion_rate",
    "capture_rate",
    "avg_transaction_value",
    "avg_items_per_transaction",
)
CHARTS = {"net_sales": "Sales", "traffic_in": "Traffic", "conversion_rate": "Conversion", "capture_rate": "Capture"}
"""Each with its title."""
QUEUE = ("avg_queue_wait", "p90_queue_wait", "max_queue_length", "queue_served", "queue_abandonment_rate")
NAMES = {"avg_transaction_value": "Average receipt", "avg_items_per_transaction": "Items per receipt"}
"""For whoever does not know the usual letters (ATV, UPT)."""
COMPARE = "previous_week"
WAITS, STAYS, PRODUCTIVITY, CONTEXT = "avg_queue_wait", "stays", "productivity", "context"
WEEKS = 4


@dataclass(frozen=True)
class StoreQuestions:
    """`partial`: speed is missing, so batch alone is asked."""

    store: Store
    day: BusinessDay
    partial: bool

    def all(self) -> Mapping[str, Question]:
        """By the name of the part of the page.

        What is compared ends with the last quarter of an hour that is over, on both sides. What is live does not, so
        each number is asked for twice: as it is now, `now:`, and how it stands to the week before, `change:`.
        """
        hourly = (*CHARTS, WAITS)
        found = {f"now:{metric}": self._of(metric, "total") for metric in (*TILES, *QUEUE)}
        found |= {f"change:{metric}": replace(each, compare=COMPARE) for metric, each in self._totals()}
        found |= {f"hour:{metric}": self._of(metric, "hour") for metric in hourly}
        found |= {f"before:{metric}": self._of(metric, "hour", weeks_back=1) for metric in hourly}
        weeks = replace(self._of("productivity", "hour_of_week"), start=self.day.back(7 * WEEKS), end=self.day.start)
        context = replace(self._of("net_sales", "hour"), context="holidays,weather")
        return found | {STAYS: self._of("visits_by_stay_time", "total"), PRODUCTIVITY: weeks, CONTEXT: context}

    def _totals(self) -> Iterator[tuple[str, Question]]:
        return ((metric, self._of(metric, "total")) for metric in (*TILES, *QUEUE))

    def _of(self, metric: str, grain: Grain, *, weeks_back: int = 0) -> Question:
        start, end = self.day.back(7 * weeks_back), self.day.back(7 * weeks_back - 1)
        return Question(metric, (self.store.id,), start, end, grain, partial=self.partial)
