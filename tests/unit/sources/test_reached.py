"""What tasks of a micro-batch have seen, together: as often and in whatever order Spark merges it."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

from master_dataset.reached import Reached, Seen, SeenParam

NOW = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)
PARTS: list[Seen] = [
    {0: Reached(4, NOW, dead_letters=False), 3: Reached(9, NOW, dead_letters=True)},
    {0: Reached(7, NOW - timedelta(seconds=1), dead_letters=False)},
    {5: Reached(1, NOW, dead_letters=False)},
]


def merged(*parts: Seen) -> Seen:
    param = SeenParam()
    whole = param.zero({})
    for part in parts:
        whole = param.addInPlace(whole, part)
    return whole


def test_parts_of_tasks_that_were_run_twice_change_nothing_in_whatever_order_they_come() -> None:
    once = merged(*PARTS)

    assert once == {
        0: Reached(7, NOW, dead_letters=False),
        3: Reached(9, NOW, dead_letters=True),
        5: Reached(1, NOW, dead_letters=False),
    }
    assert all(merged(*order, *order[:2]) == once for order in permutations(PARTS))
