"""Going back by a form: shown what would change first, done once, refused when readers have moved on."""

from dataclasses import replace

import pytest

from master_dataset.errors import OperatorError
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import ORIGIN, Browsing, words
from views.control.recompute import LATE_EVENTS_REASON

FORM = "/publications/1/rollback"


@pytest.fixture
def operator(world: World, browsing: Browsing) -> Browsing:
    """Readers see publication 2."""
    world.rebuild("2026-11-21T09:30:00Z")
    browsing.sign_in(OPERATOR_KEY)
    return browsing


def test_publications_lead_an_operator_back_to_those_that_are_not_shown(operator: Browsing) -> None:
    page = operator.get("/publications")

    assert f'href="{FORM}"' in page
    assert "/publications/2/rollback" not in page


def test_others_are_not_led_back(browsing: Browsing, world: World) -> None:
    world.rebuild("2026-11-21T09:30:00Z")

    assert "/rollback" not in browsing.get("/publications")
    assert "Sign in" in browsing.get(FORM, status=401)


def test_who_published_why_and_how_much_was_read_is_for_operators(asking: Asking, world: World) -> None:
    world.rebuild("2026-11-21T09:30:00Z")
    world.restore(1)
    words = {"Reason", "By", "Days", "Events read", "Took", "a test", "world"}
    reader, operator = Browsing(asking), Browsing(asking)
    reader.sign_in(asking.keys.make("*"))
    operator.sign_in(OPERATOR_KEY)

    shown, whole = (each.get("/publications").partition("<table>")[2] for each in (reader, operator))

    assert {each for each in words if f">{each}<" in whole} == words
    assert {each for each in words if f">{each}<" in shown} == set()
    layers = [each.get("/layers") for each in (reader, operator)]
    assert ["To read" in page for page in layers] == [False, True]
    assert "restores 1" in shown
    assert shown.count("<th") - 1 == 4 + shown.count("<tr") - 1


def test_what_was_published_because_of_late_events_says_so_in_the_readers_language(
    operator: Browsing, world: World
) -> None:
    world.history[0] = replace(world.history[0], why=LATE_EVENTS_REASON)

    pages = [operator.response("GET", "/publications", {"accept-language": language}).text for language in ("en", "de")]

    assert ("late events" in pages[0], "verspätete Ereignisse" in pages[1]) == (True, True)


def test_before_anything_is_done_the_page_says_what_would_be(operator: Browsing, world: World) -> None:
    page = operator.words(FORM)

    assert "Readers see now publication 2, cut 21 Nov 2026, 09:30 UTC" in page
    assert "They would see publication 1, cut 21 Nov 2026, 09:00 UTC" in page
    assert "Published as publication 3" in page
    assert world.pointer.publication == 2


def test_going_back_is_a_publication_of_its_own_with_its_reason(operator: Browsing, world: World) -> None:
    response = operator.send(FORM, form_of=FORM, seen="2", reason=" a wrong price list ")

    assert (response.status_code, response.headers["location"]) == (303, "/publications?restored=3")
    assert world.pointer.publication == 3
    assert "Publication 3 shows readers publication 1 again." in operator.words("/publications?restored=3")


def test_an_address_that_claims_a_rollback_is_not_believed(operator: Browsing) -> None:
    assert "Done." not in operator.words("/publications?restored=2")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seen": "2"}, "is too short. Give it 1 character or more."),
        ({"seen": "1", "reason": "because"}, "Readers now see publication 2."),
        ({"reason": "because"}, "Readers now see publication 2."),
    ],
)
def test_what_is_wrong_is_said_above_the_form(
    operator: Browsing, world: World, fields: dict[str, str], said: str
) -> None:
    response = operator.send(FORM, form_of=FORM, **fields)

    assert response.status_code == 422
    assert said in words(response.text)
    assert f'value="{fields.get("reason", "")}"' in response.text
    assert world.pointer.publication == 2


@pytest.mark.parametrize("origin", [None, "http://elsewhere"])
def test_a_form_of_somebody_else_goes_back_to_nothing(operator: Browsing, world: World, origin: str | None) -> None:
    foreign = operator.send(FORM, form_of=FORM, origin=origin, seen="2", reason="because")
    without_token = operator.post(FORM, "seen=2&reason=because&token=x", origin=ORIGIN)

    assert (foreign.status_code, without_token.status_code) == (403, 403)
    assert world.pointer.publication == 2


def test_a_publication_that_cannot_be_shown_again_says_why(operator: Browsing) -> None:
    operator.asking.rolling_back.refuses = OperatorError("the cells were collected", do="galatea rebuild --full")

    page = operator.words(FORM, status=409)

    assert "the cells were collected" in page
    assert "galatea rebuild --full" in page


@pytest.mark.parametrize(("number", "status"), [("9", 404), ("0", 422), ("last", 422)])
def test_one_that_there_is_not_is_refused(operator: Browsing, number: str, status: int) -> None:
    assert "This cannot be shown" in operator.words(f"/publications/{number}/rollback", status=status)
