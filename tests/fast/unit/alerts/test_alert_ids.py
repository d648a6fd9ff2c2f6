"""The ids of alerts as receivers know them, written out: if they changed, every alert would be emitted again."""

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from tests.support.alerting import FOR_EVER, WorldLog, at_ms
from tests.support.auditing import Publications
from views.alerts.alert import Alert
from views.alerts.rule_history import RuleHistory, rule_version, store_version
from views.alerts.rule_validation import parse_rule

MINUTE, HOUR = 60_000, 3_600_000
TEN = at_ms("2026-03-07 10:00")
VERSION = 3
STORE = Store(id="7", timezone="Europe/Bratislava", tenant="acme")
MANY = {"kind": "threshold", "id": "many", "tenant": "acme", "metric": "net_sales", "window": "hour", "above": 9}
QUEUE = {"kind": "level", "id": "queue", "tenant": "acme", "of": "queue", "above": 4, "minutes": 0}

RAISED = "9936c694ece70f38e186a57a1d4ed7f1"
RESOLVED = "057a87cb1f8268e10c0e5ff7a71702a2"
RETRACTED = "74a2d4642407b7991355e31b35fc033e"
AGAIN = "9b48f309449cfddff7f09a9ba34f2502"
AGAIN_RESOLVED = "f3b8c05118a8dd7504416ba1a06fd068"
QUEUE_RAISED = "699fe96618cbfacd837121cc6159d225"
QUEUE_RESOLVED = "4b14a3340f464639e6516ce18e35b372"


def world_of(rule: dict[str, Any], topic: str = "pos_transactions") -> tuple[WorldLog, Publications]:
    rule = {**rule, "hours": "always"}
    if rule["kind"] == "level":
        del rule["hours"]
    rule_history = RuleHistory([store_version(STORE, 1, 0), rule_version(parse_rule(rule), VERSION, 0)], FOR_EVER)
    log = WorldLog(topic, rule_history)
    by_key = {("acme", str(rule["id"]), VERSION): parse_rule(rule)}
    return log, Publications(topic, rule_history, by_key, log.emitted)


def sold(log: WorldLog, minute: int, euros: float, **more: Any) -> Sequence[Alert]:
    return log.sold(TEN + minute * MINUTE, euros, operation_id=STORE.id, **more)


def ids(some: Sequence[Alert]) -> list[tuple[str, str]]:
    return [(each.kind, each.alert_id) for each in some]


def test_the_processor_raises_and_resolves_under_these_ids() -> None:
    log, _ = world_of(MANY)

    sold(log, 20, 10)
    log.pass_until(TEN + 3 * HOUR)

    assert ids(log.emitted) == [("raised", RAISED), ("resolved", RESOLVED)]


def test_a_publication_retracts_and_raises_again_under_these_ids() -> None:
    log, world = world_of(MANY)
    sold(log, 20, 10)
    sold(log, 30, 4, amount=-1, late_ms=5 * HOUR)
    taken_back = world.publish(log.entries, TEN + 6 * HOUR)
    sold(log, 40, 9, late_ms=8 * HOUR)

    again = world.publish(log.entries, TEN + 10 * HOUR)

    assert ids(taken_back) == [("retracted", RETRACTED)]
    assert ids(again) == [("raised", AGAIN), ("resolved", AGAIN_RESOLVED)]


def test_a_publication_raises_late_alerts_under_the_ids_of_the_processor() -> None:
    log, world = world_of(MANY)
    sold(log, 20, 1)
    sold(log, 40, 9, late_ms=8 * HOUR)

    late = world.publish(log.entries, TEN + 10 * HOUR)

    assert ids(late) == [("raised", RAISED), ("resolved", RESOLVED)]


def test_an_alert_without_an_end_and_with_a_dimension_has_these_ids() -> None:
    log, _ = world_of(QUEUE, "queue_events")
    here: dict[str, Any] = {"operation_id": STORE.id, "queue": "Q1", "kind": "join"}

    log.send(TEN, **here, length_after=5)
    log.send(TEN + MINUTE, **here, length_after=2)

    assert ids(log.emitted) == [("raised", QUEUE_RAISED), ("resolved", QUEUE_RESOLVED)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["many",3,"acme","7",["2026-03-07T09:00:00Z","2026-03-07T10:00:00Z"],{}]', RAISED),
        (f'["{RAISED}","resolved"]', RESOLVED),
        (f'["{RAISED}","retracted"]', RETRACTED),
        (f'["{RAISED}","raised"]', AGAIN),
        (f'["{AGAIN}","resolved"]', AGAIN_RESOLVED),
        ('["queue",3,"acme","7",["2026-03-07T09:00:00Z",null],{"queue":"Q1"}]', QUEUE_RAISED),
    ],
)
def test_an_id_is_the_first_half_of_the_digest_of_this_text(text: str, expected: str) -> None:
    assert hashlib.sha256(text.encode()).hexdigest()[:32] == expected
