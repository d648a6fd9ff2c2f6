"""What every path of the REST interface has in common: HEAD, lists of ids, origins, problem pages, the reference."""

import asyncio
import re
from collections.abc import Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st

from master_dataset import errors
from master_dataset.registry.stores import Store
from serving_layer.api.parameters import read_ids, write_id
from serving_layer.errors import BadQuestionError
from serving_layer.http.problem_types import problem_types
from tests.support import World, receipt
from tests.support.openapi_contract import document
from tests.support.world_api import Asking

DAY = {"from_": "2026-11-21", "to": "2026-11-22"}
NET = "/v1/metrics/net_sales"
HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def asking() -> Asking:
    world = World(*(Store(id=name, timezone="UTC") for name in ("1", "2", "3, Main St")))
    for number, store in enumerate(("1", "2", "3, Main St")):
        world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store=store, number=number), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


# Lists of ids


@pytest.mark.parametrize(
    ("said", "stores"),
    [
        (["1,2"], ["1", "2"]),
        (["1", "2"], ["1", "2"]),
        (["2,1", "2"], ["2", "1"]),
        ([r"1,3\, Main St"], ["1", "3, Main St"]),
    ],
)
def test_stores_are_repeated_or_separated_by_commas(asking: Asking, said: Sequence[str], stores: Sequence[str]) -> None:
    for path in (NET, "/v1/views/sales/cells"):
        found = asking.body(path, **DAY, store=said)

        listed = found["series"] if "series" in found else found["cells"]
        assert {each["store"] for each in listed} == set(stores)


def test_a_comma_without_an_id_beside_it_is_refused(asking: Asking) -> None:
    refused = asking.response(NET, **DAY, store="1,").json()

    assert (refused["code"], refused["title"]) == ("bad_question", "`store=1,` has a comma without an id beside it.")
    assert r"`\,`" in refused["detail"]


@given(st.lists(st.text("a1,\\ ", min_size=1), min_size=1, max_size=4))
def test_whatever_an_id_contains_it_can_be_written(ids: list[str]) -> None:
    assert read_ids([",".join(map(write_id, ids))]) == ids
    assert read_ids([write_id(each) for each in ids]) == ids


def test_a_backslash_before_anything_else_is_itself() -> None:
    assert read_ids([r"a\b"]) == [r"a\b"]
    with pytest.raises(BadQuestionError):
        read_ids(["1,,2"])


# HEAD

OPEN = ["/openapi.json", "/docs", "/problems", "/problems/unknown_name", "/", "/login", "/health", "/static/mark.svg"]
LISTED = ["/v1/metrics", "/v1/stores", "/v1/freshness", "/v1/publications", "/v1/alerts", "/v1/alert-rules"]


@pytest.mark.parametrize("path", [*OPEN, *LISTED, f"{NET}?from=2026-11-21&to=2026-11-22", "/v1/nothing"])
def test_head_has_the_status_and_headers_of_get_and_no_body(asking: Asking, path: str) -> None:
    full, head = asking.request("GET", path), asking.request("HEAD", path)

    assert (head.status_code, head.content) == (full.status_code, b"")
    assert set(head.headers) == set(full.headers)
    for name in ("content-type", "etag", "content-security-policy"):
        assert head.headers.get(name) == full.headers.get(name)


def test_head_knows_what_the_caller_has(asking: Asking) -> None:
    tag = asking.response(NET, **DAY).headers["etag"]

    assert asking.response(NET, method="HEAD", **DAY, known=tag).status_code == 304


def test_head_of_a_stream_ends(asking: Asking) -> None:
    path = "/v1/live/net_sales?from=2026-11-21&to=2026-11-22"

    response = asyncio.run(asyncio.wait_for(_sent(asking.app, "HEAD", path), timeout=5))

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"].startswith("text/event-stream")


def test_a_path_without_get_has_no_head(asking: Asking) -> None:
    refused = asking.request("HEAD", "/v1/webhooks/abc/test")

    assert (refused.status_code, "HEAD" in refused.headers["allow"]) == (405, False)
    assert "HEAD" in asking.request("POST", "/v1/stores").headers["allow"]


# Origins

SHOP = "https://shop.example"
PREFLIGHT = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}


async def _sent(app: Any, method: str, path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://galatea") as client:
        return await client.request(method, path, headers=headers)


def sent(app: Any, method: str, path: str, **headers: str) -> httpx.Response:
    return asyncio.run(_sent(app, method, path, **headers))


@pytest.fixture(scope="module")
def open_to_shop() -> Asking:
    return Asking(World(Store(id="1", timezone="UTC")), cors_origins=(SHOP,))


def test_no_origin_is_allowed_unless_it_is_listed(asking: Asking, open_to_shop: Asking) -> None:
    assert "access-control-allow-origin" not in sent(asking.app, "GET", "/v1/stores", Origin=SHOP).headers
    for origin in ("https://shop.example.evil", "https://evil.example", "http://shop.example", "null"):
        answered = sent(open_to_shop.app, "GET", "/v1/stores", Origin=origin)
        preflight = sent(open_to_shop.app, "OPTIONS", "/v1/stores", Origin=origin, **PREFLIGHT)

        assert "access-control-allow-origin" not in answered.headers
        assert "access-control-allow-origin" not in preflight.headers
        assert preflight.status_code == 400


@pytest.mark.parametrize("path", ["/v1/stores", "/v1/nothing"])
def test_a_listed_origin_reads_answers_and_problems_without_the_cookie_of_a_session(
    open_to_shop: Asking, path: str
) -> None:
    preflight = sent(open_to_shop.app, "OPTIONS", path, Origin=SHOP, **PREFLIGHT)
    answered = sent(open_to_shop.app, "GET", path, Origin=SHOP)

    assert preflight.status_code == 200
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    for response in (preflight, answered):
        assert response.headers["access-control-allow-origin"] == SHOP
        assert "access-control-allow-credentials" not in response.headers
    assert "Origin" in answered.headers["vary"]
    assert "ETag" in answered.headers["access-control-expose-headers"]


def test_an_answer_from_the_cache_is_of_the_origin_that_asks(open_to_shop: Asking) -> None:
    path = f"{NET}?from=2026-11-21&to=2026-11-22"
    first, again = (sent(open_to_shop.app, "GET", path, **said) for said in ({"Origin": SHOP}, {}))

    assert first.content == again.content
    assert "access-control-allow-origin" in first.headers
    assert "access-control-allow-origin" not in again.headers


def test_an_unexpected_error_can_be_read_by_a_listed_origin_and_says_nothing_of_its_cause(
    open_to_shop: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(open_to_shop.answers.stores, "all", fail)
    failed = sent(open_to_shop.app, "GET", "/v1/stores", Origin=SHOP)
    other = sent(open_to_shop.app, "GET", "/v1/stores", Origin="https://evil.example")

    assert (failed.status_code, failed.json()["code"]) == (500, "internal_error")
    assert "secret" not in failed.text
    assert failed.headers["access-control-allow-origin"] == SHOP
    assert failed.headers.get_list("x-content-type-options") == ["nosniff"]
    assert failed.headers.get_list("cache-control") == ["no-store"]
    assert other.status_code == 500
    assert "access-control-allow-origin" not in other.headers


# Redirects


@pytest.mark.parametrize("path", ["/v1/stores/", "/publications/", "/health/", "/static", "/login/"])
def test_no_response_repeats_a_foreign_host(asking: Asking, path: str) -> None:
    for host in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}):
        answered = sent(asking.app, "GET", path, **host)

        assert "evil.example" not in f"{answered.headers}{answered.text}"
        assert "://" not in answered.headers.get("location", "")


def test_a_path_with_a_slash_too_many_does_not_exist(asking: Asking) -> None:
    refused = asking.request("GET", "/v1/stores/")

    assert (refused.status_code, refused.headers["content-type"]) == (404, "application/problem+json")


# Problems


def test_the_type_of_a_problem_is_a_path_that_says_what_it_means(asking: Asking) -> None:
    problem = asking.response("/v1/metrics/net_sale", **DAY).json()

    meaning = asking.request("GET", problem["type"])
    page = asking.request("GET", problem["type"], headers=HTML)

    assert problem["type"] == "/problems/unknown_name"
    assert meaning.json() == {
        "type": "/problems/unknown_name",
        "code": "unknown_name",
        "meaning": problem_types()["unknown_name"].meaning,
        "acts": "The caller",
        "status": 404,
    }
    assert page.headers["content-type"].startswith("text/html")
    assert "unknown_name" in page.text
    assert page.headers["vary"] == meaning.headers["vary"] == "Accept"


def test_every_code_has_a_page(asking: Asking) -> None:
    for code in problem_types():
        meaning = asking.request("GET", f"/problems/{code}").json()

        assert meaning["meaning"]
        assert HTTPStatus(meaning["status"]) >= HTTPStatus.BAD_REQUEST
        assert asking.request("GET", f"/problems/{code}", headers=HTML).status_code == 200


def test_all_codes_are_listed_and_an_unknown_one_gets_the_nearest(asking: Asking) -> None:
    listed = asking.request("GET", "/problems").json()["problems"]

    assert [each["code"] for each in listed] == sorted(problem_types())
    refused = asking.request("GET", "/problems/unknown_nam")
    assert (refused.status_code, refused.json()["detail"]) == (404, "Did you mean `unknown_name`?")


# Did you mean


@pytest.mark.parametrize(
    ("argument", "value", "nearest"),
    [
        ("grain", "weak", "week"),
        ("hours", "opened", "open"),
        ("format", "parket", "parquet"),
        ("compare", "previous_wek", "previous_week"),
    ],
)
def test_a_label_that_does_not_exist_gets_the_nearest(asking: Asking, argument: str, value: str, nearest: str) -> None:
    refused = asking.response(NET, **DAY, **{argument: value}).json()

    assert (refused["detail"], value in refused["title"]) == (f"Did you mean `{nearest}`?", True)


@pytest.mark.parametrize("number", [0, 4, 49_999])
def test_of_very_many_names_only_neighbours_are_compared(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def noting(name: str, names: Sequence[str], n: int, cutoff: float) -> list[str]:
        compared.extend(names)
        return get_close_matches(name, names, n, cutoff)

    monkeypatch.setattr(errors, "get_close_matches", noting)

    hint = errors.UnknownNameError("store", f"shop-{number:05}x", [f"shop-{each:05}" for each in range(50_000)]).do

    assert hint == f"Did you mean `shop-{number:05}`?"
    assert len(compared) <= errors.MOST_COMPARED


def test_a_label_like_no_other_gets_all_of_them(asking: Asking) -> None:
    refused = asking.response(NET, **DAY, hours="xyz").json()

    assert (refused["code"], refused["title"]) == ("bad_question", "There is no `hours=xyz`.")
    assert refused["detail"] == "Use one of: `all`, `open`."


def test_an_argument_that_does_not_exist_gets_the_nearest(asking: Asking) -> None:
    refused = asking.response(NET, **DAY, stores="1").json()

    assert (refused["code"], refused["detail"][:22]) == ("unknown_argument", "Did you mean `store`? ")


# The reference


def test_the_reference_names_every_operation_parameter_and_schema(asking: Asking) -> None:
    page = asking.request("GET", "/docs").text

    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            assert f'id="{operation["operationId"]}"' in page
            assert f"<code>{method.upper()} {path}</code>" in page
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in page
    for name in document()["components"]["schemas"]:
        assert f'id="schema-{name}"' in page


def test_every_link_within_the_reference_leads_somewhere(asking: Asking) -> None:
    page = asking.request("GET", "/docs").text
    anchors = re.findall(r'id="([^"]+)"', page)

    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)


@pytest.mark.parametrize("path", ["/docs", "/problems"])
def test_the_reference_loads_nothing_from_anywhere_else(asking: Asking, path: str) -> None:
    page = asking.request("GET", path, headers=HTML)

    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    assert re.findall(r'(?:src|href)="(?!/|#)[^"]*"', page.text) == []
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style| style=", page.text) == []


def test_every_page_leads_to_the_reference(asking: Asking) -> None:
    assert 'href="/docs"' in asking.request("GET", "/", headers=HTML).text


def test_every_route_answers_get_or_changes_something(asking: Asking) -> None:
    methods = {method for route in asking.app.routes if isinstance(route, APIRoute) for method in route.methods}

    assert methods <= {"GET", "POST", "PUT", "PATCH", "DELETE"}
