"""The expected answer follows from the responses that the client got, and from nothing else."""

from datetime import UTC, datetime, timedelta

from tests.system.drills.till_roll import OLDEST, Delivery, Due, Slip, TillRoll

CUT = datetime(2026, 11, 22, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def slip(number: int, happened_at: datetime, minor: int = 100) -> Slip:
    return Slip(b"{}", "1", ("1", number), happened_at, minor)


def roll(*deliveries: tuple[Slip, datetime]) -> TillRoll:
    found = TillRoll()
    for offset, (each, received_at) in enumerate(deliveries):
        found.hand_over(each)
        found.delivered(Delivery(each, 0, offset, received_at))
    return found


def test_a_receipt_counts_once_by_its_first_delivery_on_both_sides_of_a_cut() -> None:
    first = slip(1, CUT - timedelta(hours=1))
    found = roll((first, CUT - SECOND), (first, CUT + SECOND), (slip(2, CUT, 50), CUT + SECOND))

    assert found.due(CUT) == found.due(CUT + timedelta(hours=1)) == Due(2, 150, 0)
    assert (found.receipts, found.duplicates) == (2, 1)


def test_what_is_too_old_for_speed_waits_until_a_cut_covers_it_and_a_repeat_of_it_waits_too() -> None:
    old = slip(1, CUT - OLDEST)
    found = roll((old, CUT + SECOND), (old, CUT + 2 * SECOND))

    assert found.due(CUT) == Due(0, 0, 2)
    assert found.due(CUT + 2 * SECOND) == Due(1, 100, 1)
    assert found.due(CUT + 3 * SECOND) == Due(1, 100, 0)


def test_what_is_just_as_old_as_speed_counts_does_not_wait() -> None:
    found = roll((slip(1, CUT - OLDEST), CUT))

    assert found.due(CUT) == Due(1, 100, 0)


def test_a_broken_record_is_no_receipt_and_one_that_is_not_acknowledged_may_be_shown() -> None:
    found = roll((Slip(b"{", "1"), CUT))
    found.hand_over(slip(1, CUT))

    assert found.due(CUT) == Due(0, 0, 0)
    assert (found.broken, found.duplicates, found.receipts) == (1, 0, 1)


def test_of_deliveries_acknowledged_in_any_order_the_first_in_the_log_counts() -> None:
    found, old = TillRoll(), slip(1, CUT - OLDEST)
    deliveries = [(1, CUT + 2 * SECOND), (0, CUT + SECOND), (3, CUT - 2 * SECOND), (2, CUT - 3 * SECOND)]
    for offset, received_at in deliveries:
        found.hand_over(old)
        found.delivered(Delivery(old, 0, offset, received_at))

    assert found.due(CUT + SECOND) == Due(0, 0, 2)
    assert found.due(CUT + 2 * SECOND) == Due(1, 100, 1)

    found.delivered(Delivery(slip(1, CUT, 70), 0, -1, CUT))

    assert found.due(CUT) == Due(1, 70, 2)
