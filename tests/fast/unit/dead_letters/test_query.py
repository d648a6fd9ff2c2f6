"""Queries of dead letters are parsed, or rejected with the word that is wrong."""

from datetime import UTC, datetime

import pytest

from master_dataset.dead_letters.dead_letter import DeadLetterQuery, received_bound
from master_dataset.errors import RequestError, UnknownNameError
from master_dataset.kafka.record import RecordPosition

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_an_id_is_topic_partition_and_offset() -> None:
    assert RecordPosition.of("pos_transactions/2/88120") == RecordPosition("pos_transactions", 2, 88120)
    assert RecordPosition.of(RecordPosition("a", 0, 2**63 - 1).id).offset == 2**63 - 1


@pytest.mark.parametrize(
    "text", ["", "a", "a/1", "a/1/", "a/1/2/3", "/1/2", "a/-1/2", "a/1/x", "a/1/\u0662", f"a/1/{2**63}", f"a/{2**31}/1"]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        RecordPosition.of(text)


def test_a_bound_is_a_utc_day_or_an_instant() -> None:
    assert received_bound("2026-11-21") == NOON.replace(hour=0)
    assert received_bound("2026-11-21T13:00:00+01:00") == NOON
    assert (received_bound(""), received_bound(None)) == (None, None)


@pytest.mark.parametrize(
    "text", ["today", "2026-11-21T12:00:00", "2026-02-30", "0001-01-01T00:00:00+14:00", "21.11.2026"]
)
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="not a valid time"):
        received_bound(text)


def test_a_question_that_contradicts_itself_or_names_what_nobody_knows_is_refused() -> None:
    with pytest.raises(RequestError, match="not before"):
        DeadLetterQuery(since=NOON, until=NOON)
    with pytest.raises(UnknownNameError) as reason:
        DeadLetterQuery(reason="bad_tim")
    with pytest.raises(UnknownNameError):
        DeadLetterQuery(source="tills")
    assert reason.value.do == "Did you mean `bad_time`?"
