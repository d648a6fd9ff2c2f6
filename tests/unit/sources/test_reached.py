"""What tasks of a micro-batch have seen, together: as often and in whatever order Spark merges it."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import permutations

from master_dataset.reached import Reached, Seen, SeenParam

NOW = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PARTS: list[Seen] = [
    {0: Reached(4, NOW, 5, Counter(), NOW), 3: Reached(9, NOW, 0, Counter(not_json=1), NOW - SECOND)},
    {0: Reached(7, NOW - SECOND, 3, Counter(), NOW - SECOND, SECOND)},
    {5: Reached(1, NOW, 1, Counter(), NOW)},
]


def merged(*parts: Seen) -> dict[int, tuple[object, ...]]:
    """Without the counts, which are for metrics."""
    param = SeenParam()
    whole = param.zero({})
    for part in parts:
        whole = param.addInPlace(whole, part)
    return {
        partition: (each.offset, each.received_at, bool(each.dead_letters), each.oldest_at, each.step_back)
        for partition, each in whole.items()
    }


def test_parts_of_tasks_that_were_run_twice_change_nothing_in_whatever_order_they_come() -> None:
    once = merged(*PARTS)

    assert once == {
        0: (7, NOW, False, NOW - SECOND, SECOND),
        3: (9, NOW, True, NOW - SECOND, timedelta(0)),
        5: (1, NOW, False, NOW, timedelta(0)),
    }
    assert all(merged(*order, *order[:2]) == once for order in permutations(PARTS))
