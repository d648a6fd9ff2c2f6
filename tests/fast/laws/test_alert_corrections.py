"""After publications, what stands of the alerts is what plain sums over everything received ask for."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from hypothesis import example, given, settings
from hypothesis import strategies as st

from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from tests.support.alerting import MARKER, at_ms, rule_history_of, value
from tests.support.auditing import TIMINGS, Publications
from tests.support.examples import examples
from views.alerts.alert import Alert, alert_statuses, format_instant, parse_instant_ms
from views.alerts.rule_validation import parse_rule

MINUTE, QUARTER, HOUR = 60_000, 900_000, 3_600_000
BEGIN = at_ms("2026-03-07 07:30")
RULES = [
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "15m", "above": 2},
    {"kind": "threshold", "id": "lots", "metric": "net_sales", "window": "hour", "above": 9},
    {"kind": "threshold", "id": "few", "metric": "net_sales", "window": "hour", "below": 5},
    {"kind": "silence", "id": "silent", "source": "pos_transactions", "minutes": 10},
]
RULE_HISTORY = rule_history_of(*RULES)
BY_KEY = {("default", str(rule["id"]), 1): parse_rule(rule) for rule in RULES}
STEPS = st.sampled_from([0, 100, 5_000, 20_000, MINUTE, 5 * MINUTE, 20 * MINUTE, 3 * 60 * MINUTE, 26 * 60 * MINUTE])
SOON = st.sampled_from([0, 1000])
AGES = st.sampled_from([0, 1000, MINUTE, 16 * MINUTE, 70 * MINUTE, 5 * HOUR, 22 * HOUR, 24 * HOUR, -50 * MINUTE])
KINDS = st.integers(0, 9)
LAG = 5
CUTS = st.sets(st.integers(0, 99), max_size=4)
"""Where in the log, in percent."""
Drawn = list[tuple[int, int, int]]


def log_of(drawn: Sequence[tuple[int, int, int]]) -> list[LogRecord]:
    """Receipts; 0 is a marker, 1 a delivery again, 2 another receipt under the identity of the last, 3 a return."""
    now, found, last = BEGIN, list[LogRecord](), None
    for number, (step, age, kind) in enumerate(drawn):
        until = now + step if step <= 20 * MINUTE else now
        found += [LogRecord(0, at, b"", MARKER) for at in range(now, until, MINUTE)]
        now += step
        if kind == 0:
            found.append(LogRecord(0, now, b"", MARKER))
        elif kind in {1, 2} and last is not None:
            body = json.loads(last)
            if kind == 2:
                body["transactions"][0]["price"] = 77
            found.append(LogRecord(0, now, json.dumps(body).encode()))
        else:
            line = {"title": "x", "price": kind, "amount": -1 if kind == 3 else 1}
            last = value("pos_transactions", now - age, transaction_id=number, transactions=[line])
            found.append(LogRecord(0, now, last))
    return [entry._replace(offset=number) for number, entry in enumerate(found)]


def played(entries: list[LogRecord], cuts: set[int]) -> tuple[Publications, list[Alert]]:
    """The alert processor reads on, publications come in between, and one at last when everything is over.

    A publication takes its time: when the log is looked at, the alert processor has read on behind the cut.
    """
    fold = Fold(registered_sources()["pos_transactions"], 0, TIMINGS)
    world, corrections = Publications("pos_transactions", RULE_HISTORY, BY_KEY), list[Alert]()
    looks = {len(entries) * each // 100 + LAG for each in cuts}
    for number, entry in enumerate(entries):
        world.log += fold.step(entry, RULE_HISTORY)
        if number in looks:
            corrections += world.publish(entries, entries[number - LAG].received_ms)
    last = fold.state.log_ms
    ticks = [LogRecord(0, at, b"", MARKER) for at in range(last, last + 26 * HOUR, MINUTE)]
    world.log += [alert for entry in ticks for alert in fold.step(entry, RULE_HISTORY)]
    corrections += world.publish(entries, last + 26 * HOUR)
    return world, corrections


def plain_sums(entries: list[LogRecord]) -> tuple[Counter[int], Counter[int]]:
    """Receipts by quarter and cents by hour, in UTC; the first of those with one identity counts."""
    receipts, cents, met = Counter[int](), Counter[int](), set[tuple[int, str]]()
    for entry in entries:
        if not entry.headers and entry.value:
            body = json.loads(entry.value)
            identity = (body["transaction_id"], body["happened_at"])
            if identity not in met:
                met.add(identity)
                at = int(datetime.fromisoformat(body["happened_at"]).timestamp() * 1000)
                [line] = body["transactions"]
                receipts[at // QUARTER * QUARTER] += 1
                cents[at // HOUR * HOUR] += line["price"] * line["amount"] * 100
    return receipts, cents


def open_alerts(world: Publications, rule: str) -> set[int]:
    statuses = alert_statuses(world.log, world.requests).values()
    return {parse_instant_ms(e.raised.window.start) for e in statuses if e.raised.rule == rule and not e.is_withdrawn}


@given(st.lists(st.tuples(STEPS, AGES, KINDS), min_size=1, max_size=40), CUTS)
@settings(max_examples=examples(80), deadline=None)
@example([(0, 0, 9), (100, 22 * HOUR, 9), (100, 22 * HOUR, 9)], {1})
def test_open_alerts_after_publications_match_a_naive_evaluation(drawn: Drawn, cuts: set[int]) -> None:
    entries = log_of(drawn)

    world, _ = played(entries, cuts)

    receipts, cents = plain_sums(entries)
    assert open_alerts(world, "many") == {at for at, number in receipts.items() if number > 2}
    assert open_alerts(world, "lots") == {at for at, sum_ in cents.items() if sum_ > 900}
    assert all(cents[at] < 500 for at in open_alerts(world, "few"))


@given(st.lists(st.tuples(STEPS, SOON, KINDS), min_size=1, max_size=40), CUTS)
@settings(max_examples=examples(80), deadline=None)
@example([(0, 0, 4), (0, 0, 6), (0, 0, 3), (0, 0, 4)], set())  # beyond the bound, back, and beyond it again
def test_without_late_events_only_silence_alerts_are_retracted(drawn: Drawn, cuts: set[int]) -> None:
    entries = log_of(drawn)

    _, corrections = played(entries, cuts)

    retracted = [each for each in corrections if each.kind == "retracted"]
    assert {each.rule for each in retracted} <= {"silent"}  # what comes a second late may come just after the minutes
    assert {each.rule for each in corrections if each.cause == "unexplained"} <= {"few"}  # of hours nobody looked at


@given(st.lists(st.tuples(STEPS, AGES, KINDS), min_size=1, max_size=40), CUTS)
@settings(max_examples=examples(60), deadline=None)
def test_nothing_that_is_retracted_is_unexplained_and_no_id_comes_twice(drawn: Drawn, cuts: set[int]) -> None:
    entries = log_of(drawn)

    world, corrections = played(entries, cuts)

    ids = [each.alert_id for each in corrections]
    assert len(ids) == len(set(ids))
    assert [each for each in corrections if each.kind == "retracted" and each.cause == "unexplained"] == []
    again = world.publish(entries, world.cut_ms)
    assert [each.to_json() for each in again] == []


@given(st.lists(st.tuples(STEPS, AGES, KINDS), min_size=10, max_size=40), st.lists(st.integers(0, 9), max_size=3))
@settings(max_examples=examples(60), deadline=None)
def test_an_audit_that_ends_anywhere_and_is_done_again_asks_for_the_same(drawn: Drawn, ends: list[int]) -> None:
    entries = log_of(drawn)
    fold = Fold(registered_sources()["pos_transactions"], 0, TIMINGS)
    log = [alert for entry in entries for alert in fold.step(entry, RULE_HISTORY)]
    cut = fold.state.log_ms + 26 * HOUR
    whole, world = (Publications("pos_transactions", RULE_HISTORY, BY_KEY, log) for _ in range(2))
    expected = whole.looked(entries, cut)

    for number in ends:
        world.requests += world.looked(entries, cut)[:number]
    world.requests += world.looked(entries, cut)

    assert sorted(each.to_json() for each in world.requests) == sorted(each.to_json() for each in expected)


def test_an_instant_is_read_as_it_was_written() -> None:
    for at in (0, 1_772_000_000_123, BEGIN):
        assert parse_instant_ms(format_instant(at)) == at
