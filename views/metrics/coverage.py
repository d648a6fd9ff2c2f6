"""Can the zeroes be trusted? How much of the expected time the sensors were alive."""

from views.core.formula import Formula
from views.core.metric import Metric

COVERAGE = Metric(
    "coverage",
    "Sensor coverage",
    Formula("(covered_ms + traffic.covered_ms) / store.expected_ms"),
    "percent",
    "coverage",
    ("above_100",),
    is_split=False,
    note="Ours. Time covered by heartbeats and by counting intervals, which prove that the sensor was alive, divided "
    "by the elapsed time of all registered sensors. A zero without coverage is not a real zero.",
    example={"covered_ms": 0, "traffic.covered_ms": 21_600_000, "store.expected_ms": 28_800_000},
)
