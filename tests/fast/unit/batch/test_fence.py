"""The fence: when a reader has certainly seen everything before a cut."""

from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace

import pytest

from batch_layer.fence import Fence, Marked, Markers
from master_dataset.errors import CutNotReachedError, OperatorError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from tests.fast.laws.delivery.broker import Broker
from tests.fast.laws.delivery.fence_law import EPOCH, PARTITIONS, SKEW, TOPIC, Clock, brokers_of, clock_of

CUT = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)


def fence(now: datetime, partitions: int = 1) -> Fence:
    return Fence(
        KafkaConnection("unused:1"),
        lambda: Partitions(partitions),
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


def test_nobody_waits_for_a_reader_that_has_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fence, "ends", lambda _: {"t": {0: 8, 1: 5}, "never used": {0: 0, 1: 0}})

    monkeypatch.setattr(Markers, "send", lambda *_: pytest.fail("nobody reads a partition that is being added"))

    fence(CUT).wait_for_all(lambda: {"t": {0: 8}}, "archive", timedelta(0))


def test_a_reader_of_another_log_has_not_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fence, "ends", lambda _: {"t": {0: 8}})

    with pytest.raises(OperatorError, match="archive has read `t/0` to 900, but it ends at 8"):
        fence(CUT).wait_for_all(lambda: {"t": {0: 900}}, "archive", timedelta(0))


def test_a_reader_that_is_behind_is_waited_for_until_it_has_passed_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    ends_in_turn = iter([{"t": {0: 8, 1: 3}}, {"t": {0: 10, 1: 4}}])
    monkeypatch.setattr(Fence, "ends", lambda _: next(ends_in_turn))
    sent = SimpleNamespace(offsets={"t": {0: 9, 1: 3}})
    monkeypatch.setattr(Markers, "send", lambda _self, _topics, partitions: sent if partitions == 2 else None)
    reached = iter([{"t": {0: 7}}, {"t": {0: 8, 1: 4}}, {"t": {0: 10, 1: 4}}])

    fence(CUT, 2).wait_for_all(lambda: next(reached), "archive", timedelta(seconds=5))

    assert list(reached) == []


def test_a_reader_that_stays_behind_the_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fence, "ends", lambda _: {"t": {0: 8}})
    monkeypatch.setattr(Markers, "send", lambda _self, _topics, _partitions: SimpleNamespace(offsets={"t": {0: 9}}))

    with pytest.raises(CutNotReachedError, match="archive has read `t/0` to 7 and the marker"):
        fence(CUT).wait_for_all(lambda: {"t": {0: 7}}, "archive", timedelta(0))


def test_markers_of_a_cut_are_written_once_for_all_readers() -> None:
    clock = clock_of(7)
    own = Fence(KafkaConnection("memory"), lambda: Partitions(1), (TOPIC,), EPOCH, SKEW, now=clock.now)

    with brokers_of(clock):
        cut = own.newest_cut() - EPOCH
        first, again = own.mark(cut), own.mark(cut)
        other = own.mark(cut - EPOCH)

    assert again is first
    assert all(offset > first.offsets[TOPIC][partition] for partition, offset in other.offsets[TOPIC].items())


def behind_by(lag: timedelta, seed: int) -> Clock:
    """Brokers that are behind. That of the last partition stays so."""
    return Clock(Broker(Random(seed)), [-lag // timedelta(milliseconds=1)] * PARTITIONS, {})


@pytest.mark.parametrize("behind", [timedelta(milliseconds=1), SKEW / 2, SKEW])
@pytest.mark.parametrize("seed", range(5))
def test_a_broker_whose_clock_is_behind_by_at_most_the_skew_only_delays_a_cut(seed: int, behind: timedelta) -> None:
    clock = behind_by(behind, seed)
    own = Fence(KafkaConnection("memory"), lambda: Partitions(PARTITIONS), (TOPIC,), EPOCH, SKEW, now=clock.now)

    with brokers_of(clock):
        cut = own.next_cut()
        marked = own.mark(cut)

    stamps = [clock.broker.log((TOPIC, each))[offset].stamp_ms for each, offset in marked.offsets[TOPIC].items()]
    assert len(stamps) == PARTITIONS
    assert min(stamps) >= (cut + SKEW).timestamp() * 1000


def test_a_broker_whose_clock_is_further_behind_makes_no_cut() -> None:
    clock = behind_by(2 * SKEW, 7)
    own = Fence(KafkaConnection("memory"), lambda: Partitions(PARTITIONS), (TOPIC,), EPOCH, SKEW, now=clock.now)

    with brokers_of(clock), pytest.raises(OperatorError, match="stamped a marker in"):
        own.mark(own.next_cut())
