"""Unknown paths and failures are pages for browsers, and problem documents for programs."""

import pytest

from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, words

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing", 404, "There is no page /nothing. The links above lead to all pages."),
        ("GET", "/<b>bold</b>", 404, "There is no page /<b>bold</b>."),
        ("GET", "/logout", 405, "Method Not Allowed: GET /logout."),
        ("POST", "/stack", 405, "Method Not Allowed: POST /stack."),
    ],
)
def test_a_browser_that_goes_astray_is_shown_a_page(
    browsing: Browsing, method: str, path: str, status: int, said: str
) -> None:
    response = browsing.response(method, path, BROWSER)

    assert response.status_code == status
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert said in words(response.text)
    assert "<b>bold" not in response.text
    assert response.headers.get_list("content-security-policy")[0].startswith("default-src 'self';")


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/nothing", {}), ("/nothing", {"Accept": "*/*"}), ("/v1/nothing", BROWSER), ("/static/none.css", BROWSER)],
)
def test_a_program_gets_a_problem_document(browsing: Browsing, path: str, headers: dict[str, str]) -> None:
    response = browsing.response("GET", path, headers)

    assert (response.status_code, response.headers["content-type"]) == (404, PROBLEM)


def test_what_a_refusal_says_in_its_headers_a_page_says_too(browsing: Browsing) -> None:
    assert browsing.response("POST", "/stack", BROWSER).headers["allow"] == "GET, HEAD"


def test_a_failure_that_nobody_foresaw_is_a_page_with_an_id_to_tell(
    asking: Asking, browsing: Browsing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking.app.state, "freshness", None)

    response = browsing.response("GET", "/stack", BROWSER)

    assert response.status_code == 500
    assert "An unexpected error occurred. Give the operator this id:" in words(response.text)
    assert response.headers.get_list("x-content-type-options") == ["nosniff"]
    assert browsing.response("GET", "/stack").headers["content-type"] == PROBLEM
