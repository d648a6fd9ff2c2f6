"""How long do people wait? Counted in the window in which they joined; those who gave up are counted separately."""

from datetime import timedelta

from master_dataset.sources.queue_events import QUEUE_EVENTS
from views.core import Count, Histogram, Sum, View
from views.core.aggregates import WAIT_EDGES
from views.core.view import flag_counts

TARGET_MS = 180_000
"""Who waits no longer was served within the target."""
SERVED = "change = 'service_start'"
WAIT = f"if({SERVED}, wait_ms, null)"

QUEUE = View(
    name="queue",
    source=QUEUE_EVENTS,
    at="timestamp_micros(joined_us)",
    settles_after=timedelta(hours=8),
    reads_days=(0, 1),
    dimensions={"queue": "queue"},
    metrics={
        "joins": Count("change = 'join'"),
        "served": Count(SERVED),
        "abandoned": Count("change = 'abandon'"),
        "within_target": Count(f"{SERVED} and wait_ms <= {TARGET_MS}"),
        "services": Count("change = 'leave'"),
        "wait_ms": Sum(WAIT),
        "service_ms": Sum("service_ms"),
        "wait": Histogram(WAIT, WAIT_EDGES),
        **flag_counts(QUEUE_EVENTS),
    },
)
