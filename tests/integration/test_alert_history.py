"""Alerts in Cassandra: folded record by record, again and again the same, and read back a page at a time."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
from cassandra.cluster import Session

from master_dataset.rule_versions import RuleVersions
from serving_layer.alerting.alerts import Alerts, AlertsAsk, Page
from serving_layer.alerting.history import Kept as Shown
from serving_layer.alerting.rules import AlertRules, Author
from serving_layer.tables import AlertTables, Bridge, RuleTables
from speed_layer.alert_history.history_table import HistoryTable, Kept
from views.alerts.alert import Alert, Window, following_id, raised_id

AT = datetime(2026, 11, 21, 23, 59, 59, 500_000, tzinfo=UTC)
QUEUE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}


def raised(number: int, tenant: str) -> Alert:
    """One each half second."""
    at = (AT + timedelta(milliseconds=500 * number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    window = Window(at)
    return Alert(
        alert_id=raised_id("queue", 1, (tenant, "1"), window, {}), kind="raised", rule="queue", version=1,
        tenant=tenant, store="1", window=window, dimensions={"queue": "Q1"}, value=Decimal("6.50"),
        threshold=Decimal(4), sentence="The queue is long.", raised_at=at,
    )  # fmt: skip


def resolved(alert: Alert) -> Alert:
    return msgspec.structs.replace(
        alert, alert_id=following_id(alert.alert_id, "resolved"), kind="resolved", about=alert.alert_id, reason="over"
    )


def page(session: Session, ask: AlertsAsk) -> Page:
    return asyncio.run(Alerts(AlertTables(Bridge(session))).page(ask))


def test_records_are_folded_and_folding_them_again_changes_nothing(shared_cassandra: Session) -> None:
    table = HistoryTable(shared_cassandra)
    alerts = [raised(number, "acme") for number in range(4)]
    records = [*(each.to_json() for each in alerts), resolved(alerts[1]).to_json()]

    for record in records:
        table.keep(record)
    first = page(shared_cassandra, AlertsAsk("acme"))
    for record in records:  # as after a crash
        table.keep(record)
    second = page(shared_cassandra, AlertsAsk("acme"))
    still_open = page(shared_cassandra, AlertsAsk("acme", state="open"))

    assert [each.alert.alert_id for each in first.told] == [each.alert_id for each in reversed(alerts)]
    assert [each.state for each in first.told] == ["open", "open", "resolved", "open"]
    assert first.told[0].alert == alerts[3]
    assert second == first
    assert [each.alert_id for each in still_open.told] == [alerts[number].alert_id for number in (3, 2, 0)]


def test_an_alert_that_was_raised_again_behind_its_end_does_not_open_again(shared_cassandra: Session) -> None:
    table, alert = HistoryTable(shared_cassandra), raised(0, "reopened")

    for record in (alert, resolved(alert), alert):
        table.keep(record.to_json())

    assert page(shared_cassandra, AlertsAsk("reopened", state="open")).told == []
    assert [each.state for each in page(shared_cassandra, AlertsAsk("reopened")).told] == ["resolved"]


def test_pages_lead_from_day_to_day_and_each_tenant_is_shown_its_own(shared_cassandra: Session) -> None:
    table = HistoryTable(shared_cassandra)
    alerts = [raised(number, "pages") for number in range(5)]
    for each in (*alerts, raised(9, "others")):
        table.keep(each.to_json())

    found, after = list[str](), None
    for _ in range(3):
        told = page(shared_cassandra, AlertsAsk("pages", limit=2, after=after))
        found += [each.alert_id for each in told.told]
        after = told.following
    bounded = page(
        shared_cassandra, AlertsAsk("pages", since=AT + timedelta(seconds=1), until=AT + timedelta(seconds=2))
    )
    every = page(shared_cassandra, AlertsAsk("*", limit=1000))

    assert (found, after) == ([each.alert_id for each in reversed(alerts)], None)
    assert [each.alert_id for each in bounded.told] == [alerts[3].alert_id, alerts[2].alert_id]
    assert {"pages", "others"} <= {each.alert.tenant for each in every.told}


def test_one_alert_is_found_with_its_records(shared_cassandra: Session) -> None:
    table, alert = HistoryTable(shared_cassandra), raised(0, "one")
    table.keep(resolved(alert).to_json())  # told before anybody kept alerts: it is not listed
    unlisted = page(shared_cassandra, AlertsAsk("one")).told
    for each in (alert, resolved(alert)):
        table.keep(each.to_json())

    told, records = asyncio.run(Alerts(AlertTables(Bridge(shared_cassandra))).one("one", alert.alert_id))

    assert unlisted == []
    assert (told.state, len(records)) == ("resolved", 2)


def test_how_far_it_goes_is_that_of_the_slowest_partition(shared_cassandra: Session) -> None:
    table = HistoryTable(shared_cassandra)

    table.reach(0, Kept(7, AT, None), AT)
    table.reach(1, Kept(9, AT + timedelta(seconds=1), AT), AT)

    assert table.reached() == {0: Kept(7, AT, None), 1: Kept(9, AT + timedelta(seconds=1), AT)}
    assert page(shared_cassandra, AlertsAsk("nobody")).kept == Shown(AT, AT)


def test_rules_are_versions_of_their_tenant_and_the_second_of_two_writers_is_told(shared_cassandra: Session) -> None:
    versions = RuleVersions(shared_cassandra, timedelta(seconds=2))
    rules, author = AlertRules(RuleTables(versions), most=2), Author("a", {})
    made = rules.create(author, QUEUE)
    rules.create(Author("a/b", {}), QUEUE)  # whose rules lie between those of `a`
    rules.create(author, QUEUE | {"id": "other"})

    changed = rules.replace(author, "queue", QUEUE | {"above": 5}, made.version)
    too_late = versions.follow("a/queue", "{}", made.version)
    rules.remove("a", "other")

    assert [(each.tenant, each.id, each.version) for each in rules.listed("a")] == [("a", "queue", 2)]
    assert [each.version for each in rules.history("a", "queue")] == [2, 1]
    assert rules.history("a", "other")[0].rule is None
    assert changed.effective_at >= made.effective_at
    assert too_late is None
