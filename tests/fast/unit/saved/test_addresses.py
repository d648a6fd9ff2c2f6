"""Only addresses of our own pages are kept, in the form in which every browser reads them as such."""

import pytest

from master_dataset.registry.stores import Store
from serving_layer.errors import BadAddressError, BadQuestionError
from serving_layer.saved.addresses import MAX_ADDRESS, parse_address, readable, require_page, shown_stores
from tests.support import World
from tests.support.world_api import Asking

HOSTILE = [
    "",
    "stores/12",
    "//evil.example",
    "//evil.example/stores/12",
    "/\\evil.example",
    "/%5Cevil.example",
    "/%2Fevil.example",
    "\\\\evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    " /stores/12",
    "/stores/12 ",
    "/stores/12\n",
    "/\t/evil.example",
    "/stores/12#fragment",
    "/stores/12?day=1#fragment",
    "/stores/../login",
    "/stores/%2e%2e/login",
    "/./login",
    "/stores/1%00",
    "/stores/%E2%80%AE12",
    "/stores/%ff",
    "/stores/é",
    "/" + "x" * MAX_ADDRESS,
]
NO_PAGES = ["/nothing", "/login", "/logout", "/static/galatea.css", "/v1/stores", "/metrics", "/shared/" + "x" * 43]


@pytest.mark.parametrize("text", HOSTILE)
def test_an_address_that_could_lead_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(BadAddressError):
        parse_address(text)


@pytest.mark.parametrize("text", NO_PAGES)
def test_an_address_without_a_page_to_keep_is_refused(text: str) -> None:
    routes = Asking(World(Store(id="1", timezone="UTC"))).app.routes

    with pytest.raises(BadAddressError):
        require_page(parse_address(text), routes)


@pytest.mark.parametrize("text", ["/", "/?page=2&q=a%20b", "/stores/12?day=2026-11-21", "/stores/a%2Fb", "/alerts"])
def test_an_address_of_a_page_is_kept_as_it_is(text: str) -> None:
    address = parse_address(text)

    require_page(address, Asking(World(Store(id="1", timezone="UTC"))).app.routes)
    assert address.text == text


def test_a_page_says_which_stores_it_shows() -> None:
    assert shown_stores(parse_address("/?page=2")) is None
    assert shown_stores(parse_address("/stores/a%20b%2F1?day=2026-11-21")) == frozenset({"a b/1"})


@pytest.mark.parametrize("text", ["/alerts?store=12", "/layers", "/stack", "/corrections", "/saved", "/stores/"])
def test_pages_that_name_other_things_cannot_be_shared(text: str) -> None:
    with pytest.raises(BadAddressError, match="cannot be shared"):
        shown_stores(parse_address(text))


@pytest.mark.parametrize("text", ["", "  ", "x" * 11, "a\nb", "a\u202eb", "a\u200bb", "a\x00b"])
def test_a_text_that_nobody_could_read_as_it_is_is_refused(text: str) -> None:
    with pytest.raises(BadQuestionError, match="`name`"):
        readable(text, "name", 10)


def test_a_text_is_kept_without_blanks_around_it() -> None:
    assert readable(" Košice 👩‍🍳 ", "name", 20) == "Košice 👩‍🍳"
