"""A rebuild after one of 365 days has changed, compared with a full one of the same year, both published to Cassandra.

Timed is from the plan, which finds the changed day, to the publication, without the fence and without Spark's start,
which only the full rebuild needs. `until_published` also has the start of the process.
"""

from benchmarks import local
from benchmarks.history import History, median_of
from benchmarks.report import Measured

FULL = 5_000_000
"""As many as `rebuild` has: what is measured beside it is the same full rebuild."""
DAYS = 365
ROUNDS = 3
AT_MOST = 1 / 15


def incremental(size: int) -> list[Measured]:
    """`size` receipts over the year; the full rebuild once, then the median of three days that change in turn."""
    with local.own_home() as settings:
        history = History(settings, size, DAYS)
        with local.running(settings, "kafka", "cassandra"):
            full = history.rebuild()
            touched = [history.touch(90 * number) for number in range(1, ROUNDS + 1)]
    details = history.facts | {
        "full": full,
        "touched": touched,
        "cpu_ratio": round(median_of(touched, "cpu_seconds") / full["cpu_seconds"], 4),
    }
    seconds = (median_of(touched), full["seconds"])
    return [Measured("incremental", *seconds, "s", "full rebuild", better="low", limit=AT_MOST, details=details)]
