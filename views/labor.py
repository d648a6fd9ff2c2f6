"""How many staff are there, and when? The overlap of segments with each window; a reversal subtracts its segment."""

from datetime import timedelta

from master_dataset.sources.staff_hours import STAFF_HOURS
from views.core import Sum, View
from views.core.view import AT, MS, overlaps

LABOR = View(
    name="labor",
    source=STAFF_HOURS,
    each=overlaps("started_us", "happened_at"),
    at=AT,
    settles_after=timedelta(hours=16),
    reads_days=(0, 1),
    dimensions={"kind": "basis", "role": "role"},
    metrics={"labor_ms": Sum(f"sign * {MS}")},
)
