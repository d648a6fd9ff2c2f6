"""How long each micro-batch of archive and speed takes, as a metric.

Not from Spark's own listener: to give it to Python, py4j looks in every jar for classes that are in none, which was
more than a third of what speed's Java did at 1,000 receipts a second (docs/explanation/benchmarks.md).
"""

from prometheus_client import Histogram

MICRO_BATCH = Histogram(
    "galatea_micro_batch_seconds",
    "How long it took to keep or to count a micro-batch.",
    ("reader",),
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
)
"""By `reader`: archive or speed."""
