"""Six alerts that stores ask for, with expected values computed by hand."""

from decimal import Decimal

from tests.support.alerting import FOR_EVER, SHOP, WorldLog, at_ms, rule_history_of
from views.alerts.rule_history import RuleHistory, StoredVersion, rule_version, store_version
from views.alerts.rule_validation import parse_rule

MINUTE = 60_000
QUARTER = {"interval_ms": 15 * MINUTE, "late_ms": 15 * MINUTE + 1000}


def kinds(alerts: object) -> list[tuple[str, str | None]]:
    return [(each.kind, each.reason) for each in alerts]  # type: ignore[attr-defined]


def test_a_queue_of_more_than_four_for_three_minutes_raises_one_alert_that_is_resolved_when_it_shrinks() -> None:
    log = WorldLog(
        "queue_events", rule_history_of({"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3})
    )
    ten = at_ms("2026-03-07 10:00")
    for waiting in range(1, 7):
        log.send(ten + waiting * 1000, kind="join", track=f"p{waiting}", length_after=waiting)

    soon = log.pass_until(ten + 3 * MINUTE)
    late = log.pass_until(ten + 10 * MINUTE)
    over = log.send(
        ten + 11 * MINUTE, kind="abandon", track="p1", length_after=4, joined_at="2026-03-07T10:00:01+01:00"
    )

    assert soon == []
    [raised_alert] = late
    assert raised_alert.sentence == "The queue Q1 of store 1 has been above 4 for 3 minutes."
    assert (raised_alert.window.start, raised_alert.window.end, raised_alert.dimensions) == (
        "2026-03-07T09:00:05Z",
        None,
        {"queue": "Q1"},
    )
    assert (raised_alert.value, raised_alert.threshold, raised_alert.provisional) == (Decimal(6), Decimal(4), True)
    assert kinds(over) == [("resolved", "over")]
    assert over[0].about == raised_alert.alert_id


def test_twenty_minutes_without_receipts_raise_an_alert_while_the_store_is_open_and_not_at_night() -> None:
    log = WorldLog(
        "pos_transactions",
        rule_history_of({"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20}),
    )
    log.sold(at_ms("2026-03-07 19:50"), 10)

    night = log.pass_until(at_ms("2026-03-08 08:19"))
    morning = log.pass_until(at_ms("2026-03-08 08:30"))
    heard = log.sold(at_ms("2026-03-08 08:31"), 10)

    assert night == []
    [raised_alert] = morning
    assert raised_alert.sentence == "The source pos_transactions of store 1 has been silent for 20 minutes."
    assert raised_alert.window.start == "2026-03-08T07:00:00Z"
    assert kinds(heard) == [("resolved", "heard")]


def test_a_sensor_that_is_silent_is_named_and_the_others_are_not() -> None:
    rule = {"kind": "silence", "id": "sensors", "source": "sensor_heartbeats", "minutes": 10, "per": "sensor"}
    log = WorldLog("sensor_heartbeats", rule_history_of(rule))
    ten = at_ms("2026-03-07 10:00")
    log.send(ten, late_ms=61_000, sensor_id="ap-1", interval_ms=60_000)
    log.send(ten, late_ms=61_000, sensor_id="ap-2", interval_ms=60_000)
    for minute in range(1, 20):
        log.send(ten + minute * MINUTE, late_ms=61_000, sensor_id="ap-1", interval_ms=60_000)

    assert [(each.dimensions, each.window.start) for each in log.emitted] == [
        ({"sensor_id": "ap-2"}, "2026-03-07T09:01:01Z")
    ]
    assert kinds(log.pass_until(at_ms("2026-03-07 20:01"))) == [
        ("raised", None),
        ("resolved", "closed"),
        ("resolved", "closed"),
    ]


def test_returns_worth_more_than_a_hundred_in_an_hour_raise_an_alert_at_the_return_that_crosses_it() -> None:
    rule = {"kind": "threshold", "id": "returns", "metric": "returns_value", "window": "hour", "above": 100}
    log = WorldLog("pos_transactions", rule_history_of(rule))

    first = log.sold(at_ms("2026-03-07 10:05"), 60, amount=-1)
    second = log.sold(at_ms("2026-03-07 10:25"), 40.01, amount=-1)
    third = log.sold(at_ms("2026-03-07 10:30"), 99, amount=-1)
    after = log.pass_until(at_ms("2026-03-07 12:03"))

    assert (first, third) == ([], [])
    [raised_alert] = second
    assert raised_alert.value == Decimal("100.01")
    assert (raised_alert.window.start, raised_alert.window.end) == ("2026-03-07T09:00:00Z", "2026-03-07T10:00:00Z")
    assert kinds(after) == [("resolved", "over")]


def test_more_than_two_empty_receipts_in_a_quarter_of_an_hour_raise_an_alert() -> None:
    rule = {"kind": "threshold", "id": "voids", "metric": "sales.zero_tx", "window": "15m", "above": 2}
    log = WorldLog("pos_transactions", rule_history_of(rule))

    raised_alert = [log.send(at_ms(f"2026-03-07 10:0{minute}"), transactions=[]) for minute in range(5)]

    assert [len(each) for each in raised_alert] == [0, 0, 1, 0, 0]


def test_more_people_inside_than_allowed_raise_an_alert_at_once_that_is_resolved_when_enough_have_left() -> None:
    rule = {"kind": "level", "id": "limit", "of": "occupancy", "above": 50, "minutes": 0}
    log = WorldLog("people_counts", rule_history_of(rule))

    calm = log.send(at_ms("2026-03-07 10:00"), **QUARTER, people_in=40, people_out=0)
    full = log.send(at_ms("2026-03-07 10:15"), **QUARTER, people_in=20, people_out=5)
    less = log.send(at_ms("2026-03-07 10:30"), **QUARTER, people_in=0, people_out=5)

    assert calm == []
    assert [each.sentence for each in full] == ["The number of people inside of store 1 has been above 50."]
    assert full[0].value == Decimal(55)
    assert kinds(less) == [("resolved", "over")]


def test_an_hour_that_sells_far_less_than_a_week_before_raises_an_alert_when_it_is_over() -> None:
    rule = {
        "kind": "threshold",
        "id": "weak",
        "metric": "net_sales",
        "window": "hour",
        "below": 50,
        "versus": "previous_week",
    }
    log = WorldLog("pos_transactions", rule_history_of(rule))
    log.sold(at_ms("2026-03-07 09:30"), 10)
    log.sold(at_ms("2026-03-07 10:30"), 200)
    log.sold(at_ms("2026-03-14 10:30"), 99.99)

    raised_alert = log.pass_until(at_ms("2026-03-14 11:03"))
    enough = log.sold(at_ms("2026-03-14 10:59"), 0.01, late_ms=6 * MINUTE)

    [alert] = raised_alert
    assert (alert.value, alert.baseline, alert.threshold) == (Decimal("99.99"), Decimal(200), Decimal(50))
    assert alert.window.start == "2026-03-14T09:00:00Z"
    assert kinds(enough) == [("resolved", "corrected")]


def test_a_log_that_said_nothing_itself_accuses_no_shop_of_silence() -> None:
    log = WorldLog(
        "pos_transactions",
        rule_history_of({"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20}),
    )
    log.sold(at_ms("2026-03-07 10:00"), 10)

    log.receive(at_ms("2026-03-07 12:00"), b"", (("galatea-marker", b"1"),))

    assert log.emitted == []
    assert log.pass_until(at_ms("2026-03-07 12:19")) == []
    assert len(log.pass_until(at_ms("2026-03-07 12:21"))) == 1


def test_a_repeated_receipt_and_one_that_is_too_old_count_for_nothing() -> None:
    rule = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 1}
    log = WorldLog("pos_transactions", rule_history_of(rule))
    ten = at_ms("2026-03-07 10:00")

    log.sold(ten, 10, transaction_id=1)
    log.sold(ten, 10, transaction_id=1, late_ms=5 * MINUTE)
    log.sold(ten, 10, transaction_id=2, late_ms=24 * 60 * MINUTE)

    assert log.emitted == []


def test_a_rule_that_is_taken_away_takes_its_open_alerts_with_it() -> None:
    ten = at_ms("2026-03-07 10:00")
    rule = parse_rule(
        {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "day", "above": 0}
    )
    rule_history = RuleHistory(
        [
            store_version(SHOP, 1, 0),
            rule_version(rule, 1, 0),
            StoredVersion(ten + MINUTE, "rule", "default/any", 2, ""),
        ],
        FOR_EVER,
    )
    log = WorldLog("pos_transactions", rule_history)

    raised = log.sold(ten, 10)
    changed = log.pass_until(ten + 2 * MINUTE)

    assert kinds(raised) == [("raised", None)]
    assert kinds(changed) == [("resolved", "rule_changed")]


def test_who_waited_at_the_end_of_a_business_day_does_not_wait_on_the_next_one_when_a_clock_is_fast() -> None:
    """The first event of the new day may arrive before the log has reached that day."""
    rule = {"kind": "level", "id": "queue", "of": "queue", "above": 2, "minutes": 0}
    log = WorldLog("queue_events", rule_history_of(rule))
    midnight = at_ms("2026-03-08 00:00")
    for waiting in range(2):  # who leaves is not seen
        log.send(midnight - 10 * MINUTE + waiting * 1000, kind="join", track=f"p{waiting}")

    raised = [*log.send(midnight + 2000, late_ms=-5000, kind="join", track="early"), *log.pass_until(midnight + MINUTE)]

    assert [alert.rule for alert in raised] == []
    assert [level.value for level in log.fold.state.levels["1"].values()] == [1]
