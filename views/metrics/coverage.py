"""May the zeroes be trusted? How much of the time sensors were alive that should have been."""

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
    note="Ours. Heartbeats, and counting intervals, which are their own proof of life, by the time that passed for all "
    "registered sensors. Zeroes without coverage are no zeroes.",
    example={"covered_ms": 0, "traffic.covered_ms": 21_600_000, "store.expected_ms": 28_800_000},
)
