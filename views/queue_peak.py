"""How long did the line get? Only changes after which the sensor reports how many people are waiting."""

from master_dataset.sources.queue_events import QUEUE_EVENTS
from views.core import Max, View

QUEUE_PEAK = View(
    name="queue_peak",
    source=QUEUE_EVENTS,
    where="length_after is not null",
    dimensions={"queue": "queue"},
    metrics={"length_after": Max("length_after")},
)
