"""Every route says the same to browsers, whatever it answers; nothing is offered to other origins, and no docs."""

import re
from collections.abc import Iterator, Mapping

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from serving_layer.pages.assets import assets
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking

FILLED = {
    "metric": "net_sales",
    "view": "sales",
    "source": "pos_transactions",
    "number": "1",
    "id": "none",
    "id_": "1",
    "topic": "pos_transactions",
    "partition": "0",
    "offset": "0",
    "webhook": "hook",
    "store": "1",
    "alert_id": "0" * 32,
    "name": next(iter(assets())),
    "code": "unknown_name",
    "token": "x" * 43,
    "period": "daily",
}
COMMON = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "
OF_ANSWERS = COMMON | {"referrer-policy": "no-referrer", "content-security-policy": f"{POLICY}'none'"}
OF_PAGES = COMMON | {"referrer-policy": "same-origin", "content-security-policy": f"{POLICY}'self'"}
OF_SHARED_PAGES = OF_ANSWERS
"""Neither forms nor an address that others may see."""
KEPT = {"no-store", "no-cache, private", "no-cache"}
LEFT_OUT = {"/v1/live/{metric}"}
"""Has no end: `test_live.py` has it."""


def asking() -> Asking:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T09:30:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


WORLD_API = asking()


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    for route in app.routes:
        assert isinstance(route, Route)
        if route.path not in LEFT_OUT:
            yield from ((method, route.path) for method in sorted(route.methods or ()) if method != "HEAD")


def answered(method: str, path: str, **headers: str) -> httpx.Response:
    place = re.sub(r"\{(\w+)(?::path)?\}", lambda found: FILLED[found[1]], path)
    if path in {"/v1/metrics/{metric}", "/v1/index/{metric}", "/v1/views/{view}/cells"}:
        place += "?store=1&from=2026-11-21&to=2026-11-22"
    return WORLD_API.request(method, place, headers={"Authorization": f"Bearer {OPERATOR_KEY}", **headers})


def is_page(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/html")


def security(response: httpx.Response) -> Mapping[str, str | None]:
    return {name: response.headers.get(name) for name in OF_ANSWERS}


@pytest.mark.parametrize(("method", "path"), list(routes(WORLD_API.app)))
def test_every_route_has_the_headers_of_its_kind(method: str, path: str) -> None:
    response = answered(method, path)

    assert response.status_code < 500
    of_pages = OF_SHARED_PAGES if path.startswith("/shared/") else OF_PAGES
    assert security(response) == (of_pages if is_page(response) else OF_ANSWERS)
    assert response.headers["cache-control"] in KEPT
    assert "server" not in response.headers


@pytest.mark.parametrize(("method", "path"), [*routes(WORLD_API.app), ("OPTIONS", "/v1/stores"), ("GET", "/nowhere")])
def test_nothing_is_offered_to_a_page_of_another_origin(method: str, path: str) -> None:
    wishes = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    response = answered(method, path, Origin="https://elsewhere.example", **wishes)

    assert [name for name in response.headers if name.startswith("access-control")] == []


@pytest.mark.parametrize("path", ["/docs/oauth2-redirect", "/redoc", "/swagger", "/v1/docs"])
def test_there_are_no_interactive_docs(path: str) -> None:
    assert answered("GET", path).status_code == 404


@pytest.mark.parametrize("status", [404, 405, 415, 422, 401])
def test_a_refusal_has_the_headers_too(status: int) -> None:
    requests: dict[int, tuple[str, str, dict[str, str]]] = {
        404: ("GET", "/nowhere", {}),
        405: ("DELETE", "/v1/stores", {}),
        415: ("POST", "/v1/events/pos_transactions", {"Content-Type": "text/plain"}),
        422: ("GET", "/v1/raw/pos_transactions", {}),
        401: ("GET", "/v1/stores", {"Authorization": "Bearer galatea_0_x"}),
    }
    method, path, headers = requests[status]

    response = answered(method, path, **headers)

    assert (response.status_code, security(response)) == (status, OF_ANSWERS)
    assert response.headers["cache-control"] == "no-store"
