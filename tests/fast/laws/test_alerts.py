"""Alerts follow from the log alone: however it is read, from where and how often, the same ones come of it."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from speed_layer.alerts.state import State
from tests.support.alerting import MARKER, at_ms, rule_history_of, value
from tests.support.examples import examples
from views.alerts.alert import Alert
from views.alerts.timings import AlertTimings

MINUTE = 60_000
BEGIN = at_ms("2026-03-07 07:30")
TIMINGS = AlertTimings()
TILLS = rule_history_of(
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "15m", "above": 2},
    {"kind": "threshold", "id": "few", "metric": "net_sales", "window": "hour", "below": 5},
    {"kind": "threshold", "id": "returns", "metric": "return_rate", "window": "hour", "above": 40},
    {
        "kind": "threshold",
        "id": "week",
        "metric": "net_sales",
        "window": "hour",
        "below": 50,
        "versus": "previous_week",
    },
    {"kind": "silence", "id": "silent", "source": "pos_transactions", "minutes": 10},
)
QUEUES = rule_history_of(
    {"kind": "level", "id": "queue", "of": "queue", "above": 2, "minutes": 3},
    {"kind": "level", "id": "crowd", "of": "queue", "above": 4, "minutes": 0},
    {"kind": "silence", "id": "silent", "source": "queue_events", "minutes": 5, "per": "sensor", "hours": "always"},
)
STEPS = st.sampled_from([0, 100, 5_000, 20_000, MINUTE, 5 * MINUTE, 20 * MINUTE, 3 * 60 * MINUTE, 26 * 60 * MINUTE])
AGES = st.sampled_from([0, 1000, MINUTE, 16 * MINUTE, 70 * MINUTE, 22 * 60 * MINUTE, 24 * 60 * MINUTE, -50 * MINUTE])
DRAWN = st.lists(st.tuples(STEPS, AGES, st.integers(0, 9)), min_size=1, max_size=60)


def ticks(since: int, step: int) -> list[LogRecord]:
    """Markers every minute, unless nobody was there for hours."""
    until = since + step if step <= 20 * MINUTE else since
    return [LogRecord(0, at, b"", MARKER) for at in range(since, until, MINUTE)]


def numbered(entries: list[LogRecord]) -> list[LogRecord]:
    return [entry._replace(offset=number) for number, entry in enumerate(entries)]


def till_log(drawn: Sequence[tuple[int, int, int]]) -> list[LogRecord]:
    now, found = BEGIN, list[LogRecord]()
    for number, (step, age, kind) in enumerate(drawn):
        found += ticks(now, step)
        now += step
        if kind == 0:
            found.append(LogRecord(number, now, b"", MARKER))
        elif kind == 1:
            found.append(LogRecord(number, now, b"{", ()))
        elif kind == 2 and found:
            found.append(found[-1]._replace(offset=number, received_ms=now))
        else:
            line = {"title": "x", "price": kind, "amount": -1 if kind == 3 else 1}
            bytes_ = value("pos_transactions", now - age, transaction_id=number, transactions=[line])
            found.append(LogRecord(number, now, bytes_, ()))
    return numbered(found)


def queue_log(drawn: Sequence[tuple[int, int, int]]) -> list[LogRecord]:
    now, found = BEGIN, list[LogRecord]()
    for number, (step, age, kind) in enumerate(drawn):
        found += ticks(now, step)
        now += step
        if kind == 0:
            found.append(LogRecord(number, now, b"", MARKER))
            continue
        more = {} if kind == 1 else {"length_after": kind - 2}
        fields = {"kind": "join", "track": f"p{number}", "queue": f"Q{kind % 2}", "sensor_id": f"s{kind % 2}", **more}
        found.append(LogRecord(number, now, value("queue_events", now - age, **fields), ()))
    return numbered(found)


LOGS = [("pos_transactions", TILLS, till_log), ("queue_events", QUEUES, queue_log)]


def folded(fold: Fold, entries: Sequence[LogRecord], which: int) -> list[Alert]:
    return [alert for entry in entries for alert in fold.step(entry, LOGS[which][1])]


def new(which: int, state: State | None = None) -> Fold:
    return Fold(registered_sources()[LOGS[which][0]], 0, TIMINGS, state)


@given(st.sampled_from([0, 1]), DRAWN, st.lists(st.integers(0, 60), max_size=4))
@settings(max_examples=examples(150), deadline=None)
def test_a_state_that_was_kept_and_read_again_goes_on_as_if_nothing_had_been(
    which: int, drawn: list[tuple[int, int, int]], breaks: list[int]
) -> None:
    entries = LOGS[which][2](drawn)
    whole = new(which)
    expected = folded(whole, entries, which)

    fold, emitted = new(which), list[Alert]()
    for number, entry in enumerate(entries):
        if number in breaks:
            fold = new(which, State.from_bytes(fold.state.to_bytes()))
        emitted += fold.step(entry, LOGS[which][1])

    assert [alert.to_json() for alert in emitted] == [alert.to_json() for alert in expected]
    assert fold.state.digest() == whole.state.digest()


@given(st.sampled_from([0, 1]), DRAWN, st.integers(0, 60))
@example(0, [(MINUTE, 0, 0), (26 * 60 * MINUTE, 0, 0), (26 * 60 * MINUTE, 0, 0), (26 * 60 * MINUTE, 0, 0)], 8)
@example(0, [(0, 0, 2), (20 * MINUTE, 0, 0), (MINUTE, 0, 0), *[(26 * 60 * MINUTE, 0, 0)] * 3, (0, 0, 0)], 11)
@example(0, [(0, 0, 2), (26 * 60 * MINUTE, 0, 0), (MINUTE, 0, 0), *[(26 * 60 * MINUTE, 0, 0)] * 2, (0, 0, 0)], 10)
@settings(max_examples=examples(150), deadline=None)
def test_the_state_follows_from_the_horizon_of_the_log_alone(
    which: int, drawn: list[tuple[int, int, int]], place: int
) -> None:
    month = [(step * 5, age, kind) for step, age, kind in drawn]
    entries = LOGS[which][2](month)
    at = min(place, len(entries) - 1)
    whole = new(which)
    folded(whole, entries[:at], which)
    since = whole.state.log_ms - TIMINGS.horizon.total_seconds() * 1000
    again = new(which)
    folded(again, [entry for entry in entries[:at] if entry.received_ms >= since], which)

    assert [each.to_json() for each in folded(again, entries[at:], which)] == [
        each.to_json() for each in folded(whole, entries[at:], which)
    ]
    assert again.state.digest() == whole.state.digest()


@given(st.sampled_from([0, 1]), DRAWN)
@settings(max_examples=examples(150), deadline=None)
def test_every_id_is_emitted_once_and_nothing_is_resolved_that_was_not_raised(
    which: int, drawn: list[tuple[int, int, int]]
) -> None:
    emitted = folded(new(which), LOGS[which][2](drawn), which)

    raised = {alert.alert_id: number for number, alert in enumerate(emitted) if alert.kind == "raised"}
    assert len({alert.alert_id for alert in emitted}) == len(emitted)
    assert all(raised[alert.about or ""] < number for number, alert in enumerate(emitted) if alert.kind == "resolved")


@given(DRAWN)
@settings(max_examples=examples(100), deadline=None)
def test_what_is_sent_again_at_once_changes_no_alert(drawn: list[tuple[int, int, int]]) -> None:
    entries = till_log(drawn)
    twice = [each for entry in entries for each in (entry, entry)]

    once, again = (folded(new(0), log, 0) for log in (entries, twice))

    assert [each.to_json() for each in again] == [each.to_json() for each in once]
