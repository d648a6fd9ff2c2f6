"""What is stored and can no longer be followed, after a release or before one is put back, stops no other rule."""

from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from master_dataset.registry.stores import Store
from tests.support.alerting import WorldLog, at_ms
from views.alerts import rule_history as rules_in_force
from views.alerts.rule import Rule, Silence, Threshold
from views.alerts.rule_history import RuleHistory, StoredVersion, rule_version, store_version
from views.alerts.rule_validation import parse_rule
from views.alerts.sentences import describe_rule

TEN = at_ms("2026-03-07 10:00")
STORE = store_version(Store(id="1", timezone="UTC"), 1, 0)
MUCH = parse_rule({"kind": "threshold", "id": "much", "metric": "net_sales", "window": "hour", "above": 9})
DROPPED = Threshold(id="dropped", metric="sales_of_a_former_release", window="hour", above=Decimal(9))
UNHEARD = Silence(id="unheard", source="a_former_source", minutes=9, hours="always")
NEWER = StoredVersion(0, "rule", "default/newer", 1, '{"kind": "forecast", "id": "newer", "above": 9}')


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    """As in a new process."""
    rules_in_force.warn_unusable_rule.cache_clear()


@pytest.mark.parametrize("odd", [rule_version(DROPPED, 1, 0), rule_version(UNHEARD, 1, 0), NEWER])
def test_a_rule_that_nobody_can_follow_is_left_out_and_said_once(odd: StoredVersion) -> None:
    versions = [STORE, rule_version(MUCH, 1, 0), odd]

    with capture_logs() as said:
        found = [RuleHistory(versions, 9).at(0).by_topic for _ in range(2)]

    assert [{topic: [each.rule for each in own] for topic, own in each.items()} for each in found] == [
        {"pos_transactions": [MUCH]}
    ] * 2
    assert [(line["event"], line["rule"], line["left_out"]) for line in said] == [
        ("alerts.rule_left_out", f"{odd.id}#1", 1)
    ]
    assert rules_in_force.unusable_rules() == 1


@pytest.mark.parametrize("odd", [DROPPED, UNHEARD])
def test_what_was_open_by_a_rule_that_is_left_out_by_now_is_over_and_others_go_on(odd: Rule) -> None:
    before = parse_rule({"kind": "threshold", "id": odd.id, "metric": "net_sales", "window": "hour", "above": 5})
    versions = [rule_version(before, 1, 0), rule_version(odd, 2, TEN + 60_000), rule_version(MUCH, 1, 0)]
    log = WorldLog("pos_transactions", RuleHistory([STORE, *versions], 2**60))

    raised = log.sold(TEN, 8)
    over = log.pass_until(TEN + 120_000)
    others = log.sold(TEN + 180_000, 8)

    assert [(each.kind, each.rule) for each in (*raised, *over)] == [("raised", odd.id), ("resolved", odd.id)]
    assert over[0].reason == "rule_changed"
    assert [(each.kind, each.rule) for each in others] == [("raised", "much")]


def test_a_version_that_is_of_a_newer_release_ends_the_one_before_and_the_next_one_holds() -> None:
    newer = StoredVersion(20, "rule", "default/much", 2, NEWER.body)
    history = RuleHistory([rule_version(MUCH, 1, 10), newer, rule_version(MUCH, 3, 30)], 99)

    held = [[each.version for own in history.at(at).by_topic.values() for each in own] for at in (10, 20, 30)]

    assert held == [[1], [], [3]]


def test_a_rule_of_a_dropped_metric_that_is_off_or_gone_is_not_spoken_of() -> None:
    gone = StoredVersion(1, "rule", "default/dropped", 2, "")

    with capture_logs() as said:
        topics = RuleHistory([rule_version(DROPPED, 1, 0), gone], 9).at(5).by_topic

    assert (topics, said) == ({}, [])


def test_a_rule_of_a_dropped_metric_is_listed_under_the_name_it_was_written_with() -> None:
    assert describe_rule(DROPPED) == "Alerts when sales_of_a_former_release of an hour is above 9, in every store."
