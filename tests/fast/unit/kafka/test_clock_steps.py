"""A clock that steps back is seen inside a batch, between batches, between micro-batches, and below a cut."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from master_dataset.kafka.partition_progress import PartitionProgress, clock_steps, steps_back
from master_dataset.parsing.rows import INSTANT

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
SKEW = timedelta(seconds=5)
BEFORE = START - timedelta(hours=1)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def batch(*stamps: tuple[int, float]) -> pa.RecordBatch:
    """Records as (partition, seconds), in the order of their offsets."""
    partitions, seconds = zip(*stamps, strict=True)
    columns = [pa.array(partitions, pa.int32()), pa.array([at(each) for each in seconds], INSTANT)]
    return pa.RecordBatch.from_arrays(columns, ["partition", "received_at"])


def reached(oldest: float, newest: float, step: float = 0) -> PartitionProgress:
    return PartitionProgress(9, at(newest), 1, Counter(), at(oldest), timedelta(seconds=step))


def test_the_largest_step_of_each_partition_is_found_also_across_batches() -> None:
    newest: dict[int, int] = {}

    first = clock_steps(batch((0, 0), (0, 10), (1, 90), (0, 7), (0, 12)), newest)
    second = clock_steps(batch((0, 4), (1, 91), (0, 13)), newest)

    assert first == {0: timedelta(seconds=3), 1: timedelta(0)}
    assert second == {0: timedelta(seconds=8), 1: timedelta(0)}


def test_two_parts_of_a_micro_batch_have_the_larger_step() -> None:
    both = reached(3, 9, step=1) | reached(2, 8, step=6)

    assert (both.oldest_at, both.received_at, both.step_back) == (at(2), at(9), timedelta(seconds=6))


def test_a_step_within_the_skew_is_no_alarm_and_a_larger_one_is() -> None:
    assert list(steps_back({0: reached(0, 10, step=5)}, {}, BEFORE, SKEW)) == []
    assert [number for number, _ in steps_back({0: reached(0, 10, step=5.1)}, {}, BEFORE, SKEW)] == [0]


def test_a_step_between_two_micro_batches_is_seen() -> None:
    found = dict(steps_back({0: reached(0, 10), 1: reached(0, 10)}, {0: at(60), 1: at(2)}, BEFORE, SKEW))

    assert found == {0: "a timestamp near 2026-11-21 09:00:00 UTC is 60.0 s behind earlier ones"}


def test_a_stamp_below_a_published_cut_is_seen_whatever_came_before() -> None:
    found = dict(steps_back({0: reached(-1, 10), 1: reached(0, 10)}, {}, START, SKEW))

    assert list(found) == [0]
    assert found[0] == (
        "a record has the timestamp 2026-11-21 08:59:59 UTC, before the published cut 2026-11-21 09:00:00 UTC"
    )
