"""Which delivery of a micro-batch is the first of its event."""

from datetime import UTC, date, datetime, timedelta

from speed_layer.first_deliveries import Delivery, first_in_batch, settled

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)


def delivery(identity: str, partition: int, offset: int, *, at: int) -> Delivery:
    received_at = NOON + timedelta(seconds=at)
    return Delivery("t", "1", date(2026, 3, 7), identity, partition, offset, received_at)


def test_in_one_partition_the_least_offset_is_the_first_although_a_clock_stepped_back() -> None:
    first, second = delivery("a", 0, 5, at=60), delivery("a", 0, 6, at=57)

    assert first_in_batch([second, first]) == [first]


def test_of_two_partitions_the_one_that_received_first_wins_by_its_own_first_delivery() -> None:
    here, again, there = delivery("a", 0, 5, at=60), delivery("a", 0, 6, at=57), delivery("a", 1, 0, at=58)

    assert first_in_batch([here, again, there]) == [there]


def test_what_is_remembered_counts_and_a_replay_finds_its_own_place_again() -> None:
    known, new, replayed = delivery("a", 0, 5, at=0), delivery("b", 0, 6, at=0), delivery("c", 0, 7, at=0)

    firsts, own = settled([known, new, replayed], {known.of: (0, 1), replayed.of: (0, 7)})

    assert firsts == {known.of: (0, 1), new.of: (0, 6), replayed.of: (0, 7)}
    assert own == [new, replayed]
