"""The page of alerts and the form of a rule: what is open, how certain it is, and rules tried before they are saved."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import HistoryCoverage, StoredAlert
from serving_layer.pages import alerts
from serving_layer.pages.alerts import AlertRow
from tests.support import World
from tests.support.alert_tables import WorldAlertTables
from tests.support.hostile_alerts import body
from tests.support.process_metrics import WorldWatch
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing, words
from views.alerts.alert import Window

NEW = "/alerts/rules/new?kind=level"
LEVEL = {"kind": "level", "id": "queue", "of": "queue", "above": "4", "minutes": "3", "on": "yes"}
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@pytest.fixture
def operator(browsing: Browsing) -> Browsing:
    browsing.sign_in(OPERATOR_KEY)
    return browsing


@pytest.fixture
def with_alerts(asking: Asking) -> Asking:
    """One is open and rests on what no publication has; one before the cut is over; one was wrong; one of another."""
    asking.alert_tables.known = HistoryCoverage(AT, None)
    asking.alert_tables.raised("2026-11-21T09:20:00Z", store="12", sentence="The queue Q1 is too long.")
    hour = Window("2026-11-21T07:00:00Z", "2026-11-21T08:00:00Z")
    over = asking.alert_tables.raised(
        "2026-11-21T08:02:00Z", store="12", sentence="Too little was sold.", rule="limit", window=hour
    )
    asking.alert_tables.followed(over, "resolved", "2026-11-21T08:50:00Z")
    wrong = asking.alert_tables.raised("2026-11-21T08:01:00Z", store="40", sentence="Nothing was sold.", rule="tills")
    asking.alert_tables.followed(wrong, "retracted", "2026-11-21T09:01:00Z", reason="waited")
    asking.alert_tables.raised("2026-11-21T09:21:00Z", store="acme-1", tenant="acme", sentence="Canary of another.")
    return asking


def test_what_is_open_comes_first_with_what_where_since_when_and_how_sure(
    with_alerts: Asking, browsing: Browsing
) -> None:
    page = browsing.words("/alerts")

    first, second, third = (page.index(each) for each in ("Open now", "Past alerts", "Rules"))
    is_open, ended = page[first:second], page[second:third]
    assert "The queue Q1 is too long. Kosice · since Sat 21 Nov, 10:20 6, limit 4 provisional" in is_open
    assert "Checked up to 09:30:00 UTC" in is_open
    assert "Too little was sold. 6, limit 4 Kosice Ended, Sat 21 Nov, 09:50 final" in ended
    assert "Nothing was sold. 6, limit 4 Ginza Retracted: late events, Sat 21 Nov, 18:01 final" in ended
    assert "Canary" not in page
    assert with_alerts.alert_tables.known.as_of == AT


def test_a_row_that_cannot_be_read_is_left_out(with_alerts: Asking, browsing: Browsing) -> None:
    with_alerts.alert_tables.rows["0"] = StoredAlert(AT, "0", body(window={"from": "banana"}).decode())
    with_alerts.alert_tables.tenants["0"] = "default"

    page = browsing.words("/alerts")

    assert "The queue Q1 is too long." in page
    assert "banana" not in page


def test_a_list_that_is_not_whole_says_so(with_alerts: Asking, browsing: Browsing) -> None:
    with_alerts.alert_tables.known = HistoryCoverage(None, None)
    unkept = browsing.words("/alerts")
    with_alerts.alert_tables.known = HistoryCoverage(AT, AT - timedelta(hours=1))
    gap = browsing.words("/alerts")

    assert "This list is incomplete. Rules have not been checked yet. Next: galatea status" in unkept
    assert "Alerts before 21 Nov 2026, 08:30 UTC were deleted before they could be listed." in gap


def test_a_store_leads_to_its_alerts_and_the_page_to_the_stores(with_alerts: Asking, browsing: Browsing) -> None:
    assert '<a href="/alerts?store=12">1 open alert</a>' in browsing.get("/stores/12")
    assert '<a href="/alerts?store=40">alerts</a>' in browsing.get("/stores/40")
    assert "No open alerts here." in browsing.words("/alerts?store=40")
    assert "The queue Q1" in browsing.words("/alerts?store=12")
    assert "The queue Q1" not in browsing.words("/alerts?rule=limit")
    browsing.get("/alerts?store=acme-1", status=404)
    assert with_alerts.alert_tables.rows


def test_older_ones_are_a_page_further(
    with_alerts: Asking, browsing: Browsing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts, "PAGE_SIZE", 1)

    first = browsing.get("/alerts")
    older = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")

    assert "Nothing was sold" not in first
    assert "Nothing was sold" in browsing.get(older)
    assert len(with_alerts.alert_tables.rows) == 4


def test_the_operator_sees_everybodys_and_may_choose_a_tenant(with_alerts: Asking, operator: Browsing) -> None:
    assert "Canary" in operator.words("/alerts")
    only = operator.words("/alerts?tenant=acme")

    assert "Canary" in only
    assert "The queue Q1" not in only
    assert with_alerts.alert_tables.rows


def test_a_rule_is_tried_before_it_is_saved(operator: Browsing) -> None:
    empty = operator.get(NEW)
    tried = operator.send("/alerts/rules", form_of=NEW, **LEVEL, do="try")

    assert 'value="save"' not in empty
    assert 'value="save"' in tried.text
    assert "Alerts when a queue is longer than 4 for 3 minutes, in every store. Watches 2 stores: Kosice, Ginza" in (
        words(tried.text)
    )
    assert operator.asking.versions.rows == []


def test_a_rule_that_is_saved_stands_among_the_rules_and_can_be_changed_and_removed(operator: Browsing) -> None:
    saved = operator.send("/alerts/rules", form_of=NEW, **LEVEL, name="Too long", do="save")
    listed = operator.words("/alerts?done=saved")
    changed = operator.send("/alerts/rules", form_of=NEW, **(LEVEL | {"above": "7", "version": "1"}), do="save")
    form = operator.get("/alerts/rules/queue")
    removed = operator.send("/alerts/rules", form_of=NEW, **LEVEL, version="2", do="remove")

    assert (saved.status_code, saved.headers["location"]) == (303, "/alerts?done=saved#rules")
    assert "Saved." in listed
    assert (
        "Too long Alerts when a queue is longer than 4 for 3 minutes, in every store. enabled from 09:32:00" in listed
    )
    assert changed.status_code == 303
    assert 'value="7"' in form
    assert 'name="version" value="2"' in form
    assert removed.headers["location"] == "/alerts?done=removed#rules"
    assert "No rules yet" in operator.words("/alerts")
    assert operator.asking.acts[-1] == ("operator", "POST /alerts/rules", 303)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"above": "1000"}, "above is 1000: what is counted is never longer. Write 0 to 999."),
        ({"above": "many"}, "above cannot be read"),
        ({"id": "No spaces"}, "Use at most 64 lower-case letters"),
        ({"stores": "77"}, "stores names 77"),
        ({"minutes": "1440"}, "Write 0 to 1439."),
        ({"name": "x" * 300}, "Write a shorter one."),
    ],
)
@pytest.mark.parametrize("do", ["try", "save"])
def test_what_is_wrong_is_said_above_the_form_as_it_was_filled_in(
    operator: Browsing, fields: dict[str, str], said: str, do: str
) -> None:
    response = operator.send("/alerts/rules", form_of=NEW, **({"minutes": "17"} | LEVEL | fields), do=do)

    assert response.status_code == 422
    assert said in words(response.text)
    assert 'aria-invalid="true"' in response.text
    assert all(f'value="{value}"' in response.text for value in fields.values())
    assert operator.asking.versions.rows == []


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        (
            {
                "kind": "threshold",
                "metric": "net_sales",
                "window": "hour",
                "side": "below",
                "bound": "50",
                "versus": "previous_week",
                "hours": "",
            },
            {"metric": "net_sales", "window": "hour", "below": 50, "versus": "previous_week", "above": None},
        ),
        (
            {"kind": "threshold", "metric": "returns_value", "window": "day", "side": "above", "bound": "1,250.50"},
            {"above": 1250.5, "window": "day", "versus": None},
        ),
        (
            {
                "kind": "silence",
                "source": "pos_transactions",
                "minutes": "20",
                "per": "store",
                "hours": "open",
                "stores": "12",
            },
            {"source": "pos_transactions", "minutes": 20, "hours": "open", "stores": ["12"]},
        ),
        ({"kind": "level", "of": "occupancy", "above": "50", "minutes": "0"}, {"of": "occupancy", "above": 50}),
    ],
)
def test_every_kind_of_rule_goes_through_its_form_and_back(
    operator: Browsing, fields: dict[str, str], rule: dict[str, object]
) -> None:
    said = {"id": "r", "on": "yes", **fields}
    operator.send("/alerts/rules", form_of=NEW, **said, do="save")

    found = operator.asking.body("/v1/alert-rules/r")["rule"]
    form = operator.get("/alerts/rules/r")
    same = operator.send("/alerts/rules", form_of=NEW, **said, version="1", do="save")

    assert {name: found[name] for name in rule} == rule
    assert found["on"] is True
    assert "<h1>Rule r</h1>" in form
    assert same.status_code == 303
    assert len(operator.asking.versions.rows) == 1


def test_a_rule_that_somebody_else_changed_meanwhile_is_not_overwritten(operator: Browsing) -> None:
    operator.send("/alerts/rules", form_of=NEW, **LEVEL, do="save")
    operator.send("/alerts/rules", form_of=NEW, **(LEVEL | {"above": "5"}), version="1", do="save")

    late = operator.send("/alerts/rules", form_of=NEW, **(LEVEL | {"above": "6"}), version="1", do="save")
    odd = operator.send("/alerts/rules", form_of=NEW, **LEVEL, version="newest", do="save")

    assert (late.status_code, "was changed since you read it" in words(late.text)) == (412, True)
    assert odd.status_code == 422
    assert operator.asking.body("/v1/alert-rules/queue")["rule"]["above"] == 5


def test_forms_are_for_keys_that_may_configure_and_for_their_own_tenant(asking: Asking, browsing: Browsing) -> None:
    browsing.get(NEW, status=401)
    browsing.sign_in(asking.keys.make("acme", "read"))
    browsing.get(NEW, status=403)
    assert "Add a rule:" not in browsing.words("/alerts")

    browsing.sign_in(asking.keys.make("acme", "read", "configure"))
    browsing.send("/alerts/rules", form_of=NEW, **LEVEL, do="save")

    assert "Add a rule:" in browsing.words("/alerts")
    assert [row.id for row in asking.versions.rows] == ["acme/queue"]
    assert browsing.send("/alerts/rules", form_of=NEW, **LEVEL, tenant="default", do="save").status_code == 404
    browsing.get("/alerts/rules/new?kind=level&tenant=default", status=404)


def test_a_form_of_another_page_changes_nothing(operator: Browsing) -> None:
    refused = operator.send("/alerts/rules", form_of="/nowhere", **LEVEL, do="save")
    foreign = operator.send("/alerts/rules", form_of=NEW, origin="http://evil", **LEVEL, do="save")

    assert (refused.status_code, foreign.status_code) == (403, 403)
    assert operator.asking.versions.rows == []


def test_a_kind_that_there_is_not_has_no_form(operator: Browsing) -> None:
    operator.get("/alerts/rules/new?kind=magic", status=404)
    operator.get("/alerts/rules/nobodys", status=404)


HOUR = Window("2026-11-21T07:00:00Z", "2026-11-21T08:00:00Z")


@pytest.mark.parametrize(
    ("cut", "end", "certainty"),
    [
        ("2026-11-21T09:01:59Z", "2026-11-21T09:00:00Z", "provisional"),
        ("2026-11-21T09:02:00Z", "2026-11-21T09:00:00Z", "final"),
        ("2026-11-21T08:30:00Z", "2026-11-21T08:00:00Z", "provisional"),
        ("2026-11-22T09:00:00Z", None, "provisional"),
    ],
)
def test_an_alert_is_final_once_a_publication_has_looked_at_its_window(
    cut: str, end: str | None, certainty: str
) -> None:
    with_alerts = WorldAlertTables()
    id_ = with_alerts.raised("2026-11-21T08:40:00Z", window=Window("2026-11-21T07:00:00Z", end))

    line = AlertRow.of(with_alerts.rows[id_], {}, datetime.fromisoformat(cut))

    assert (line.certainty, line.store_name, line.zone) == (certainty, "1", "UTC")


@pytest.mark.parametrize(("looked_at", "certainty", "provisional"), [(0, "provisional", True), (1, "final", False)])
def test_the_page_and_rest_say_the_same_also_while_the_look_at_a_publication_is_put_off(
    world: World, looked_at: int, certainty: str, *, provisional: bool
) -> None:
    watch = WorldWatch(world)
    watch.looked_at = looked_at
    asking = Asking(world, watched=watch)
    asking.alert_tables.raised("2026-11-21T08:02:00Z", store="12", sentence="Too little was sold.", window=HOUR)

    page = Browsing(asking).words("/alerts")
    [over_rest] = asking.body("/v1/alerts")["alerts"]

    assert f"6, limit 4 {certainty} rule queue" in page
    assert over_rest["provisional"] is provisional


def test_a_rule_that_this_release_cannot_read_is_listed_and_can_be_replaced_or_removed(
    asking: Asking, operator: Browsing
) -> None:
    asking.versions.follow("default/newer", '{"kind": "forecast", "id": "newer"}', 0)

    listed = operator.words("/alerts")
    form = operator.get("/alerts/rules/newer?kind=silence")
    operator.send("/alerts/rules", form_of=NEW, **(LEVEL | {"id": "newer"}), version="1", do="save")

    assert "newer Watches nothing: this release cannot read it" in listed
    assert "unreadable Change" in listed
    assert "No data from" in words(form)
    assert "What you save here replaces it." in words(form)
    assert "newer Watches nothing" not in operator.words("/alerts")


def test_stores_that_lack_the_sensor_of_a_rule_say_so(operator: Browsing) -> None:
    level = operator.words("/alerts/rules/new?kind=level&of=occupancy")
    visitors = {"kind": "threshold", "metric": "traffic_in", "window": "hour", "side": "above", "bound": "50"}

    assert "Kosice (no door counter)" in level
    assert "Kosice (no queue sensor)" in operator.words(NEW)
    assert "Kosice (no door counter)" in words(operator.send("/alerts/rules", form_of=NEW, **visitors, do="try").text)
    assert "(no" not in operator.words("/alerts/rules/new?kind=silence")


def test_the_id_of_a_new_rule_is_made_from_its_name(operator: Browsing) -> None:
    fields = {name: value for name, value in LEVEL.items() if name != "id"}
    for name in ("Schlange zu lang: Köln", "Schlange zu lang: Köln", ""):
        operator.send("/alerts/rules", form_of=NEW, **fields, name=name, do="save")

    ids = [row.id for row in operator.asking.versions.rows]
    assert ids == ["default/schlange-zu-lang-koln", "default/schlange-zu-lang-koln-2", "default/queue-level"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"side": "above", "bound": "12"}, "In the last 28 days it would not have fired."),
        ({"side": "above", "bound": "9"}, "In the last 28 days it would have fired about once."),
        ({"side": "above", "bound": "9", "versus": "previous_week"}, ""),
    ],
)
def test_a_limit_that_is_tried_says_how_often_it_would_have_fired(
    operator: Browsing, fields: dict[str, str], said: str
) -> None:
    rule = {"kind": "threshold", "metric": "net_sales", "window": "hour", "stores": "12", "on": "yes"}

    tried = words(operator.send("/alerts/rules", form_of=NEW, **rule, **fields, do="try").text)

    assert said in tried
    assert ("In the last 28 days" in tried) == bool(said)


def test_an_alert_names_its_store_and_the_units_of_its_numbers(asking: Asking, browsing: Browsing) -> None:
    asking.alert_tables.known = HistoryCoverage(AT, None)
    asking.alert_tables.raised(
        "2026-11-21T09:20:00Z",
        store="40",
        value=Decimal(182_300),
        baseline=Decimal(410_900),
        threshold=Decimal(50),
        sentence="Net sales of store 40: 182300, more than 50 % below the 410900 of the same time a week before.",
    )
    asking.alert_tables.raised(
        "2026-11-21T09:21:00Z",
        store="12",
        value=Decimal(20),
        threshold=Decimal(20),
        sentence="The source pos_transactions of store 12 has been silent for 20 minutes.",
    )

    page = browsing.words("/alerts")

    assert "Net sales of store Ginza: ¥182,300, more than 50 % below the ¥410,900 of the same time" in page
    assert "¥182,300, a week before ¥410,900; limit 50 %" in page
    assert "The source Tills (receipts) of store Kosice has been silent for 20 minutes." in page
    assert "20 min, limit 20 min" in page


def test_a_form_does_not_remove_a_rule_of_a_tenant_whose_name_begins_with_its_own() -> None:
    stores = (Store(id="1", timezone="UTC", tenant="acme"), Store(id="2", timezone="UTC", tenant="acme/east"))
    asking = Asking(World(*stores))
    owner, other = Browsing(asking), Browsing(asking)
    for browsing, tenant in ((owner, "acme/east"), (other, "acme")):
        browsing.sign_in(asking.keys.make(tenant, "read", "configure"))
    assert owner.send("/alerts/rules", form_of=NEW, **LEVEL, do="save").status_code == 303

    of_another = LEVEL | {"id": "east/queue", "version": "1"}
    refused = other.send("/alerts/rules", form_of=NEW, **of_another, do="remove")

    assert refused.status_code == 404
    assert [(each.id, bool(each.body)) for each in asking.versions.rows] == [("acme/east/queue", True)]


@pytest.mark.parametrize("version", ["1", "save", "\u0663"])
def test_a_form_that_names_a_version_and_no_rule_comes_back_with_what_is_wrong(
    operator: Browsing, version: str
) -> None:
    response = operator.send("/alerts/rules", form_of=NEW, kind="level", version=version, do="save")

    assert response.status_code in {404, 422}
