"""A report says what all stores of a tenant did, what of it is final, and why a value is not known."""

import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from master_dataset.registry.stores import Store, currency
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.reports import corrections
from serving_layer.responses.reports import Report, ReportFigure
from tests.fast.unit.reports.conftest import KOSICE, LONDON, NOW, OTHER, corrected, correction, report_of
from tests.support import World, receipt
from tests.support.world_api import Asking


def figure(report: Report, metric: str, code: str | None = None) -> ReportFigure:
    [found] = [each for each in report.figures if (each.metric, each.currency) == (metric, code)]
    return found


def test_the_newest_day_that_is_over_everywhere_is_compared_with_a_week_before(asking: Asking) -> None:
    report = report_of(asking)

    assert (report.days.first, report.days.last, report.latest_day) == (date(2026, 11, 20),) * 2 + (date(2026, 11, 20),)
    assert report.compared.first == date(2026, 11, 13)
    assert report.over
    sales = figure(report, "net_sales", "EUR")
    assert (sales.value, sales.before, sales.change) == (Decimal("15.5"), Decimal("10.0"), 55.0)
    assert figure(report, "total_transactions_count").value == 3
    assert figure(report, "avg_transaction_value", "EUR").value == Decimal("7.75")


def test_a_day_that_is_over_in_one_zone_only_is_not_reported_yet(asking: Asking) -> None:
    assert NOW == "2026-11-21T23:31:00Z"  # Sunday in Kosice, Saturday in London
    assert report_of(asking).days.first == date(2026, 11, 20)

    asking.world.pass_time("2026-11-22T00:01:00Z")
    assert report_of(asking).days.first == date(2026, 11, 21)


def test_each_currency_has_figures_a_trend_and_a_list_of_stores_of_its_own(asking: Asking) -> None:
    report = report_of(asking)

    assert figure(report, "net_sales", "GBP").value == 5
    assert [each.currency for each in report.trends] == ["EUR", "GBP"]
    assert [(each.name, each.currency, each.value) for each in report.best] == [
        ("Kosice", "EUR", Decimal("15.5")),
        ("London", "GBP", Decimal("5.0")),
    ]
    assert [each.value for each in report.trends[0].points][-8:] == [10, 0, 0, 0, 0, 0, 0, Decimal("15.5")]
    assert report.timezone is None


def test_a_store_that_was_closed_all_day_is_not_among_the_weakest() -> None:
    weekdays = dict.fromkeys(("mon", "tue", "wed", "thu", "fri"), ("08:00-20:00",))
    shops = [Store(id=f"open-{number}", timezone="UTC", opening_hours=weekdays) for number in range(7)]
    closed = [replace(each, id=f"closed-{each.id}", closed_on=(date(2026, 11, 20),)) for each in shops]
    world = World(*shops, *closed)
    for number, shop in enumerate(shops[:6]):
        at = "2026-11-20T10:00:00Z"
        world.receive(receipt(at, minor=100 * (number + 1), number=number, store=shop.id), at)
    world.rebuild("2026-11-21T06:00:00Z")
    world.pass_time(NOW)

    report = report_of(Asking(world), day="2026-11-20")

    assert [each.store for each in report.best] == ["open-5", "open-4", "open-3", "open-2", "open-1"]
    assert [(each.store, each.value) for each in report.weakest] == [("open-6", 0), ("open-0", 1)]
    sunday = report_of(Asking(world), day="2026-11-15")
    assert (sunday.stores, sunday.weakest) == (14, [])


def test_visitors_say_how_many_stores_have_no_sensor(asking: Asking) -> None:
    visitors = figure(report_of(asking), "traffic_in")

    assert visitors.value == 96
    assert visitors.stores
    assert (visitors.stores.counted, visitors.stores.missing) == (1, 1)


def test_without_any_sensor_visitors_and_conversion_are_not_known_and_say_why() -> None:
    world = World(LONDON)
    world.receive(receipt("2026-11-20T08:10:00Z", minor=1240, store="40"), "2026-11-20T08:10:01Z")
    world.rebuild("2026-11-21T06:00:00Z")

    report = report_of(Asking(world))

    for metric in ("traffic_in", "conversion_rate"):
        assert (figure(report, metric).value, figure(report, metric).reason) == (None, "no store has a sensor for it")


def test_what_was_published_is_final_and_what_came_later_is_provisional_by_currency(asking: Asking) -> None:
    report = report_of(asking, day="2026-11-21")

    assert not report.final
    assert {each.currency: each.percent for each in report.provisional} == {"EUR": None, "GBP": 100.0}
    assert report.final_until == "2026-11-21T06:00:00Z"
    assert report_of(asking).final
    assert [each.percent for each in report_of(asking).provisional] == [0, 0]


def test_while_history_is_loading_nothing_is_zero() -> None:
    world = World(KOSICE)
    world.pass_time("2026-11-21T23:31:00Z")

    report = report_of(Asking(world))

    assert report.final_until is None
    assert not report.final
    assert {each.value for each in report.figures} == {None}
    assert {figure(report, "net_sales", "EUR").reason} == {"history is still loading"}
    assert {each.value for each in report.trends[0].points} == {None}
    assert report.as_of.loading is True


def test_a_week_is_compared_with_the_week_before_and_its_trend_has_eight_weeks(asking: Asking) -> None:
    report = report_of(asking, "weekly", day="2026-11-20")

    assert (report.days.first, report.days.last) == (date(2026, 11, 16), date(2026, 11, 22))
    assert not report.over
    assert report.trends[0].points[-1].value == Decimal("15.5")
    assert [each.date for each in report.trends[0].points] == [
        date.fromordinal(date(2026, 11, 16).toordinal() - 7 * back) for back in range(7, -1, -1)
    ]
    assert report_of(asking, "weekly").days.last == date(2026, 11, 15)


def test_a_week_begins_as_in_most_stores() -> None:
    stores = [*(LONDON.__class__(id=each, timezone="UTC", week_starts_on="sun") for each in ("1", "2")), KOSICE]
    world = World(*stores)
    world.pass_time(NOW)

    assert report_of(Asking(world), "weekly").days.first == date(2026, 11, 8)


def test_a_tenant_gets_its_own_stores_alone(asking: Asking) -> None:
    own, other = asking.keys.make("default"), asking.keys.make("acme")

    assert [each.name for each in report_of(asking, key=own).best] == ["Kosice", "London"]
    assert [each.name for each in report_of(asking, key=other).best] == [OTHER.name]
    assert report_of(asking, tenant="acme").tenant == "acme"
    assert asking.refusal("/v1/reports/daily", key=own, tenant="acme")["status"] == 404
    assert asking.refusal("/v1/reports/daily", tenant="nobody", key="the operator's key")["status"] == 404


@pytest.mark.parametrize("day", ["2026-11-23", "1971-02-28", "0001-01-01", "9999-12-31", "today", "1"])
def test_a_day_that_has_not_begun_or_is_none_is_refused(asking: Asking, day: str) -> None:
    assert asking.refusal("/v1/reports/daily", day=day)["status"] == 422
    assert asking.refusal("/v1/reports/weekly", day=day)["status"] == 422


@pytest.mark.parametrize("start", ["mon", "sun", "tue"])
def test_the_first_day_has_a_report_of_which_no_part_is_beyond_the_years_that_are_kept(start: str) -> None:
    world = World(replace(KOSICE, week_starts_on=start))
    world.rebuild("2026-11-21T06:00:00Z")
    asking = Asking(world)

    for period in ("daily", "weekly"):
        assert report_of(asking, period, day="1971-03-01").problems == []


def test_a_store_with_sensors_that_were_silent_is_named(asking: Asking) -> None:
    assert report_of(asking).sensor_gaps == []

    [gap] = report_of(asking, day="2026-11-19").sensor_gaps
    assert (gap.name, gap.coverage) == ("Kosice", None)
    [gap] = report_of(asking, "weekly", day="2026-11-20").sensor_gaps
    assert gap.coverage == pytest.approx(Decimal(100) / 6, abs=Decimal("0.2"))  # Monday to Saturday


def test_open_alerts_and_those_of_the_period_are_listed_with_the_clock_of_the_store(asking: Asking) -> None:
    tables = asking.alert_tables
    tables.known = HistoryCoverage(datetime(2026, 11, 21, 23, tzinfo=UTC), None)
    tables.raised("2026-11-20T14:00:00.000Z", store="12")
    ended = tables.raised("2026-11-20T15:00:00.000Z", store="40")
    tables.followed(ended, "resolved", "2026-11-20T15:30:00.000Z")
    tables.raised("2026-11-01T15:00:00.000Z", store="12", rule="old")
    tables.raised("2026-11-20T15:00:00.000Z", store="acme-1", tenant="acme")

    alerts = report_of(asking).alerts

    assert (alerts.open_count, alerts.raised_count) == (2, 2)
    assert [each.raised_at_local for each in alerts.raised] == ["2026-11-20T15:00+00:00", "2026-11-20T15:00+01:00"]
    assert {each.name for each in alerts.open} == {"Kosice"}


def test_corrections_of_earlier_days_are_added_up_by_store_day_and_cause(world: World) -> None:
    world.rebuild("2026-11-21T12:00:00Z")
    corrected(
        world,
        [
            correction("2026-11-18T10:00:00+00:00", 1290),
            correction("2026-11-18T10:15:00+00:00", 1290),
            correction("2026-11-18T10:15:00+00:00", 500, "returns_value"),
            correction("2026-11-18T10:15:00+00:00", 2, "receipts"),
            correction("2026-11-18T10:15:00+00:00", 7, "units_sold"),
            correction("2026-11-21T10:15:00+00:00", 9900),  # the reported day itself
        ],
    )
    corrected(world, [correction("2026-11-18T23:30:00+00:00", -4, "people_in", dimensions={"line": "A"})], "traffic")

    found = report_of(Asking(world), day="2026-11-21").corrections

    assert (found.count, found.complete) == (2, True)
    visitors, sales = found.corrections
    assert (sales.date, sales.net_sales, sales.receipts, sales.currency) == (
        date(2026, 11, 18),
        Decimal("20.8"),
        2,
        "EUR",
    )
    assert sales.reason == "events arrived too late to be counted live"
    assert (visitors.date, visitors.visitors, visitors.net_sales) == (date(2026, 11, 19), -4, None)


def test_corrections_of_another_tenant_and_of_older_publications_are_left_out(world: World) -> None:
    world.rebuild("2026-11-20T10:00:00Z")  # before the report of the day before
    corrected(world, [correction("2026-11-18T10:00:00+00:00", 1290)])
    world.rebuild("2026-11-21T12:00:00Z")
    corrected(world, [correction("2026-11-18T10:00:00+00:00", 7700)], store="acme-1")

    found = report_of(Asking(world), tenant="default", day="2026-11-21").corrections

    assert (found.count, found.complete, found.corrections) == (0, True, [])


def test_the_period_in_which_a_deployment_began_has_a_report(world: World) -> None:
    begun = datetime(2026, 11, 21, 9, tzinfo=UTC)
    world.history = [replace(each, published_at=begun) for each in world.history]
    world.rebuild("2026-11-21T12:00:00Z")

    found = report_of(Asking(world), day="2026-11-21").corrections

    assert (found.count, found.complete) == (0, True)


def test_each_correction_is_in_one_report_whenever_the_reports_are_made(world: World) -> None:
    asking = Asking(world)
    found = []
    for published, made, difference in (
        ("2026-11-21T07:00:00Z", "2026-11-21T08:10:00Z", 100),
        ("2026-11-22T03:00:00Z", "2026-11-22T09:30:00Z", 200),
        ("2026-11-23T00:30:00Z", "2026-11-23T06:10:00Z", 300),
        ("2026-11-23T23:30:00Z", "2026-11-24T06:10:00Z", 400),
    ):
        world.rebuild(published)
        corrected(world, [correction("2026-11-18T10:00:00+00:00", difference)])
        world.pass_time(made)
        report = report_of(asking)
        corrections = report.corrections
        found.append(
            (
                report.days.last,
                corrections.since,
                corrections.until,
                [each.net_sales for each in corrections.corrections],
            )
        )

    assert found == [
        (date(2026, 11, 20), "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z", []),
        (date(2026, 11, 21), "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", [1]),
        (date(2026, 11, 22), "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z", [2]),
        (date(2026, 11, 23), "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z", [7]),
    ]


def test_the_first_publication_corrects_nothing(world: World) -> None:
    corrected(world, [correction("2026-11-18T10:00:00+00:00", 1290)])  # of publication 1

    assert report_of(Asking(world), day="2026-11-21").corrections.count == 0


def test_a_ledger_that_is_not_written_yet_makes_the_corrections_incomplete(world: World) -> None:
    world.rebuild("2026-11-21T12:00:00Z")
    del world.ledgers["2"]

    assert not report_of(Asking(world), day="2026-11-21").corrections.complete


@pytest.mark.parametrize(("bound", "most", "read"), [("MOST_PAGES", 1, 1), ("MOST_SECONDS", 0.0, 0)])
def test_ledgers_are_read_up_to_a_bound(
    world: World, monkeypatch: pytest.MonkeyPatch, bound: str, most: float, read: int
) -> None:
    monkeypatch.setattr(corrections, bound, most)
    world.rebuild("2026-11-21T12:00:00Z")
    corrected(world, [correction("2026-11-18T10:00:00+00:00", 1290)])

    found = report_of(Asking(world), day="2026-11-21").corrections

    assert (found.count, found.complete) == (read, False)


def test_of_very_many_corrections_the_day_is_computed_once_per_window_and_off_the_event_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.rebuild("2026-11-21T12:00:00Z")
    states = ["gross_sales", "receipts", "units_sold", "discounts"]
    start = datetime(2026, 11, 1, tzinfo=UTC)
    windows = [(start + timedelta(minutes=15 * number)).isoformat() for number in range(900)]
    corrected(world, [correction(at, 100, state) for at in windows for state in states])
    day_of = corrections.business_day_of
    computed: list[str] = []

    def counted(store: Store, window: str) -> date:
        computed.append(threading.current_thread().name)
        return day_of(store, window)

    monkeypatch.setattr(corrections, "business_day_of", counted)

    found = report_of(Asking(world), day="2026-11-21").corrections

    assert (found.count, found.complete) == (10, True)
    assert sum(each.receipts for each in found.corrections) == 90_000
    assert len(computed) <= len(windows) + 3  # a window may be on two pages
    assert sum(name.startswith("merge") for name in computed) >= 750  # but for the last page, which is short


def test_the_largest_corrections_are_those_of_each_currency_and_of_visitors_in_turn() -> None:
    shops = [KOSICE, LONDON, Store(id="9", timezone="Asia/Tokyo", name="Tokyo", currency=currency("JPY"))]
    world = World(*shops)
    world.rebuild("2026-11-20T06:00:00Z")
    world.rebuild("2026-11-21T12:00:00Z")
    world.pass_time(NOW)
    days = [f"2026-11-{day:02}T10:00:00+00:00" for day in range(1, 13)]
    for shop, unit in zip(shops, (1, 2, 1_000_000), strict=True):
        money = {"currency": shop.currency.code}
        rows = [correction(at, unit * number, dimensions=money) for number, at in enumerate(days, 1)]
        corrected(world, rows, store=shop.id)
    visitors = [correction(at, number, "people_in", dimensions={"line": "A"}) for number, at in enumerate(days, 1)]
    corrected(world, visitors, "traffic")

    found = report_of(Asking(world), day="2026-11-21").corrections

    assert found.count == 48
    assert Counter(each.currency for each in found.corrections) == {"JPY": 3, "GBP": 3, "EUR": 2, None: 2}
    for code in ("JPY", "GBP", "EUR", None):
        of = [each.date.day for each in found.corrections if each.currency == code]
        assert of == list(range(12, 12 - len(of), -1))


def test_without_stores_a_report_says_so_and_nothing_else(asking: Asking) -> None:
    report = report_of(asking, key=asking.keys.make("empty"))

    assert (report.stores, report.figures, report.best, report.final) == (0, [], [], False)
