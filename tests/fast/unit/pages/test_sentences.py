"""Sentences of errors, alerts and rules in the language of a page."""

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError
from serving_layer.pages import language, sentences
from serving_layer.pages.cells import metric_name, source_name
from serving_layer.pages.language import LANGUAGES, Language, use_language
from serving_layer.pages.sentences import ALERTS, ERRORS, rule_in_words, translated
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing
from views.alerts.evaluation import ThresholdResult
from views.alerts.rule import Level, Rule, Silence, Threshold
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.sentences import alert_sentence
from views.alerts.shop_clock import ShopClock

ROOT = Path(__file__).parents[4]
FOLDERS = ("serving_layer", "master_dataset", "views/alerts")
_WORD = re.compile(r"\w{2,}")
PLACE = re.compile(r"\{\w*\}")


def written_in(tree: ast.AST) -> Iterator[str]:
    """Every text of a module, with `{}` for each value of an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


@cache
def said_by_code() -> tuple[frozenset[str], list[re.Pattern[str]]]:
    """What the code can say, but for what the pages themselves write: texts, and patterns of those with values."""
    own = Path(sentences.__file__)
    files = (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if file != own)
    found = {text for file in files for text in written_in(ast.parse(file.read_text()))}
    own_words = {text for text in found if len(_WORD.findall(text)) > (text[:1] == "{")}
    with_values = [text for text in own_words if "{}" in text]
    patterns = [re.compile("(.+)".join(map(re.escape, text.split("{}"))), re.DOTALL) for text in with_values]
    return frozenset(own_words.difference(with_values)), patterns


def said_somewhere(text: str) -> bool:
    texts, patterns = said_by_code()
    return text in texts or any(pattern.fullmatch(text) for pattern in patterns)


@pytest.mark.parametrize("text", ERRORS)
def test_every_error_that_is_translated_is_one_that_the_code_can_say(text: str) -> None:
    parts = [text, *re.split(r"(?<=\w), and ", text)[:1]]  # one sentence is put together of two parts

    assert any(said_somewhere(PLACE.sub("x", part)) for part in parts)


@pytest.mark.parametrize("spoken", LANGUAGES[1:])
def test_values_of_a_sentence_are_kept_and_a_sentence_that_nobody_knows_stays(spoken: Language) -> None:
    with use_language(spoken):
        known = translated("There is no store `It's. 5 < 6, \n{name}`.")
        assert "`It's. 5 < 6, \n{name}`" in known
        assert "There is" not in known
        assert translated("Nobody wrote this sentence.") == "Nobody wrote this sentence."
        assert translated("There is no store `12`. Did you mean `120`?").count("`") == 4
        assert "Did you" not in translated("There is no store `12`. Did you mean `120`?")


def test_a_long_or_hostile_sentence_is_not_searched_for_long() -> None:
    with use_language("de"):
        assert translated("`x` " * 5000) == "`x` " * 5000
        assert translated("There is no " + "`x` " * 450) == "There is no " + "`x` " * 450


SHOP = Store(id="12", timezone="Europe/Bratislava")


def alerts() -> Iterator[str]:
    """What the rules of each kind say when they alert."""
    result = ThresholdResult(holds=True, value=Decimal("1234.5"), baseline=Decimal(2000))
    for metric in alertable_metrics():
        for bound in ({"above": Decimal(5)}, {"below": Decimal(5)}):
            for versus in (None, "previous_week"):
                rule = Threshold(id="x", metric=metric, window="hour", versus=versus, **bound)  # type: ignore[arg-type]
                yield alert_sentence(rule, ShopClock(SHOP), result)
    yield "The queue till 1 of store 12 has been above 5 for 10 minutes."
    yield "The number of people inside of store 12 has been above 5."
    yield "The sensor door of store 12 has been silent for 30 minutes."
    yield "The source people_counts of store 12 has been silent for 30 minutes."


@pytest.mark.parametrize("spoken", LANGUAGES[1:])
def test_every_alert_is_translated_with_its_numbers(spoken: Language) -> None:
    for sentence in alerts():
        with use_language(spoken):
            found = translated(sentence)
        assert " of store " not in found, sentence
        assert "12" in found
        if "1234.5" in sentence:
            with use_language(spoken):
                assert language.number(Decimal("1234.5"), 1) in found


def test_what_silences_and_levels_say_is_known() -> None:
    speed = ROOT / "speed_layer" / "alerts"
    said = {text for file in speed.glob("*.py") for text in written_in(ast.parse(file.read_text()))}

    assert {text for text in said if " of store {} has been " in text} == {
        "{} of store {} has been silent for {} minutes.",
        "{} of store {} has been above {}{}.",
    }
    assert {"The queue {}", "The number of people inside", "The sensor {}", "The source {}"} <= said
    assert sum(" has been " in text for text in ALERTS) == 6


RULES: list[tuple[Rule, str, str]] = [
    (
        Threshold(id="x", metric="net_sales", window="hour", below=Decimal("1000.5")),
        "Alerts when Net sales per hour is below 1,000.5, in every store, in opening hours.",
        "Warnt, wenn Nettoumsatz pro Stunde unter 1.000,5 liegt, in jeder Filiale, während der Öffnungszeiten.",
    ),
    (
        Threshold(id="x", metric="sales.zero_tx", window="day", above=Decimal(5), stores=tuple("1234567")),
        "Alerts when Receipts for zero per business day is above 5, in 1, 2, 3, 4, 5 and 2 more stores.",
        "Warnt, wenn {metric} pro Geschäftstag über 5 liegt, in 1, 2, 3, 4, 5 und 2 weiteren Filialen.",
    ),
    (
        Silence(id="x", source="people_counts", minutes=30, per="sensor", hours="always"),
        "Alerts when nothing arrives for 30 minutes from a sensor of: Door counters, in every store.",
        "Warnt, wenn 30 Minuten lang nichts ankommt von einem Sensor von: {source}, in jeder Filiale.",
    ),
    (
        Level(id="x", of="queue", above=4, minutes=1),
        "Alerts when a queue is longer than 4 for 1 minute, in every store.",
        "Warnt, wenn eine Schlange 1 Minute lang länger als 4 ist, in jeder Filiale.",
    ),
    (
        Level(id="x", of="occupancy", above=4, minutes=0),
        "Alerts when more than 4 people are inside, in every store.",
        "Warnt, wenn mehr als 4 Personen in der Filiale sind, in jeder Filiale.",
    ),
]


@pytest.mark.parametrize(("rule", "english", "german"), RULES)
def test_a_rule_is_a_sentence_in_the_language_of_the_page(rule: Rule, english: str, german: str) -> None:
    with use_language("de"):
        names = {"metric": metric_name("sales.zero_tx"), "source": source_name("people_counts")}
        assert rule_in_words(rule) == german.format(**names)
    assert rule_in_words(rule) == english


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/stores/nobody", 404, "Es gibt keine Filiale <code>nobody</code>."),
        ("/stores/12?day=yesterday", 422, "ist kein Datum."),
        ("/?first=2026-11-21&last=2026-11-01", 422, "Der erste Tag, 2026-11-21, liegt nach dem letzten, 2026-11-01."),
        ("/shared/" + "x" * 43, 404, "Diesen Freigabelink gibt es nicht."),
        ("/keys", 401, "Schlüssel"),
        ("/reports/daily?day=1900-01-01", 422, "Berichte gibt es aber für Tage von"),
        ("/reports/daily?tenant=nobody", 404, "Es gibt keinen Mandanten <code>nobody</code>."),
    ],
)
def test_an_error_page_is_in_the_language_of_its_visitor(asking: Asking, path: str, status: int, said: str) -> None:
    browsing = Browsing(asking)
    browsing.cookies.set(language.COOKIE, "de")

    page = browsing.get(path, status)

    assert said in page


def test_errors_of_rest_stay_in_english(asking: Asking) -> None:
    error = BadQuestionError("There is no store `x`.", do="")

    assert error.message == "There is no store `x`."
    assert asking.refusal("/v1/metrics/net_sales", store="nobody", range="today")["title"].startswith("There is no")
