"""What a dead letter would become: unchanged, the same dead letter, for every record of the corpus."""

import pytest

from master_dataset.dead_letters.dead_letter import StoredDeadLetter
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay import check_replay
from master_dataset.kafka.record import RecordPosition
from master_dataset.registry.stores import Terms
from tests.support.archiving import NOON, TILLS
from tests.support.corpus.case import Case, by_hand, receipt

CASES = [case for case in by_hand() if case.expected != "event"]
PLACE = RecordPosition(TILLS, 0, 7)
NOW_US = int(NOON.timestamp() * 1_000_000)


def dead_letter(case: Case) -> StoredDeadLetter:
    return StoredDeadLetter(PLACE, NOON, case.expected, case.field, "", b"1", case.value, (), len(case.value))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_unchanged_a_dead_letter_is_rejected_for_the_same_reason_and_a_complete_record_fixes_it(case: Case) -> None:
    terms = Terms(currency=case.store_currency)
    now_us = case.received_us or NOW_US

    same = check_replay(dead_letter(case), Patch(), lambda _: terms, now_us).rejection
    anew = check_replay(dead_letter(case), Patch(receipt({"price": "1", "total": "2"})), lambda _: terms, NOW_US)

    assert same is not None
    assert (same.reason, same.field) == (case.expected, case.field)
    assert anew.event is not None
    assert anew.record is not None
    assert anew.record.headers == [("replay_of", b"pos_transactions/0/7")]


def test_a_topic_that_no_source_file_defines_takes_nothing() -> None:
    gone = StoredDeadLetter(RecordPosition("gone", 0, 7), NOON, "not_json", "", "", None, b"{", (), 1)

    rejection = check_replay(gone, Patch(receipt()), lambda _: Terms(), NOW_US).rejection

    assert rejection is not None
    assert rejection.reason == "unknown_schema"


def test_an_alert_that_a_webhook_refused_is_no_event_and_says_so() -> None:
    refused = StoredDeadLetter(
        RecordPosition("webhook.e1", 0, 7), NOON, "alert_delivery_rejected", "", "", b"1", b"{}", (), 2
    )

    rejection = check_replay(refused, Patch(), lambda _: Terms(), NOW_US).rejection

    assert rejection is not None
    assert (rejection.reason, "an alert that a webhook rejected" in rejection.sentence) == (
        "alert_delivery_rejected",
        True,
    )
