"""What do people look at? Who entered a zone, and who stayed long enough to look at something: 5 seconds."""

from datetime import timedelta

from master_dataset.sources.zone_presence import ZONE_PRESENCE
from views.core import Count, Histogram, Sum, View
from views.core.aggregates import STAY_EDGES
from views.core.view import flag_counts

LEAST_DWELL_MS = 5_000
DWELLS = f"dwell_ms >= {LEAST_DWELL_MS}"
DWELL = f"if({DWELLS}, dwell_ms, null)"

ZONE_TRAFFIC = View(
    name="zone_traffic",
    source=ZONE_PRESENCE,
    at="if(crossing = 'enter', happened_at, timestamp_micros(entered_us))",
    settles_after=timedelta(hours=12),
    reads_days=(0, 1),
    dimensions={"zone": "zone"},
    metrics={
        "enters": Count("crossing = 'enter'"),
        "exits": Count("crossing = 'exit'"),
        "dwells": Count(DWELLS),
        "dwell_ms": Sum(DWELL),
        "dwell": Histogram(DWELL, STAY_EDGES),
        **flag_counts(ZONE_PRESENCE),
    },
)
