"""The language of a page: how it is chosen, and how numbers, money and dates are written in it."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from babel.numbers import format_currency
from fastapi import Request

from serving_layer.pages import language
from serving_layer.pages.figures import count, figure, plain_number, rounded
from serving_layer.pages.language import COOKIE, LANGUAGES, Language, language_of, use_language
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

SATURDAY = date(2026, 11, 21)
NB = "\N{NO-BREAK SPACE}"


def asked(accepted: str | None = None, cookie: str | None = None) -> Language:
    """The language for a request with these headers."""
    headers = [(b"accept-language", accepted.encode("latin-1", "replace"))] if accepted is not None else []
    headers += [(b"cookie", f"{COOKIE}={cookie}".encode("latin-1", "replace"))] if cookie is not None else []
    return language_of(Request({"type": "http", "headers": headers}))


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        (None, "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("sk-SK", "sk"),
        ("ES-es", "es"),
        ("fr-FR,fr;q=0.9,es;q=0.5", "es"),
        ("en-US,en;q=0.9,de;q=0.8", "en"),
        ("fr,it", "en"),
        ("*", "en"),
        ("", "en"),
        (",,;;q=,-_-", "en"),
        ("de" * 5000, "en"),
        ("x," * 5000 + "de", "en"),
        ("../../etc/passwd, \N{SNOWMAN}, de\r\n", "de"),
    ],
)
def test_the_first_known_language_that_a_browser_asks_for_is_taken(accepted: str | None, chosen: str) -> None:
    assert asked(accepted) == chosen


@pytest.mark.parametrize("hostile", ["fr", "", "../de", "de/../en", "DE", "x" * 4000])
def test_a_choice_wins_over_the_browser_and_an_unknown_one_is_none(hostile: str) -> None:
    assert asked("de", "sk") == "sk"
    assert asked("de", hostile) == "de"


@pytest.mark.parametrize("chosen", LANGUAGES)
def test_a_visitor_chooses_a_language_and_comes_back_to_the_same_page(browsing: Browsing, chosen: str) -> None:
    response = browsing.post("/language", f"language={chosen}&following=%2Fstores%3Fview%3Dtable")

    assert (response.status_code, response.headers["location"]) == (303, "/stores?view=table")
    assert "HttpOnly" in response.headers["set-cookie"]
    page = browsing.response("GET", "/")
    assert f'<html lang="{chosen}">' in page.text
    assert page.headers["content-language"] == chosen
    assert page.headers["vary"] == "Cookie, Accept-Language"


@pytest.mark.parametrize(
    ("body", "origin", "status"),
    [
        ("language=fr", "http://galatea", 404),
        ("following=/", "http://galatea", 404),
        ("language=de", "http://evil.example", 403),
        ("language=de", None, 403),
        ("language=" + "d" * 9000, "http://galatea", 413),
    ],
)
def test_a_choice_that_is_none_or_from_elsewhere_changes_nothing(
    browsing: Browsing, body: str, origin: str | None, status: int
) -> None:
    response = browsing.post("/language", body, origin=origin)

    assert response.status_code == status
    assert COOKIE not in browsing.cookies


@pytest.mark.parametrize("following", ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX: y", ""])
def test_after_a_choice_nobody_is_sent_elsewhere(browsing: Browsing, following: str) -> None:
    response = browsing.post("/language", f"language=de&following={following}")

    assert response.headers["location"] == "/"


def test_errors_are_pages_in_the_language_of_the_visitor(asking: Asking) -> None:
    browsing = Browsing(asking)
    browsing.cookies.set(COOKIE, "es")

    for path, status in (("/stores/none", 404), ("/nothing", 404), ("/stores?page=0", 422), ("/recomputes", 401)):
        response = browsing.response("GET", path, {"Accept": "text/html"})
        assert (response.status_code, '<html lang="es">' in response.text) == (status, True), path


def test_a_language_ends_with_its_block() -> None:
    with use_language("de"):
        assert language.current() == "de"
    assert language.current() == "en"


@pytest.mark.parametrize(
    ("spoken", "euros", "crowns", "percent", "thousands"),
    [
        ("en", "€4,228.55", f"CZK{NB}5.00", "33.3 %", "1,234,567"),
        ("de", "4.228,55 €", "5,00 CZK", "33,3 %", "1.234.567"),
        ("sk", f"4{NB}228,55 €", "5,00 CZK", "33,3 %", f"1{NB}234{NB}567"),
        ("es", "4.228,55 €", "5,00 CZK", "33,3 %", "1.234.567"),
    ],
)
def test_numbers_are_written_as_readers_of_the_language_write_them(
    spoken: Language, euros: str, crowns: str, percent: str, thousands: str
) -> None:
    with use_language(spoken):
        assert str(figure(Decimal("4228.55"), "money", "EUR")) == euros
        assert str(figure(5, "money", "CZK")) == crowns
        assert str(figure(33.333, "percent")) == percent
        assert count(1_234_567) == thousands


@pytest.mark.parametrize(
    ("spoken", "short", "long"),
    [
        ("en", "Sat 21 Nov", "Saturday, 21 November 2026"),
        ("de", "Sa., 21. Nov.", "Samstag, 21. November 2026"),
        ("sk", "so 21. 11.", "sobota 21. novembra 2026"),
        ("es", "sáb, 21 nov", "sábado, 21 de noviembre de 2026"),
    ],
)
def test_dates_are_written_in_the_order_of_the_language(spoken: Language, short: str, long: str) -> None:
    with use_language(spoken):
        assert (language.day(SATURDAY), language.long_day(SATURDAY)) == (short, long)
        assert "2026" in language.day(SATURDAY, "yMMMEd")
        at = datetime(2026, 11, 21, 22, 30, tzinfo=UTC)
        assert language.clock(at, "Europe/Bratislava") == "23:30"
        assert language.moment(at, "Asia/Tokyo").endswith(", 07:30")
        assert language.clock(None, "UTC") == language.moment(None, "UTC") == language.UNKNOWN


@pytest.mark.parametrize("spoken", LANGUAGES)
@pytest.mark.parametrize("skeleton", ["MMMEd", "yMMMEd", "MMMd", "yMMMd", "yMMM", "y", "E"])
def test_every_language_has_every_form_of_a_date_that_pages_use(spoken: Language, skeleton: str) -> None:
    with use_language(spoken):
        assert re.search(r"\w", language.day(SATURDAY, skeleton))


@pytest.mark.parametrize(
    ("value", "digits", "written"),
    [
        (0.25, 1, "0.3"),
        (0.35, 1, "0.4"),
        (1.005, 2, "1.01"),
        (2.5, 0, "3"),
        (-2.5, 0, "\N{MINUS SIGN}3"),
        (Decimal("1234.565"), 2, "1,234.57"),
        (1e-12, 1, "0.0"),
        (-0.04, 1, "0.0"),
    ],
)
def test_ties_are_rounded_away_from_zero(value: float | Decimal, digits: int, written: str) -> None:
    assert rounded(value, digits) == written


@pytest.mark.parametrize("spoken", LANGUAGES)
@pytest.mark.parametrize("amount", [Decimal("-18.20"), Decimal("-1234567.89"), Decimal("0.50")])
def test_an_amount_is_written_as_the_language_writes_its_currency(spoken: Language, amount: Decimal) -> None:
    usual = format_currency(amount, "EUR", locale=spoken).replace("-", "\N{MINUS SIGN}")

    with use_language(spoken):
        assert str(figure(amount, "money", "EUR")).replace(" ", NB) == usual
        assert str(figure(amount, "money", "CHF")).count("\N{MINUS SIGN}") == (amount < 0)


def test_a_sign_precedes_a_code_that_stands_for_a_symbol() -> None:
    assert str(figure(Decimal(-3), "money", "CHF")) == f"\N{MINUS SIGN}CHF{NB}3.00"


@pytest.mark.parametrize("value", [10**30, 1e30, Decimal(10) ** 30, 1e306])
def test_an_amount_may_have_any_number_of_digits(value: float | Decimal) -> None:
    assert str(figure(value, "money", "EUR")).startswith("€1,000,000")
    assert str(figure(-value, "money", "EUR")).startswith("\N{MINUS SIGN}€1,000,000")


def test_no_digit_of_a_long_amount_is_lost() -> None:
    long = Decimal("123456789012345678901234567890.55")

    assert str(figure(long, "money", "EUR")) == "€123,456,789,012,345,678,901,234,567,890.55"
    assert plain_number(long) == "123,456,789,012,345,678,901,234,567,890.55"
