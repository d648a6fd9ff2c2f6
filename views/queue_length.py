"""How long is the line? Total waiting time per window; divided by the window's length, it is the average line."""

from datetime import timedelta

from master_dataset.sources.queue_events import QUEUE_EVENTS
from views.core import Sum, View
from views.core.view import AT, MS, overlaps

QUEUE_LENGTH = View(
    name="queue_length",
    source=QUEUE_EVENTS,
    where="change in ('service_start', 'abandon')",
    each=overlaps("joined_us", "happened_at"),
    at=AT,
    settles_after=timedelta(hours=4),
    reads_days=(0, 1),
    dimensions={"queue": "queue"},
    metrics={"person_ms": Sum(MS)},
)
