"""The checks of the drill of power cuts find each kind of harm."""

import struct

import pytest

from tests.system.drills.power_check import (
    Acknowledged,
    Batch,
    Broken,
    Outcome,
    Place,
    Transaction,
    batches_of,
    check_records,
    check_sequences,
    check_transactions,
    check_watermarks,
)


def at(partition: int, offset: int, number: int, name: str = "ingest-1") -> Place:
    return Place(partition, offset, b"%s %d filling" % (name.encode(), number))


LOG = [at(0, 0, 1), at(0, 1, 2), at(0, 2, 1, "api"), at(1, 0, 3), at(0, 3, 4)]


def test_a_log_with_every_acknowledged_record_at_its_place_is_well() -> None:
    broken = check_records(Acknowledged(LOG[:3]), LOG)  # the last one was never acknowledged

    assert broken == Broken()
    assert broken.is_nothing


@pytest.mark.parametrize(
    "log",
    [LOG[:-1], [*LOG[:-1], at(0, 3, 5)], [*LOG[:-1], at(0, 4, 4)], [*LOG[:-1], at(1, 3, 4)]],
    ids=["missing", "another record is there", "at another offset", "in another partition"],
)
def test_an_acknowledged_record_that_is_not_at_its_place_is_lost(log: list[Place]) -> None:
    assert check_records(Acknowledged(LOG), log) == Broken(lost=1)


def test_a_record_that_is_there_twice_is_counted() -> None:
    log = [*LOG, LOG[3]._replace(offset=1)]

    assert check_records(Acknowledged(LOG), log) == Broken(repeated=1)
    assert check_records(Acknowledged(LOG, again={LOG[3].value}), log) == Broken(sent_again=1)
    assert Broken(sent_again=1, repeated=1).is_nothing


BATCHES = [Batch(7, 0, 0, 3), Batch(8, 0, 0, 1), Batch(7, 0, 3, 1), Batch(7, 1, 0, 2), Batch(7, 1, 2, 2)]


def test_a_sequence_number_comes_once_in_an_epoch() -> None:
    assert check_sequences(BATCHES) == 0
    assert check_sequences([*BATCHES, BATCHES[1]]) == 1
    assert check_sequences([*BATCHES, Batch(7, 1, 3, 4)]) == 1
    assert not Broken(twice=1).is_nothing


def test_batches_are_read_from_a_segment() -> None:
    heads = b"".join(
        struct.pack(">qiibIhiqqqhii", 0, 49 + 5, 0, 2, 0, 0, n - 1, 0, 0, producer, epoch, sequence, n) + b"lines"
        for producer, epoch, sequence, n in BATCHES
    )

    assert list(batches_of(heads)) == BATCHES
    assert list(batches_of(heads + bytes(100))) == BATCHES


def test_records_of_a_producer_are_in_order_within_a_partition() -> None:
    log = [*LOG, at(0, 4, 0)]

    assert check_records(Acknowledged(LOG), log) == Broken(out_of_order=1)
    assert check_records(Acknowledged(LOG, again={log[-1].value}), log) == Broken()  # it was given up in between
    assert check_records(Acknowledged(LOG), [*LOG, at(2, 0, 0)]) == Broken()


KNOWN = {
    0: Transaction(2, Outcome.COMMITTED),
    1: Transaction(1, Outcome.ABORTED),
    2: Transaction(2, Outcome.UNKNOWN),
    3: Transaction(1, Outcome.UNKNOWN),
}
VISIBLE = [(0, 0), (2, 0), (0, 1), (2, 1)]


def test_a_transaction_of_unknown_outcome_is_there_or_not() -> None:
    assert check_transactions(KNOWN, VISIBLE, 2) == Broken()
    assert check_transactions(KNOWN, VISIBLE[::2], 0) == Broken()


@pytest.mark.parametrize(
    ("visible", "position", "broken"),
    [
        (VISIBLE[1::2], 2, Broken(incomplete=1)),
        (VISIBLE[1:], 2, Broken(incomplete=1)),
        (VISIBLE[:-1], 2, Broken(incomplete=1)),
        ([*VISIBLE, (1, 0)], 2, Broken(aborted_visible=1)),
        ([*VISIBLE, (0, 1)], 2, Broken(twice=1)),
        (VISIBLE, 0, Broken(positions=1)),
        (VISIBLE, 3, Broken(positions=1)),
    ],
    ids=["lost", "a part is lost", "a part is visible", "aborted", "twice", "old position", "early position"],
)
def test_a_transaction_is_visible_as_a_whole_with_its_position(
    visible: list[tuple[int, int]], position: int, broken: Broken
) -> None:
    assert check_transactions(KNOWN, visible, position) == broken


def test_a_log_does_not_end_before_what_was_acknowledged() -> None:
    assert check_watermarks(LOG, {0: 4, 1: 1}) == 0
    assert check_watermarks(LOG, {0: 3, 1: 1}) == 1
    assert check_watermarks(LOG, {0: 3, 1: 0}) == 2
