"""A rebuild killed at several moments, each time taken up again: readers see whole publications, and one is made.

`python -m tests.system.drills.killed` has all moments, and kills Airflow's worker and the supervisor besides.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.conftest import Stack
from tests.integration.test_ledger import Sent, send
from tests.system.drills.killed import CRASHES, PATHS, Hammer, rebuilt

STORES = ("killed-1", "killed-2")
NOW = datetime.now(UTC).replace(microsecond=0)
DAYS = [NOW - timedelta(days=age) for age in range(3)]
ID = "killed-at-several-moments"


@pytest.mark.nightly
def test_readers_see_whole_publications_and_one_is_made_wherever_a_rebuild_is_killed(stack: Stack) -> None:
    send(stack, [Sent(store, 1, day, 1.0) for store in STORES for day in DAYS])()
    base = stack.rebuild()["publication"]
    send(stack, [Sent(store, 2, day, 2.0) for store in STORES for day in DAYS])()  # those of old days wait
    stack.verify()  # until both layers have read them
    hammer = Hammer(stack, STORES)

    with hammer.asking():
        ends = [rebuilt(stack, ID, crash_at=point) for point in CRASHES[1::2]]
        last = rebuilt(stack, ID)

    assert all(end != 0 for end in ends)
    assert last == 0
    assert stack.galatea("recompute", "show", ID)["publication"] == base + 1
    assert stack.galatea("publications")["publications"][0]["publication"] == base + 1
    assert set(hammer.seen) == {base, base + 1}
    assert hammer.mixed == 0
    assert hammer.seen[base] != hammer.seen[base + 1]
    assert hammer.requests > len(PATHS) * len(CRASHES)
    assert not stack.verify().has_differences
