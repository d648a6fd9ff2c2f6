"""What is counted of each topic: up to the archive's positions, and what has none is named."""

from galatea.cli.reconcile import Counted, counted_until

ENDS = {0: 7, 1: 5, 2: 0}


def test_a_partition_with_records_and_without_a_position_is_counted_from_nothing_on_and_named() -> None:
    found = counted_until("pos_transactions", ENDS, {0: 6})

    assert found == Counted({0: 6, 1: 0, 2: 0}, ["pos_transactions/1"])


def test_a_topic_without_any_position_is_named_whole() -> None:
    found = counted_until("pos_transactions", ENDS, {})

    assert found == Counted({}, ["pos_transactions"])


def test_a_position_of_a_partition_that_the_broker_no_longer_has_is_not_looked_up() -> None:
    found = counted_until("pos_transactions", {0: 7}, {0: 6, 1: 5})

    assert found == Counted({0: 6}, [])
