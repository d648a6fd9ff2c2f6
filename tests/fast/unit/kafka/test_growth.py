"""Partitions that are added: which may be read, when their records were received, and from where their stores came."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from confluent_kafka import murmur2

from master_dataset.kafka.growth import Growth, Partitions, next_opening

BEGUN = datetime(2026, 5, 4, 9, 50, tzinfo=UTC)
OPENED = datetime(2026, 5, 4, 10, tzinfo=UTC)
OPENED_MS = round(OPENED.timestamp() * 1000)
FIRST = Growth(2, 4, BEGUN, OPENED, {"t": {0: 100, 1: 200}}, is_open=True)
SECOND = Growth(4, 8, BEGUN, OPENED + timedelta(days=1), {"t": {0: 300, 1: 400, 2: 10, 3: 20}}, is_open=True)


def test_a_topic_that_never_grew_is_read_as_it_is() -> None:
    never = Partitions(2)

    assert (never.added, never.covered(OPENED), never.open, never.readable({}, ["t"])) == (2, 2, 2, 2)
    assert never.received_sql() == "timestamp"
    assert never.ancestors(1) == []
    assert never.start_offsets({0: 5, 1: 7}, OPENED_MS) == {0: 5, 1: 7}
    assert never.unfinished is None


@pytest.mark.parametrize(
    ("growth", "announced", "opened"),
    [
        (FIRST._replace(opens_at=None, fences={}, is_open=False), 2, 2),
        (FIRST._replace(is_open=False), 4, 2),
        (FIRST, 4, 4),
    ],
)
def test_a_cut_covers_what_opens_before_it_and_readers_read_what_is_open(
    growth: Growth, announced: int, opened: int
) -> None:
    growing = Partitions(2, (growth,))

    assert (growing.added, growing.covered(OPENED), growing.open) == (4, announced, opened)
    assert growing.covered(OPENED - timedelta(milliseconds=1)) == 2
    assert (growing.unfinished is None) == growth.is_open


@pytest.mark.parametrize(
    ("positions", "readable"),
    [
        ({}, 2),
        ({"t": {0: 101}}, 2),
        ({"t": {0: 100, 1: 201}}, 2),
        ({"t": {0: 101, 1: 201}}, 4),
        ({"t": {0: 301, 1: 401}}, 4),
        ({"t": {0: 301, 1: 401, 2: 11, 3: 20}}, 4),
        ({"t": {0: 301, 1: 401, 2: 11, 3: 21}}, 8),
    ],
)
def test_new_partitions_are_read_after_the_markers_in_all_old_ones(
    positions: dict[str, dict[int, int]], readable: int
) -> None:
    assert Partitions(2, (FIRST, SECOND)).readable(positions, ["t"]) == readable
    assert Partitions(2, (FIRST, SECOND)).readable(positions, ["another"]) == 8


def test_records_of_a_new_partition_were_received_when_it_opened_or_later() -> None:
    grown = Partitions(2, (FIRST, SECOND))

    assert [grown.opened_ms(partition) for partition in (0, 1, 2, 3, 4, 7)] == [
        0,
        0,
        OPENED_MS,
        OPENED_MS,
        OPENED_MS + 86_400_000,
        OPENED_MS + 86_400_000,
    ]
    with pytest.raises(ValueError, match="partition 8 is not open"):
        grown.opened_ms(8)
    assert grown.received_sql() == (
        f"case when partition >= 2 and partition < 4 then greatest(timestamp, timestamp_millis({OPENED_MS}L)) "
        f"when partition >= 4 and partition < 8 then greatest(timestamp, timestamp_millis({OPENED_MS + 86_400_000}L)) "
        "else timestamp end"
    )


def test_a_partition_that_opened_since_is_read_from_its_beginning() -> None:
    grown, since = Partitions(2, (FIRST,)), {0: 50, 1: 60, 2: 5, 3: 6}

    assert grown.start_offsets(since, OPENED_MS) == {0: 50, 1: 60, 2: 0, 3: 0}
    assert grown.start_offsets(since, OPENED_MS + 1) == since
    assert Partitions(2, (FIRST._replace(is_open=False),)).start_offsets(since, 0) == {0: 50, 1: 60}


def test_every_store_comes_from_the_partitions_that_its_key_had_before() -> None:
    grown = Partitions(2, (FIRST, SECOND))

    for number in range(1000):
        key = f"store-{number}".encode()
        homes = [murmur2(key, count) for count in (2, 4, 8)]
        before = [partition for partition, _ in grown.ancestors(homes[-1])]

        assert before == [home for home, later in pairwise(homes) if home != later]
        assert homes == sorted(homes)  # never from one old partition to another
    assert dict(grown.ancestors(7)) == {1: FIRST.fences, 3: SECOND.fences}
    assert grown.limited(4) == Partitions(2, (FIRST,))


def test_partitions_open_late_enough_to_be_confirmed_before() -> None:
    skew = timedelta(seconds=5)

    opening = next_opening(OPENED, [OPENED + timedelta(microseconds=2_345)], skew)

    assert opening > OPENED + 2 * skew
    assert opening.microsecond == 2_000


def test_topics_that_were_created_again_have_no_fences() -> None:
    growth = FIRST._replace(topic_ids={"t": "a", "u": "b"}, fences={"t": {0: 1}, "u": {0: 2}})

    assert growth.of({"t": "a", "u": "b"}) == growth
    assert growth.of({"t": "a", "u": "c"}) == growth._replace(fences={"t": {0: 1}})
    assert growth.of({"t": "d"}) is None


def test_a_reader_that_does_not_read_what_was_opened_is_told_where_to_stop() -> None:
    grown = Partitions(2, (FIRST, SECOND._replace(is_open=False)))

    assert grown.closed_beyond(2) == FIRST
    assert grown.closed_beyond(4) is None
    assert [*grown.moves] == [(2, OPENED)]
