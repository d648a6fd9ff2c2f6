"""Replayed dead letters: parsed again, recorded with their outcome, and counted once."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import pytest

from master_dataset.dead_letters import replay
from master_dataset.dead_letters.dead_letter import DeadLetterQuery
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay import BEGUN_AT_ONCE, DeadLetterResult, ReplayRequest
from master_dataset.dead_letters.replay_history import Replay
from master_dataset.errors import BrokerUnavailableError, UnknownNameError
from master_dataset.kafka.producer import DeliveryStatus
from master_dataset.kafka.record import RecordPosition
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from tests.support.archiving import NOON, SECOND, TILLS, WorldDeadLetters
from tests.support.corpus.case import receipt
from tests.support.corpus.record import record

NO_TIME = receipt({"happened_at": '"yesterday"', "price": "1.10"})
A_TIME = Patch(fields={"/happened_at": b'"2026-11-21T11:00:00Z"'})
ANOTHER_TIME = Patch(fields={"/happened_at": b'"2026-11-21T11:00:01Z"'})
AS_IT_IS = Patch()


@pytest.fixture
def world() -> WorldDeadLetters:
    return WorldDeadLetters()


def replayed(
    world: WorldDeadLetters, *positions: RecordPosition, patch: Patch = AS_IT_IS, dry_run: bool = False
) -> list[DeadLetterResult]:
    request = ReplayRequest(positions, patch, "a test", dry_run)
    return world.replaying.run(request, lambda _: DEFAULT_TERMS, lambda *_: None)


def outcomes(world: WorldDeadLetters, position: RecordPosition) -> list[tuple[str, str | None, str | None]]:
    """Of each replay: what became of it, whose repeat it is, and why it is none."""
    _, shown = world.queries.get(position)
    return [(each["outcome"], each["duplicate_of"], each["reason"]) for each in shown["replays"]]


def test_a_patched_dead_letter_is_sent_with_its_store_as_key_and_names_its_origin(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME, key=b"wrong", headers=[("trace", b"7"), ("replay_of", b"old")])

    [item] = replayed(world, position, patch=A_TIME)

    [sent] = world.sender.carried
    assert (item.outcome, item.to, item.store) == ("sent", RecordPosition(TILLS, 0, 1), "1")
    assert (sent.topic, sent.key) == (TILLS, b"1")
    assert list(sent.headers) == [("trace", b"7"), ("replay_of", b"pos_transactions/0/0")]
    assert b'"price": 1.10' in sent.value


def test_the_dead_letter_stays_as_it_was_and_shows_the_outcome_of_its_replay(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    before, _ = world.queries.get(position)

    replayed(world, position, patch=A_TIME)
    waiting = outcomes(world, position)
    world.archive.catch_up()

    after, shown = world.queries.get(position)
    assert waiting == [("waiting", None, None)]
    assert after == before
    assert [
        (each["outcome"], each["sent_to"], each["by"], each["mended"], each["at"]) for each in shown["replays"]
    ] == [("event", "pos_transactions/0/1", "a test", "/happened_at", world.now)]


def test_a_dead_letter_that_was_replayed_and_archived_is_not_sent_again(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    replayed(world, position, patch=A_TIME)
    world.archive.catch_up()

    [item] = replayed(world, position, patch=A_TIME)

    assert (item.outcome, item.of, len(world.sender.carried)) == ("duplicate", RecordPosition(TILLS, 0, 1), 1)


def test_a_dead_letter_that_is_replayed_twice_before_it_is_archived_becomes_one_event(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)

    replayed(world, position, patch=A_TIME)
    world.now += SECOND
    replayed(world, position, patch=A_TIME)
    world.archive.catch_up()

    assert outcomes(world, position) == [("event", None, None), ("duplicate", "pos_transactions/0/1", None)]


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_dead_letter_that_became_one_event_never_becomes_a_second_one(
    world: WorldDeadLetters, *, is_archived: bool
) -> None:
    [position] = world.archive.receive(NO_TIME)
    replayed(world, position, patch=A_TIME)
    if is_archived:
        world.archive.catch_up()

    [tried] = replayed(world, position, patch=ANOTHER_TIME, dry_run=True)
    [item] = replayed(world, position, patch=ANOTHER_TIME)

    assert (item.outcome, item.of, item.rejection) == ("refused", RecordPosition(TILLS, 0, 1), tried.rejection)
    assert item.rejection
    assert item.rejection.reason == "conflicting_duplicate"
    assert tried.outcome == item.outcome
    assert len(world.sender.carried) == 1


def test_a_dead_letter_whose_replay_may_be_there_is_sent_as_the_same_event_or_not_at_all(
    world: WorldDeadLetters,
) -> None:
    [position] = world.archive.receive(NO_TIME)
    world.sender.says = lambda _: DeliveryStatus.UNCONFIRMED
    replayed(world, position, patch=A_TIME)
    world.sender.says = lambda _: DeliveryStatus.ACKNOWLEDGED

    [another] = replayed(world, position, patch=ANOTHER_TIME)
    [same] = replayed(world, position, patch=A_TIME)

    assert (another.outcome, another.of, same.outcome) == ("refused", None, "sent")


@pytest.mark.parametrize(
    ("delivery", "outcome"), [(DeliveryStatus.ACKNOWLEDGED, "event"), (DeliveryStatus.UNCONFIRMED, "unknown")]
)
def test_a_dead_letter_that_two_replay_differently_at_the_same_time_becomes_one_event_at_most(
    world: WorldDeadLetters, monkeypatch: pytest.MonkeyPatch, delivery: DeliveryStatus, outcome: str
) -> None:
    [position] = world.archive.receive(NO_TIME)
    append, others = world.replays.append, [ANOTHER_TIME]

    def overtaken(replays: Iterable[Replay]) -> None:
        if others:
            replayed(world, position, patch=others.pop())
            world.sender.says = lambda _: DeliveryStatus.ACKNOWLEDGED
        append(replays)

    world.sender.says = lambda _: delivery
    monkeypatch.setattr(world.replays, "append", overtaken)
    [item] = replayed(world, position, patch=A_TIME)
    world.archive.catch_up()

    assert item.rejection
    assert (item.outcome, BEGUN_AT_ONCE in item.rejection.sentence) == ("refused", True)
    assert sorted(outcomes(world, position), key=str) == sorted(
        [(outcome, None, None), ("dead_letter", None, "conflicting_duplicate")], key=str
    )


def test_a_dead_letter_whose_replay_was_rejected_after_all_may_become_another_event(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    replayed(world, position, patch=A_TIME)
    key, _, headers = world.archive.topics[TILLS][1]
    world.archive.topics[TILLS][1] = (key, b"{", headers)  # as if the source had changed in between
    world.archive.catch_up()

    [item] = replayed(world, position, patch=ANOTHER_TIME)

    assert item.outcome == "sent"


def test_a_dead_letter_whose_patch_was_too_large_may_become_a_smaller_event(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    world.sender.says = lambda _: DeliveryStatus.TOO_LARGE
    replayed(world, position, patch=A_TIME)
    world.sender.says = lambda _: DeliveryStatus.ACKNOWLEDGED
    world.now += SECOND

    [item] = replayed(world, position, patch=ANOTHER_TIME)

    assert (item.outcome, outcomes(world, position)[0]) == ("sent", ("dead_letter", None, "too_large"))


@pytest.mark.parametrize(
    ("value", "patch", "reason", "field"),
    [
        (NO_TIME, AS_IT_IS, "bad_time", "/happened_at"),
        (NO_TIME, Patch(fields={"/happened_at": b"7"}), "bad_time", "/happened_at"),
        (NO_TIME, Patch(b"{"), "not_json", ""),
        (NO_TIME, Patch(fields={"/none/x": b"7"}), "missing_field", "/none/x"),
        (NO_TIME, Patch(fields={"/happened_at": b'"2026-11-21T14:00:01Z"'}), "from_the_future", "/happened_at"),
        (None, AS_IT_IS, "empty_value", ""),
        (b"", A_TIME, "empty_value", ""),
        (b"{", A_TIME, "not_json", ""),
        (b" " * 1_000_001, AS_IT_IS, "too_large", ""),
    ],
)
def test_what_would_come_back_is_not_sent_and_says_why(
    world: WorldDeadLetters, value: bytes | None, patch: Patch, reason: str, field: str
) -> None:
    [position] = world.archive.receive(value)

    found = [replayed(world, position, patch=patch, dry_run=dry_run)[0] for dry_run in (True, False)]

    rejections = [each.rejection and (each.rejection.reason, each.rejection.field) for each in found]
    assert ([each.outcome for each in found], rejections) == (["refused"] * 2, [(reason, field)] * 2)
    assert (world.sender.carried, outcomes(world, position)) == ([], [])


def test_a_dry_run_sends_nothing_and_needs_no_broker(world: WorldDeadLetters) -> None:
    [position, other] = world.archive.receive(
        NO_TIME, receipt({"happened_at": '"2026-11-21T11:00:00Z"', "price": "1.10"})
    )
    world.sender.is_away = True

    [same] = replayed(world, position, patch=A_TIME, dry_run=True)
    [another] = replayed(world, position, patch=Patch(fields={"/happened_at": b'"2026-11-21T11:00:01Z"'}), dry_run=True)

    assert (same.outcome, same.of, another.outcome) == ("duplicate", other, "event")
    assert world.sender.carried == []


def test_a_dead_letter_from_the_future_can_be_replayed_unchanged_once_the_clock_is_right(
    world: WorldDeadLetters,
) -> None:
    [position] = world.archive.receive(receipt({"happened_at": '"2026-11-21T13:30:00Z"'}))
    world.now = NOON
    [early] = replayed(world, position)

    world.now = NOON + timedelta(hours=1)
    [late] = replayed(world, position)

    assert (early.rejection and early.rejection.reason, late.outcome) == ("from_the_future", "sent")


def test_a_conflict_is_refused_until_its_identity_is_another_one(world: WorldDeadLetters) -> None:
    first, other = world.archive.receive(receipt(), receipt({"title": '"Beer"'}))
    world.archive.conflict(other)

    [as_it_is] = replayed(world, other)
    [same_identity] = replayed(world, other, patch=Patch(fields={"/transactions/0/title": b'"Milk 1 l"'}))
    [patched] = replayed(world, other, patch=Patch(fields={"/transaction_id": b"43"}))

    for refused in (as_it_is, same_identity):
        assert (refused.outcome, refused.rejection and refused.rejection.reason) == ("refused", "conflicting_duplicate")
    assert patched.outcome == "sent"
    assert first != other


def test_what_would_contradict_an_event_that_is_kept_is_not_sent(world: WorldDeadLetters) -> None:
    position, kept = world.archive.receive(
        NO_TIME, receipt({"happened_at": '"2026-11-21T11:00:00Z"', "title": '"Beer"'})
    )

    [item] = replayed(world, position, patch=A_TIME)

    assert (item.outcome, item.of, item.rejection and item.rejection.reason) == (
        "refused",
        kept,
        "conflicting_duplicate",
    )


def test_a_masked_address_goes_only_with_a_device_of_its_own(world: WorldDeadLetters) -> None:
    value = record(WIFI_SIGHTINGS, device="3c:22:fb:9a:1d:e7")
    [position] = world.archive.receive(value, topic="wifi_sightings")
    a_hash = b'"9f86d081884c7d659a2feaa0c55ad015"'

    [as_it_is] = replayed(world, position)
    [patched] = replayed(world, position, patch=Patch(fields={"/device": a_hash}))

    assert as_it_is.rejection
    assert (as_it_is.rejection.reason, "masked" in as_it_is.rejection.sentence) == ("raw_mac_address", True)
    assert patched.outcome == "sent"


def test_an_unknown_schema_is_refused_unless_somebody_writes_the_record_anew(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(receipt(), headers=[("schema", b"receipts_v9")])

    [as_it_is] = replayed(world, position)
    [anew] = replayed(world, position, patch=Patch(receipt()))

    assert (as_it_is.rejection and as_it_is.rejection.reason, anew.outcome) == ("unknown_schema", "sent")
    assert [name for name, _ in world.sender.carried[0].headers] == ["replay_of"]


def test_what_the_broker_did_not_confirm_may_be_sent_again_and_stays_open(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    world.sender.says = lambda _: DeliveryStatus.UNCONFIRMED

    [item] = replayed(world, position, patch=A_TIME)

    assert (item.outcome, outcomes(world, position)) == ("unknown", [("unknown", None, None)])
    assert [each.position for each in world.queries.list_replayable(DeadLetterQuery(), 10).dead_letters] == [position]


def test_a_replay_that_ended_before_the_broker_answered_is_not_forgotten(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)

    def dies(_: object) -> DeliveryStatus:
        raise KeyboardInterrupt

    world.sender.says = dies
    with pytest.raises(KeyboardInterrupt):
        replayed(world, position, patch=A_TIME)

    assert outcomes(world, position) == [("unknown", None, None)]


def test_without_a_broker_nothing_is_remembered(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    world.sender.is_away = True

    with pytest.raises(BrokerUnavailableError):
        replayed(world, position, patch=A_TIME)

    assert outcomes(world, position) == []


def test_what_lies_in_no_source_is_refused_by_itself_and_what_was_chosen_with_it_is_sent(
    world: WorldDeadLetters,
) -> None:
    [position] = world.archive.receive(NO_TIME)
    alert = RecordPosition("webhook.5f0c81d2a9b3", 0, 42)
    world.archive.dead_letter_of(alert, "undelivered")

    items = replayed(world, position, alert, patch=A_TIME)

    assert {each.position: each.outcome.value for each in items} == {position: "sent", alert: "refused"}


def test_those_after_one_that_stays_rejected_can_be_requested(world: WorldDeadLetters) -> None:
    refused, behind = world.archive.receive(b"{", NO_TIME)

    first = world.queries.list_replayable(DeadLetterQuery(None, TILLS, None, None, None), 1)
    then = world.queries.list_replayable(
        DeadLetterQuery(None, TILLS, None, None, None), 1, world.queries.cursor_of(refused)
    )

    assert [each.position for page in (first, then) for each in page.dead_letters] == [refused, behind]


def test_one_that_is_no_dead_letter_refuses_all_of_its_portion(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)

    with pytest.raises(UnknownNameError):
        replayed(world, position, RecordPosition(TILLS, 0, 77), patch=A_TIME)

    assert world.sender.carried == []


def test_many_go_in_portions_in_the_order_of_receipt_and_what_was_sent_is_open_no_more(
    world: WorldDeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "PORTION", 3)
    world.archive.receive(*(receipt({"happened_at": "7", "transaction_id": str(number)}) for number in range(7)), b"{")
    steps: list[tuple[int, int, str]] = []
    page = world.queries.list_replayable(DeadLetterQuery(source=TILLS), 100)
    request = ReplayRequest(
        [each.position for each in page.dead_letters], A_TIME, "a test", dry_run=False, summaries=page.dead_letters
    )

    items = world.replaying.run(request, lambda _: DEFAULT_TERMS, lambda *step: steps.append(step))
    world.archive.catch_up()

    assert Counter(each.outcome.value for each in items) == {"sent": 7, "refused": 1}
    assert [b'"transaction_id":%d' % number in each.value for number, each in enumerate(world.sender.carried)] == [
        True
    ] * 7
    assert steps == [(0, 8, "replayed"), (3, 8, "replayed"), (6, 8, "replayed"), (8, 8, "replayed")]
    assert [each.position.offset for each in world.queries.list_replayable(DeadLetterQuery(), 100).dead_letters] == [7]
    counts = world.queries.dead_letters.counts(DeadLetterQuery())
    assert (counts.dead_letters, counts.replayed) == ({"bad_time": 7, "not_json": 1}, {"bad_time": 7})


def test_a_replay_that_becomes_a_dead_letter_after_all_leads_to_that_one(world: WorldDeadLetters) -> None:
    [position] = world.archive.receive(NO_TIME)
    replayed(world, position, patch=A_TIME)
    key, _, headers = world.archive.topics[TILLS][1]
    world.archive.topics[TILLS][1] = (key, b"{", headers)  # as if the source had changed in between
    world.archive.catch_up()

    [(outcome, _, reason)] = outcomes(world, position)
    again, _ = world.queries.get(RecordPosition(TILLS, 0, 1))

    assert (outcome, reason) == ("dead_letter", "not_json")
    assert again.headers == (("replay_of", b"pos_transactions/0/0"),)
