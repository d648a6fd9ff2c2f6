"""How long each micro-batch of archive and speed takes, as a metric.

Not from Spark's own listener: to give it to Python, Java looks for some classes that are not there in every jar, which
took a fifth of a core at two micro-batches a second.
"""

from prometheus_client import Histogram

MICRO_BATCH = Histogram(
    "galatea_micro_batch_seconds", "How long it took to keep or to count a micro-batch.", ("reader",),
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
)  # fmt: skip
"""By `reader`: archive or speed."""
