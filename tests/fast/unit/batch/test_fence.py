"""The fence: when a reader has certainly seen everything before a cut."""

from datetime import UTC, datetime, timedelta

import pytest

from batch_layer.fence import Fence, Marked
from master_dataset.errors import CutNotReachedError, OperatorError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from tests.fast.laws.delivery.fence_law import EPOCH, SKEW, TOPIC, brokers_of, clock_of

CUT = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)


def fence(now: datetime) -> Fence:
    return Fence(
        KafkaConnection("unused:1"),
        lambda: Partitions(1),
        ["t"],
        timedelta(minutes=5),
        timedelta(seconds=5),
        now=lambda: now,
    )


def test_the_newest_cut_is_one_that_the_clock_has_passed_by_the_skew() -> None:
    just_before = fence(CUT + timedelta(seconds=4))
    just_after = fence(CUT + timedelta(seconds=5))

    assert just_before.newest_cut() == CUT - timedelta(minutes=5)
    assert just_after.newest_cut() == CUT


def test_the_next_cut_covers_what_was_received_at_this_very_moment() -> None:
    assert fence(CUT).next_cut() == CUT + timedelta(minutes=5)
    assert fence(CUT - timedelta(microseconds=1)).next_cut() == CUT


@pytest.mark.parametrize(
    ("positions", "passed"),
    [
        ({"t": {0: 8, 1: 4}}, True),
        ({"t": {0: 7, 1: 4}}, False),  # at the marker, which is not yet read
        ({"t": {0: 8}}, False),  # an idle partition without a position hides nothing
        ({}, False),
    ],
)
def test_a_reader_has_passed_when_it_is_behind_the_marker_of_every_partition(
    positions: dict[str, dict[int, int]],
    passed: bool,  # noqa: FBT001 - a parametrised expectation
) -> None:
    marked = Marked(CUT, {"t": {0: 7, 1: 3}})

    assert marked.passed_by(positions) is passed


def test_a_reader_that_stays_behind_is_named_with_its_partition() -> None:
    marked = Marked(CUT, {"t": {0: 7}})

    with pytest.raises(CutNotReachedError, match=r"archive has read `t/0` to 5 and the marker .* is at 7"):
        fence(CUT).wait(marked, lambda: {"t": {0: 5}}, "archive", timedelta(0))


def test_a_reader_that_tells_of_records_behind_the_end_of_a_topic_has_read_another_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Fence, "ends", lambda _: {"t": {0: 8}})
    marked = Marked(CUT, {"t": {0: 7}})

    fence(CUT).wait(marked, lambda: {"t": {0: 8}}, "archive", timedelta(0))

    with pytest.raises(OperatorError, match="archive has read `t/0` to 900, but it ends at 8"):
        fence(CUT).wait(marked, lambda: {"t": {0: 900}}, "archive", timedelta(0))


def test_markers_of_a_cut_are_written_once_for_all_readers() -> None:
    clock = clock_of(7)
    own = Fence(KafkaConnection("memory"), lambda: Partitions(1), (TOPIC,), EPOCH, SKEW, now=clock.now)

    with brokers_of(clock):
        cut = own.newest_cut() - EPOCH
        first, again = own.mark(cut), own.mark(cut)
        other = own.mark(cut - EPOCH)

    assert again is first
    assert all(offset > first.offsets[TOPIC][partition] for partition, offset in other.offsets[TOPIC].items())
