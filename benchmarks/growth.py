"""A rebuild after one day has changed, with 1, 3 and 10 times as many days of history: it should cost the same.

All have the same number of receipts per day and start with the same days, of which the same ones change in the same
way; they differ only in the number of untouched days that follow. Each has a home and a Cassandra of its own. The
rebuilds alternate, so that other load on the machine affects all three.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from benchmarks import local
from benchmarks.history import History, Rebuilt, median_of
from benchmarks.report import Measured

FULL = 3_000_000
"""Receipts of the longest history."""
DAYS = {"10x": 365, "3x": 110, "1x": 37}
ROUNDS, DAYS_BETWEEN = 5, 7
AT_MOST = 1.15


def growth(size: int) -> Iterator[Measured]:
    """`size` receipts over the longest history. Full rebuilds once each, then the median of five days in turn."""
    with ExitStack() as stack:
        histories = {name: _begun(stack, size // DAYS["10x"] * days, days) for name, days in DAYS.items()}
        full = {name: history.rebuild() for name, history in histories.items()}
        touched: dict[str, list[Rebuilt]] = {name: [] for name in DAYS}
        for number in range(1, ROUNDS + 1):
            for name, history in histories.items():
                touched[name].append(history.touch(DAYS_BETWEEN * number))
    for name, history in histories.items():
        details = history.facts | {"full": full[name], "touched": touched[name]}
        seconds = (median_of(touched[name]), full[name]["seconds"])
        yield Measured(
            f"growth, a day at {name}", *seconds, "s", f"full rebuild at {name}", better="low", details=details
        )
    yield _grown(touched)


def _begun(stack: ExitStack, receipts: int, days: int) -> History:
    settings = stack.enter_context(local.own_home())
    history = History(settings, receipts, days)
    stack.enter_context(local.running(settings, "kafka", "cassandra"))
    return history


def _grown(touched: Mapping[str, Sequence[Rebuilt]]) -> Measured:
    costs = {name: median_of(found, "cpu_seconds") for name, found in touched.items()}
    seconds = {name: median_of(found) for name, found in touched.items()}
    ratios = {
        "cpu_ratio": round(costs["10x"] / costs["1x"], 3),
        "cpu_ratio_3x": round(costs["3x"] / costs["1x"], 3),
        "ratio_3x": round(seconds["3x"] / seconds["1x"], 3),
    }
    both = (seconds["10x"], seconds["1x"])
    return Measured("growth, 10x history", *both, "s", "the same at 1x", better="low", limit=AT_MOST, details=ratios)
