"""A publication looks at alerts: what was wrong is retracted, what is missing is raised late, all else is let be."""

from decimal import Decimal
from typing import Any

from tests.support.alerting import WorldLog, at_ms, rule_history_of
from tests.support.auditing import Publications
from views.alerts.alert import Alert, alert_statuses, follow_up_id
from views.alerts.rule_history import RuleHistory, rule_version, store_version
from views.alerts.rule_validation import parse_rule

MINUTE, HOUR = 60_000, 3_600_000
GRACE = 2 * MINUTE
MUCH = {"kind": "threshold", "id": "much", "metric": "net_sales", "window": "hour", "above": 9}
TEN = at_ms("2026-03-07 10:00")


def world_of(*rules: dict[str, Any], topic: str = "pos_transactions") -> tuple[WorldLog, Publications]:
    rule_history = rule_history_of(*rules)
    log = WorldLog(topic, rule_history)
    by_key = {("default", str(rule["id"]), 1): parse_rule(rule) for rule in rules}
    return log, Publications(topic, rule_history, by_key, log.emitted)


def publish(log: WorldLog, world: Publications, cut: int, oldest: int = 0) -> list[Alert]:
    return world.publish(log.entries, cut, oldest)


def test_an_alert_that_the_corrected_numbers_do_not_hold_is_retracted_once_and_says_why() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=5 * HOUR)  # too late to be judged by the alert processor

    [retracted] = publish(log, world, TEN + 6 * HOUR)
    again = publish(log, world, TEN + 7 * HOUR)

    assert retracted.alert_id == follow_up_id(raised_alert.alert_id, "retracted")
    assert (retracted.kind, retracted.about, retracted.publication) == ("retracted", raised_alert.alert_id, 1)
    assert (retracted.shown, retracted.corrected, retracted.cause) == (Decimal(10), Decimal(6), "late")
    assert (retracted.window, retracted.provisional) == (raised_alert.window, False)
    assert retracted.sentence == "Net sales of store 1 is now 6, and not beyond the bound."
    assert again == []


def test_events_that_were_too_old_for_speed_are_named_as_what_waited() -> None:
    log, world = world_of({**MUCH, "window": "day"})
    log.sold(at_ms("2026-03-07 23:30"), 10)
    log.sold(at_ms("2026-03-07 00:30"), 4, amount=-1, late_ms=24 * HOUR)

    [retracted] = publish(log, world, at_ms("2026-03-08 01:00"))

    assert (retracted.kind, retracted.cause) == ("retracted", "waited")


def test_an_alert_that_nobody_could_raise_in_time_is_raised_late_under_its_own_id_and_is_over() -> None:
    log, world = world_of(MUCH)
    other, _ = world_of(MUCH)
    [in_time] = other.sold(TEN + 20 * MINUTE, 10)
    assert log.sold(TEN + 20 * MINUTE, 10, late_ms=5 * HOUR) == []

    raised, over = publish(log, world, TEN + 6 * HOUR)
    again = publish(log, world, TEN + 7 * HOUR)

    assert (raised.kind, raised.alert_id) == ("raised", in_time.alert_id)
    assert (raised.late, raised.provisional, raised.cause, raised.publication) == (True, False, "late", 1)
    assert raised.sentence == in_time.sentence
    assert (over.kind, over.about, over.reason) == ("resolved", raised.alert_id, "over")
    assert again == []


def test_what_is_true_after_all_is_another_alert_and_may_be_wrong_again() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    found = []
    for hour, euros in ((5, -4), (6, 3), (8, 5)):  # 6, 9, 14
        log.sold(TEN + 30 * MINUTE, abs(euros), amount=1 if euros > 0 else -1, late_ms=hour * HOUR)
        found.append(publish(log, world, TEN + hour * HOUR + 45 * MINUTE))

    assert [[each.kind for each in some] for some in found] == [["retracted"], [], ["raised", "resolved"]]
    [another, over] = found[2]
    assert another.alert_id == follow_up_id(raised_alert.alert_id, "raised")
    assert (another.shown, another.corrected) == (Decimal(10), Decimal(14))
    assert over.about == another.alert_id
    log.sold(TEN + 30 * MINUTE, 8, amount=-1, late_ms=9 * HOUR)
    [wrong] = publish(log, world, TEN + 10 * HOUR)
    assert (wrong.kind, wrong.about) == ("retracted", another.alert_id)


def test_a_window_is_audited_once_it_is_over_at_the_cut_and_the_processor_has_evaluated_it() -> None:
    log, world = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10)
    log.entries.clear()  # as if nothing of it had been archived

    before = publish(log, world, TEN + HOUR + GRACE - 1)
    now = publish(log, world, TEN + HOUR + GRACE)

    assert before == []
    assert [each.kind for each in now] == ["retracted"]
    assert now[0].cause == "unexplained"


def test_an_alert_that_rests_on_what_was_received_later_is_left_to_the_next_publication() -> None:
    log, world = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10, late_ms=2 * HOUR)
    received = TEN + 20 * MINUTE + 2 * HOUR

    assert [each.kind for each in log.emitted] == ["raised"]
    assert publish(log, world, received) == []
    assert publish(log, world, received + 1) == []


def test_windows_whose_alerts_the_topic_may_have_deleted_are_left_alone() -> None:
    for oldest, expected in ((TEN + HOUR, 2), (TEN + HOUR + 1, 0)):
        log, world = world_of(MUCH)
        log.sold(TEN + 20 * MINUTE, 10, late_ms=5 * HOUR)

        assert len(publish(log, world, TEN + 6 * HOUR, oldest)) == expected


def test_an_open_alert_is_not_raised_again_under_another_version_of_its_rule() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    changed = parse_rule({**MUCH, "above": 5})
    versions = [rule_version(parse_rule(MUCH), 1, 0), rule_version(changed, 2, TEN + 40 * MINUTE)]
    world.rule_history = RuleHistory([store_version(world.rule_history.at(0).shops["1"].store, 1, 0), *versions], 2**60)
    world.rules = {("default", "much", 1): parse_rule(MUCH), ("default", "much", 2): changed}
    log.sold(TEN + 30 * MINUTE, 1, late_ms=5 * HOUR)

    assert raised_alert.version == 1
    assert publish(log, world, TEN + 6 * HOUR) == []


def test_a_shop_that_was_silent_because_the_line_was_is_taken_off_the_list() -> None:
    rule = {"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20}
    log, world = world_of(rule)
    log.sold(TEN, 10)  # heard a second later, from when on the log speaks
    [raised_alert] = log.pass_until(TEN + 25 * MINUTE)
    log.sold(TEN + 12 * MINUTE + 1000, 10, late_ms=18 * MINUTE)

    [retracted] = publish(log, world, TEN + HOUR)

    assert (retracted.kind, retracted.about, retracted.cause) == ("retracted", raised_alert.alert_id, "late")
    assert (retracted.shown, retracted.corrected) == (Decimal(20), Decimal(12))
    assert publish(log, world, TEN + 2 * HOUR) == []


def test_a_silence_that_nothing_contradicts_stays_open() -> None:
    rule = {"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20}
    log, world = world_of(rule)
    log.sold(TEN, 10)
    log.pass_until(TEN + 25 * MINUTE)
    log.sold(TEN + 20 * MINUTE + 1000, 10, late_ms=10 * MINUTE)  # just when the minutes were over

    assert [each.kind for each in log.emitted] == ["raised", "resolved"]
    assert publish(log, world, TEN + HOUR) == []


def test_requested_but_not_yet_emitted_counts_as_emitted() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=5 * HOUR)
    [retracted] = publish(log, world, TEN + 6 * HOUR)

    retracted_twice = alert_statuses([raised_alert], [retracted, retracted])
    retracted_before = alert_statuses([raised_alert, retracted], [retracted])

    assert retracted_twice == retracted_before
    assert retracted_twice[raised_alert.alert_id].is_withdrawn


def test_requests_of_a_rebuild_that_was_overtaken_are_judged_by_the_next_publication() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=29 * HOUR)
    overtaken = world.looked(log.entries, TEN + 30 * HOUR)  # 6: denied
    log.sold(TEN + 40 * MINUTE, 5, late_ms=38 * HOUR)
    meanwhile = publish(log, world, TEN + 40 * HOUR)  # 11: true, and nobody has said anything else yet

    world.requests += overtaken
    raised, over = publish(log, world, TEN + 60 * HOUR)
    again = publish(log, world, TEN + 90 * HOUR)

    assert ([each.kind for each in overtaken], meanwhile, again) == (["retracted"], [], [])
    assert raised.alert_id == follow_up_id(raised_alert.alert_id, "raised")
    assert (raised.late, raised.corrected, over.about) == (True, Decimal(11), raised.alert_id)


def test_what_an_overtaken_rebuild_has_raised_late_is_retracted_if_later_numbers_deny_it() -> None:
    log, world = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10, late_ms=29 * HOUR)
    overtaken = world.looked(log.entries, TEN + 30 * HOUR)
    log.sold(TEN + 40 * MINUTE, 5, amount=-1, late_ms=38 * HOUR)
    meanwhile = publish(log, world, TEN + 40 * HOUR)

    world.requests += overtaken
    [retracted] = publish(log, world, TEN + 60 * HOUR)

    assert ([each.kind for each in overtaken], meanwhile) == (["raised", "resolved"], [])
    assert (retracted.kind, retracted.about) == ("retracted", overtaken[0].alert_id)


def test_what_follows_an_alert_is_not_lost_where_it_is_read_first() -> None:
    log, world = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10)
    log.pass_until(TEN + 3 * HOUR)
    [raised, over] = log.emitted
    log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=5 * HOUR)
    [retracted] = publish(log, world, TEN + 6 * HOUR)

    expected = alert_statuses([raised, over, retracted])

    assert alert_statuses([over, raised, retracted]) == alert_statuses([retracted, over, raised]) == expected
    assert alert_statuses([over], [retracted, raised]) == expected
    assert alert_statuses([over, retracted]) == {}
