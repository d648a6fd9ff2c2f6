"""What tasks of a micro-batch have seen, together: as often and in whatever order Spark merges it."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pyarrow as pa

from master_dataset.kafka.partition_progress import (
    PartitionProgress,
    Progress,
    combined,
    count_received,
    progress_of,
)
from master_dataset.parsing.rows import HEADERS, INSTANT, rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

NOW = datetime(2026, 3, 7, 9, 6, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PARTS: list[Progress] = [
    {
        0: PartitionProgress(4, NOW, 5, Counter(), NOW),
        3: PartitionProgress(9, NOW, 0, Counter(not_json=1), NOW - SECOND),
    },
    {0: PartitionProgress(7, NOW - SECOND, 3, Counter(), NOW - SECOND, SECOND)},
    {5: PartitionProgress(1, NOW, 1, Counter(), NOW)},
]


def merged(*parts: Progress) -> dict[int, tuple[object, ...]]:
    """Without the counts, which are for metrics."""
    whole: Progress = {}
    for part in parts:
        whole = combined(whole, part)
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


def test_every_record_that_came_is_an_event_or_a_dead_letter_but_for_our_own_markers() -> None:
    marker, own = [{"key": "galatea-marker", "value": b""}], [{"key": "replay_of", "value": b"t/0/1"}]
    columns = {
        "key": pa.array([b"1"] * 5, pa.binary()),
        "value": pa.array([receipt(), b"{", b"", receipt(), None], pa.binary()),
        "topic": pa.array(["pos_transactions"] * 5, pa.string()),
        "partition": pa.array([0, 0, 0, 3, 3], pa.int32()),
        "offset": pa.array(range(5), pa.int64()),
        "timestamp": pa.array([NOW] * 5, INSTANT),
        "headers": pa.array([[], [], marker, own, []], HEADERS),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    [parsed] = rows(POS_TRANSACTIONS, iter([batch]), default_terms)

    found = progress_of(parsed, {}, count_received(batch))

    assert {part: (each.received, each.events, sum(each.dead_letters.values())) for part, each in found.items()} == {
        0: (2, 1, 1),
        3: (2, 1, 1),
    }
    assert count_received(batch.drop_columns(["headers"])) == {0: 3, 3: 2}
