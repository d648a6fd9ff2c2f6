"""Alerts in Cassandra: folded record by record, again and again the same, and read back a page at a time."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from cassandra.cluster import Session

from master_dataset.registry.rule_versions import RuleVersions
from serving_layer.alerts.history import AlertListing, AlertListPage, AlertsRequest
from serving_layer.alerts.history import HistoryCoverage as Shown
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from serving_layer.tables import AlertTables, AsyncSession, RuleTables
from speed_layer.alerts.history_table import HistoryPosition, HistoryTable
from views.alerts.alert import Alert, Window, follow_up_id, raised_id

AT = datetime(2026, 11, 21, 23, 59, 59, 500_000, tzinfo=UTC)
QUEUE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}


def raised(number: int, tenant: str) -> Alert:
    """One each half second."""
    at = (AT + timedelta(milliseconds=500 * number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    window = Window(at)
    return Alert(
        alert_id=raised_id("queue", 1, (tenant, "1"), window, {}),
        kind="raised",
        rule="queue",
        version=1,
        tenant=tenant,
        store="1",
        window=window,
        dimensions={"queue": "Q1"},
        value=Decimal("6.50"),
        threshold=Decimal(4),
        sentence="The queue is long.",
        raised_at=at,
    )


def resolved(alert: Alert) -> Alert:
    return msgspec.structs.replace(
        alert, alert_id=follow_up_id(alert.alert_id, "resolved"), kind="resolved", about=alert.alert_id, reason="over"
    )


def table_of(session: Session) -> HistoryTable:
    """Like a starting history writer: open alerts are where they are listed today."""
    table = HistoryTable(session)
    table.migrate_open_alerts(lambda: None, AT)
    return table


def still_open(session: Session, tenant: str, **more: Any) -> list[str]:
    return [each.alert_id for each in page(session, AlertsRequest(tenant, state="open", **more)).alerts]


def page(session: Session, ask: AlertsRequest) -> AlertListPage:
    return asyncio.run(AlertListing(AlertTables(AsyncSession(session))).page(ask))


def test_records_are_folded_and_folding_them_again_changes_nothing(shared_cassandra: Session) -> None:
    table = table_of(shared_cassandra)
    alerts = [raised(number, "acme") for number in range(4)]
    records = [*(each.to_json() for each in alerts), resolved(alerts[1]).to_json()]

    for record in records:
        table.write(record)
    first = page(shared_cassandra, AlertsRequest("acme"))
    for record in records:  # as after a crash
        table.write(record)
    second = page(shared_cassandra, AlertsRequest("acme"))
    still_open = page(shared_cassandra, AlertsRequest("acme", state="open"))

    assert [each.alert.alert_id for each in first.alerts] == [each.alert_id for each in reversed(alerts)]
    assert [each.state for each in first.alerts] == ["open", "open", "resolved", "open"]
    assert first.alerts[0].alert == alerts[3]
    assert second == first
    assert [each.alert_id for each in still_open.alerts] == [alerts[number].alert_id for number in (3, 2, 0)]


def test_resolution_wins_over_a_repeated_raise(shared_cassandra: Session) -> None:
    table, alert = table_of(shared_cassandra), raised(0, "reopened")

    for record in (alert, resolved(alert), alert):
        table.write(record.to_json())

    assert page(shared_cassandra, AlertsRequest("reopened", state="open")).alerts == []
    assert [each.state for each in page(shared_cassandra, AlertsRequest("reopened")).alerts] == ["resolved"]


def test_an_alert_is_resolved_even_if_its_resolution_is_folded_first(shared_cassandra: Session) -> None:
    table, alert = table_of(shared_cassandra), raised(0, "backwards")

    for record in (resolved(alert), alert):
        table.write(record.to_json())

    assert still_open(shared_cassandra, "backwards") == []
    assert [each.state for each in page(shared_cassandra, AlertsRequest("backwards")).alerts] == ["resolved"]


def at_hour(number: int, hours: int, tenant: str) -> Alert:
    """Raised so many hours before."""
    at = (AT - timedelta(hours=hours)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    alert = raised(number, tenant)
    return msgspec.structs.replace(alert, alert_id=f"{tenant}-{number}", raised_at=at)


def hours_of(session: Session, tenant: str) -> list[datetime]:
    return [row.hour for row in session.execute("SELECT hour FROM alert_open_hours WHERE sight = %s", (tenant,))]


def test_what_is_open_is_found_in_the_hours_that_have_some_the_newest_first(shared_cassandra: Session) -> None:
    table = table_of(shared_cassandra)
    alerts = [at_hour(number, hours, "hourly") for number, hours in enumerate((0, 0, 1, 30, 800))]
    for each in alerts:
        table.write(each.to_json())

    found, after = list[str](), None
    for _ in range(4):
        listed_page = page(shared_cassandra, AlertsRequest("hourly", state="open", limit=2, after=after))
        found += [each.alert_id for each in listed_page.alerts]
        after = listed_page.following
        if after is None:
            break

    assert found == ["hourly-1", "hourly-0", "hourly-2", "hourly-3", "hourly-4"]
    assert still_open(shared_cassandra, "hourly", until=AT - timedelta(hours=2)) == ["hourly-3", "hourly-4"]


def test_an_hour_in_which_nothing_is_open_is_looked_into_no_more_until_something_is(shared_cassandra: Session) -> None:
    table, beats = table_of(shared_cassandra), list[int]()
    over, lasting, young = (at_hour(number, hours, "tidy") for number, hours in enumerate((9, 5, 0)))
    for each in (over, lasting, young, resolved(over), resolved(young)):
        table.write(each.to_json())

    table.prune(lambda: beats.append(1), AT)
    after = hours_of(shared_cassandra, "tidy")
    late = at_hour(3, 9, "tidy")  # the alert processor is that far behind
    for each in (over, late):
        table.write(each.to_json())

    assert len(after) == 2
    assert sorted(still_open(shared_cassandra, "tidy")) == ["tidy-1", "tidy-3"]
    assert len(hours_of(shared_cassandra, "tidy")) == 3
    assert beats


def test_what_was_open_before_there_were_hours_is_listed_before_and_after_it_is_moved(cassandra: Session) -> None:
    former, alerts = HistoryTable(cassandra), [at_hour(number, 40 * number, "moved") for number in range(4)]
    for each in (*alerts, resolved(alerts[2])):
        former.write(each.to_json())
    for name in ("alerts_open_by_hour", "alert_open_hours"):
        cassandra.execute(f"TRUNCATE {name}")
    columns = "sight, raised_at, alert_id, body"
    for each in (alerts[0], alerts[1], alerts[3]):  # as the former release has kept it
        said = ("moved", datetime.fromisoformat(each.raised_at), each.alert_id, each.to_json().decode())
        cassandra.execute(f"INSERT INTO alerts_open ({columns}) VALUES (%s, %s, %s, %s) USING TIMESTAMP 1", said)  # noqa: S608

    before = still_open(cassandra, "moved")
    table = table_of(cassandra)
    after = still_open(cassandra, "moved")
    table.write(resolved(alerts[0]).to_json())
    table_of(cassandra)

    assert before == after == ["moved-0", "moved-1", "moved-3"]
    assert still_open(cassandra, "moved") == still_open(cassandra, "*") == ["moved-1", "moved-3"]


def test_pages_lead_from_day_to_day_and_each_tenant_is_shown_its_own(shared_cassandra: Session) -> None:
    table = table_of(shared_cassandra)
    alerts = [raised(number, "pages") for number in range(5)]
    for each in (*alerts, raised(9, "others")):
        table.write(each.to_json())

    found, after = list[str](), None
    for _ in range(3):
        listed_page = page(shared_cassandra, AlertsRequest("pages", limit=2, after=after))
        found += [each.alert_id for each in listed_page.alerts]
        after = listed_page.following
    bounded = page(
        shared_cassandra, AlertsRequest("pages", since=AT + timedelta(seconds=1), until=AT + timedelta(seconds=2))
    )
    every = page(shared_cassandra, AlertsRequest("*", limit=1000))

    assert (found, after) == ([each.alert_id for each in reversed(alerts)], None)
    assert [each.alert_id for each in bounded.alerts] == [alerts[3].alert_id, alerts[2].alert_id]
    assert {"pages", "others"} <= {each.alert.tenant for each in every.alerts}


def test_one_alert_is_found_with_its_records(shared_cassandra: Session) -> None:
    table, alert = table_of(shared_cassandra), raised(0, "one")
    table.write(resolved(alert).to_json())  # from before alerts were kept: it is not listed
    unlisted = page(shared_cassandra, AlertsRequest("one")).alerts
    for each in (alert, resolved(alert)):
        table.write(each.to_json())

    listed_page, records = asyncio.run(
        AlertListing(AlertTables(AsyncSession(shared_cassandra))).one("one", alert.alert_id)
    )

    assert unlisted == []
    assert (listed_page.state, len(records)) == ("resolved", 2)


def test_progress_is_that_of_the_slowest_partition(shared_cassandra: Session) -> None:
    table = table_of(shared_cassandra)

    table.save_position(0, HistoryPosition(7, AT, None), AT)
    table.save_position(1, HistoryPosition(9, AT + timedelta(seconds=1), AT), AT)

    assert table.positions() == {0: HistoryPosition(7, AT, None), 1: HistoryPosition(9, AT + timedelta(seconds=1), AT)}
    assert page(shared_cassandra, AlertsRequest("nobody")).kept == Shown(AT, AT)


def test_rules_are_versions_of_their_tenant_and_the_second_of_two_writers_gets_a_conflict(
    shared_cassandra: Session,
) -> None:
    versions = RuleVersions(shared_cassandra, timedelta(seconds=2))
    rules, author = AlertRules(RuleTables(versions), most=2), RuleAuthor("a", {})
    made = rules.create(author, QUEUE)
    rules.create(RuleAuthor("a/b", {}), QUEUE)  # whose rules lie between those of `a`
    rules.create(author, QUEUE | {"id": "other"})

    changed = rules.replace(author, "queue", QUEUE | {"above": 5}, made.version)
    too_late = versions.follow("a/queue", "{}", made.version)
    rules.remove("a", "other")

    assert [(each.tenant, each.id, each.version) for each in rules.listed("a")] == [("a", "queue", 2)]
    assert [each.version for each in rules.history("a", "queue")] == [2, 1]
    assert rules.history("a", "other")[0].rule is None
    assert changed.effective_at >= made.effective_at
    assert too_late is None
