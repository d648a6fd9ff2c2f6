"""What the page of a store asks about one day. Ids are those of the metrics; nothing is reckoned here."""

from collections.abc import Mapping
from dataclasses import dataclass

from master_dataset.stores import Store
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.question import Question
from serving_layer.timeline import Grain

TILES = (
    "net_sales",
    "traffic_in",
    "conversion_rate",
    "capture_rate",
    "avg_transaction_value",
    "avg_items_per_transaction",
)
CHARTS = ("net_sales", "traffic_in", "conversion_rate", "capture_rate")
QUEUE = ("avg_queue_wait", "p90_queue_wait", "max_queue_length", "queue_served", "queue_abandonment_rate")
NAMES = {"avg_transaction_value": "Average receipt", "avg_items_per_transaction": "Items per receipt"}
"""For whoever does not know the usual letters (ATV, UPT)."""
WAITS, STAYS, PRODUCTIVITY, CONTEXT = "waits", "stays", "productivity", "context"
WEEKS = 4


@dataclass(frozen=True)
class StoreQuestions:
    """`partial`: speed is missing, so batch alone is asked."""

    store: Store
    day: BusinessDay
    partial: bool

    def all(self) -> Mapping[str, Question]:
        """By the name of the part of the page, which is `total:` or `hour:` and a metric for most."""
        totals = {f"total:{metric}": self._compared(metric, "total") for metric in TILES}
        hours = {f"hour:{metric}": self._compared(metric, "hour") for metric in CHARTS}
        queue = {f"queue:{metric}": self._compared(metric, "total") for metric in QUEUE}
        return totals | hours | queue | {
            WAITS: self._compared("avg_queue_wait", "hour"),
            STAYS: self._of("visits_by_stay_time", "total"),
            PRODUCTIVITY: Question(
                "productivity", (self.store.id,), self.day.back(7 * WEEKS), self.day.start, "hour_of_week",
                partial=self.partial,
            ),
            CONTEXT: Question(
                "net_sales", (self.store.id,), self.day.start, self.day.end, "hour", context="holidays,weather",
                partial=self.partial,
            ),
        }  # fmt: skip

    def _of(self, metric: str, grain: Grain) -> Question:
        return Question(metric, (self.store.id,), self.day.start, self.day.end, grain, partial=self.partial)

    def _compared(self, metric: str, grain: Grain) -> Question:
        return Question(
            metric, (self.store.id,), self.day.start, self.day.end, grain, compare="previous_week", partial=self.partial
        )
