"""A mail says the same in HTML and in plain text, loads nothing, and takes no name for markup."""

import re
from decimal import Decimal

import pytest
from markupsafe import escape

from deploy.reports.mail import Mail
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.pages.language import UNKNOWN, Language, use_language
from serving_layer.reports.document import Document
from serving_layer.reports.mail import mail_of
from tests.fast.unit.reports.conftest import KOSICE, NOW, OTHER, corrected, correction, report_of
from tests.support import World
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, words

HOSTILE = '<img src=x onerror="alert(1)">'


def test_both_parts_have_every_figure_with_its_currency_and_what_it_was(asking: Asking) -> None:
    mail = mail_of(report_of(asking))

    assert mail.subject == "default, daily report for Fri, 20 Nov 2026: net sales €15.50 (+55.0 %), £5.00"
    html, text = words(mail.html), " ".join(mail.text.split())
    for said in (html, text):
        assert "€15.50" in said
        assert "was €10.00" in said
        assert "+55.0 %" in said
        assert "£5.00" in said
        assert "of 1 stores; 1 without a sensor" not in said
        assert "1 store; 1 without a sensor" in said
        assert "Final up to Sat 21 Nov, 06:00 UTC. Every figure of this report is final" in said
        assert "2 stores, compared with Fri, 13 Nov 2026." in said


def test_a_subject_says_how_many_currencies_it_leaves_out_and_cuts_the_tenant_alone(asking: Asking) -> None:
    report = report_of(asking, day="2026-11-21")
    report.tenant = "acme " * 50
    [pounds] = [each for each in report.figures if each.currency == "GBP" and each.metric == "net_sales"]
    report.figures = [pounds] * 4

    one = Document.of(report).subject
    report.figures = [pounds] * 5
    other = Document.of(report).subject

    assert one.endswith(
        "daily report for Sat, 21 Nov 2026: net sales £20.00, £20.00, £20.00 and 1 more currency, provisional"
    )
    assert other.endswith("£20.00 and 2 more currencies, provisional")
    assert one.startswith("acme acme")
    assert "\N{HORIZONTAL ELLIPSIS}, daily" in one
    assert len(one) == 200
    assert "£20.00 and 2 more currencies, provisional" in str(
        Mail("1", "a@b.example", other, "", "").message("c@d.example")["Subject"]
    )


def test_stores_whose_sensors_had_gaps_are_counted_in_words(asking: Asking) -> None:
    report = report_of(asking)
    [visitors] = [each for each in report.figures if each.metric == "traffic_in"]
    assert visitors.stores
    for number, said in ((1, "sensors had gaps in 1 store"), (3, "sensors had gaps in 3 stores")):
        visitors.stores.poor = number
        assert said in [note for row in Document.of(report).figures for note in row.notes]


def test_what_is_provisional_is_said_in_the_subject_and_beside_each_figure(asking: Asking) -> None:
    mail = mail_of(report_of(asking, day="2026-11-21"))

    assert mail.subject.endswith(", provisional")
    assert "Can still change with the next publication: 100 % of net sales in GBP." in words(mail.html)
    assert re.search(r"Net sales +£20.00 .*provisional", mail.text)


def test_what_is_not_known_is_a_dash_with_the_reason() -> None:
    world = World(KOSICE)
    world.pass_time(NOW)

    mail = mail_of(report_of(Asking(world)))

    assert f"net sales {UNKNOWN}" in mail.subject
    assert re.search(rf"Net sales +{UNKNOWN} .*history is still loading", mail.text)
    assert "0.00" not in mail.text
    assert "No alert has been evaluated here yet." in mail.text
    assert "History is still loading: nothing is published yet" in words(mail.html)


def test_corrections_are_sentences(world: World) -> None:
    world.rebuild("2026-11-21T12:00:00Z")
    rows = [correction("2026-11-18T10:00:00+00:00", -1290), correction("2026-11-18T10:00:00+00:00", -1, "receipts")]
    corrected(world, rows)

    text = mail_of(report_of(Asking(world), day="2026-11-21")).text

    assert "Published from Sat 21 Nov, 00:00 UTC to Sat 21 Nov, 23:31 UTC:" in text

    assert (
        "Wed 18 Nov, Kosice: net sales €12.90 lower, 1 fewer receipt: events arrived too late to be counted live."
    ) in text


def test_an_alert_that_can_still_change_is_provisional(world: World) -> None:
    asking = Asking(world)
    asking.alert_tables.known = HistoryCoverage(world.now(), None)
    asking.alert_tables.raised("2026-11-20T14:00:00.000Z", store="12")
    ended = asking.alert_tables.raised("2026-11-20T15:00:00.000Z", store="40")
    asking.alert_tables.followed(ended, "resolved", "2026-11-20T15:30:00.000Z")
    report = report_of(asking)
    assert {each.provisional for each in (*report.alerts.open, *report.alerts.raised)} == {True}

    text = mail_of(report).text

    open_now, ended = re.findall(r"- Fri 20 Nov, \d\d:\d\d, (?:Kosice|London): (.*)", text)
    assert open_now.endswith(", provisional.")
    assert ended.endswith(", resolved, provisional.")


@pytest.mark.parametrize(
    ("spoken", "title", "said"),
    [
        ("de", "Tagesbericht: default", "Nettoumsatz 15,50 € +55,0 % davor 10,00 €"),
        ("sk", "Denná správa: default", "Čisté tržby 15,50 € +55,0 % predtým 10,00 €"),
        ("es", "Informe diario: default", "Ventas netas 15,50 € +55,0 % antes 10,00 €"),
    ],
)
def test_a_mail_is_in_the_language_that_was_chosen(asking: Asking, spoken: Language, title: str, said: str) -> None:
    report = report_of(asking)

    with use_language(spoken):
        mail = mail_of(report)

    page = words(mail.html)
    assert f'<html lang="{spoken}">' in mail.html
    assert title in page
    assert said in " ".join(mail.text.split())
    assert (
        Mail("1", "a@b.example", mail.subject, mail.text, mail.html, language=mail.language).message("c@d.example")[
            "Content-Language"
        ]
        == spoken
    )
    for english in ("All stores", "Net sales", "compared with", "Corrections", "no store has", " publication "):
        assert english not in page


def test_alerts_and_reasons_of_a_report_are_translated(world: World) -> None:
    asking = Asking(world)
    asking.alert_tables.known = HistoryCoverage(world.now(), None)
    asking.alert_tables.raised("2026-11-20T14:00:00.000Z", store="12", sentence="ATV of store 12: 1234.5, below 2000.")
    report = report_of(asking)

    with use_language("de"):
        text = mail_of(report).text

    said = "15:00: Durchschnittlicher Bon der Filiale Kosice: 1.234,50 €, unter 2.000,00 €, vorläufig."
    assert said.replace(" €", "\N{NO-BREAK SPACE}€") in text.replace(" €", "\N{NO-BREAK SPACE}€")


def test_names_are_no_markup_and_nothing_is_loaded_from_elsewhere() -> None:
    world = World(KOSICE.__class__(id="1", timezone="UTC", name=HOSTILE))
    world.rebuild("2026-11-21T06:00:00Z")
    asking = Asking(world)
    asking.alert_tables.known = HistoryCoverage(world.now(), None)
    asking.alert_tables.raised("2026-11-20T14:00:00.000Z", sentence=HOSTILE)

    html = mail_of(report_of(asking)).html

    assert "<img" not in html
    assert html.count(str(escape(HOSTILE))) >= 2
    html = html.replace(str(escape(HOSTILE)), "")
    assert re.findall(r"(?i)(?:src|href|background)\s*=|url\(|@import|<script|<link|https?:", html) == []


@pytest.mark.parametrize(("percent", "said"), [(0.2, "less than 1 %"), (28.6, "29 %")])
def test_a_share_is_rounded_but_never_to_nothing(asking: Asking, percent: float, said: str) -> None:
    report = report_of(asking, day="2026-11-21")
    report.provisional[1].percent = percent

    assert any(f"{said} of net sales in GBP" in each for each in Document.of(report).certainty)


def test_amounts_keep_every_digit(asking: Asking) -> None:
    report = report_of(asking)
    report.figures[0].value = Decimal("123456789012345678.91")

    assert Document.of(report).figures[0].value == "€123,456,789,012,345,678.91"


def test_the_page_says_the_same_and_leads_to_the_periods_beside(asking: Asking) -> None:
    browsing = Browsing(asking)
    said = browsing.words("/reports/daily")

    assert "Daily report: default" in said
    assert "Net sales €15.50" in said
    assert OTHER.name not in said
    assert 'href="/reports/daily?day=2026-11-19"' in browsing.get("/reports/daily")
    assert 'href="/reports/daily?day=2026-11-21"' not in browsing.get("/reports/daily")
    assert "There is no" in browsing.words("/reports/yearly", 422)
    assert "reports are about days from" in browsing.words("/reports/weekly?day=2030-01-01", 422)
    browsing.words("/reports/daily?tenant=acme", 404)


def test_an_operator_chooses_the_tenant(asking: Asking) -> None:
    browsing = Browsing(asking)
    browsing.sign_in()

    assert "Daily report: acme" in browsing.words("/reports/daily?tenant=acme")
    assert 'href="/reports/daily?day=2026-11-19&amp;tenant=acme"' in browsing.get("/reports/daily?tenant=acme")


def test_an_operator_without_a_choice_sees_the_only_tenant() -> None:
    world = World(OTHER)
    world.rebuild("2026-11-21T06:00:00Z")
    browsing = Browsing(Asking(world))
    browsing.sign_in()

    assert "Daily report: acme" in browsing.words("/reports/daily")
    assert 'href="/reports/daily?day=2026-11-19&amp;tenant=acme"' in browsing.get("/reports/daily")
    assert "<option" not in browsing.get("/reports/daily")


def test_an_operator_of_several_tenants_sees_the_first_one_and_can_choose() -> None:
    browsing = Browsing(Asking(World(OTHER, OTHER.__class__(id="2", timezone="UTC", tenant="beta"))))
    browsing.sign_in()

    page = browsing.get("/reports/daily")

    assert "Daily report: acme" in page
    assert "<option selected>acme</option><option>beta</option>" in page
    assert "Daily report: beta" in browsing.words("/reports/daily?tenant=beta")
