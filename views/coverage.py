"""Can I trust the zeroes? How long each sensor was alive."""

from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from views.core import Sum, View
from views.core.view import flag_counts

COVERAGE = View(
    name="coverage",
    source=SENSOR_HEARTBEATS,
    dimensions={"source": "source", "sensor_id": "sensor_id"},
    metrics={"covered_ms": Sum("interval_ms"), **flag_counts(SENSOR_HEARTBEATS)},
)
