"""A page shows what the key of its visitor opens: no more, and no hint of the rest."""

import pytest
from fastapi.routing import APIRoute

from serving_layer.pages.routing import RequireScope
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

OPEN = {
    "/docs",
    "/openapi.json",
    "/problems",
    "/problems/{code}",
    "/login",
    "/logout",
    "/language",
    "/static/{name:path}",
    "/shared/{token}",
}
FOR_OPERATORS = [
    "/corrections",
    "/recomputes",
    "/recomputes/any",
    "/dead-letters",
    "/dead-letters/pos_transactions/0/0",
    "/keys",
    "/publications/1/rollback",
]
FOR_READERS = [
    "/",
    "/stores",
    "/stores/12",
    "/products",
    "/layers",
    "/views",
    "/publications",
    "/stack",
    "/saved",
    "/annotations",
]


def test_without_a_session_the_stores_of_the_shown_tenant_are_there(browsing: Browsing) -> None:
    for path in ("/", "/stores", "/products"):
        page = browsing.get(path)
        assert "Kosice" in page
        assert "Of another" not in page


def test_a_store_of_another_tenant_is_not_found_as_if_unknown(browsing: Browsing) -> None:
    theirs, unknown = browsing.get("/stores/acme-1", status=404), browsing.get("/stores/acme-2", status=404)

    assert theirs.replace("acme-1", "acme-2") == unknown
    assert "Of another" not in theirs


def test_a_key_of_a_tenant_shows_its_stores_alone(asking: Asking, browsing: Browsing) -> None:
    browsing.sign_in(asking.keys.make("acme"))

    for path in ("/", "/stores"):
        page = browsing.get(path)
        assert "Of another" in page
        assert "Kosice" not in page
    assert "Kosice" not in browsing.get("/products")
    assert browsing.get("/stores/acme-1")
    assert browsing.get("/stores/12", status=404)
    assert browsing.get("/products?store=12", status=404)
    assert "Kosice" not in browsing.get("/views")


def test_the_script_of_a_page_asks_rest_with_the_session_of_the_page(asking: Asking, browsing: Browsing) -> None:
    path = "/v1/metrics/net_sales?store=acme-1&from=2026-11-21&to=2026-11-22"
    browsing.get(path, status=404)

    browsing.sign_in(asking.keys.make("acme"))

    assert "77.00" in browsing.get(path)


def test_a_cookie_never_stands_for_a_key_where_something_would_change(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)
    body = '{"reason": "because"}'

    refused = browsing.response("POST", "/v1/recomputes", {"Content-Type": "application/json"}, body)

    assert refused.status_code == 401
    assert browsing.asking.recomputing.requests == []


def test_a_header_of_the_request_itself_wins_over_the_cookie(browsing: Browsing) -> None:
    browsing.sign_in(OPERATOR_KEY)

    refused = browsing.response("GET", "/v1/stores", {"Authorization": "Bearer galatea_0_x"})

    assert refused.status_code == 401


@pytest.mark.parametrize("path", FOR_OPERATORS)
def test_pages_of_operators_ask_for_a_key_and_refuse_one_that_may_not(
    asking: Asking, browsing: Browsing, path: str
) -> None:
    assert "Sign in" in browsing.get(path, status=401)

    browsing.sign_in(asking.keys.make("default"))

    assert "scope operate" in browsing.words(path, status=403)
    assert "/recomputes" not in browsing.get("/")
    assert "/dead-letters" not in browsing.get("/")


@pytest.mark.parametrize("path", FOR_READERS)
def test_where_nothing_is_shown_without_a_key_every_page_is_the_door(asking: Asking, path: str) -> None:
    keys = asking.app.state.authenticator.keys
    keys._anonymous = None  # noqa: SLF001 - as a stack without an anonymous tenant is made

    page = Browsing(asking).get(path, status=401)

    assert "<h1>Sign in</h1>" in page
    assert "Kosice" not in page


def test_every_page_names_the_scope_that_it_needs(asking: Asking) -> None:
    routes = [each for each in asking.app.routes if isinstance(each, APIRoute) and not each.include_in_schema]
    without = {
        each.path for each in routes if not any(isinstance(of.call, RequireScope) for of in each.dependant.dependencies)
    }

    assert without == OPEN
