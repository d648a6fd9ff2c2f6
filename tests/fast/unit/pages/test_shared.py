"""Whoever has a share link sees its page, live, and nothing else, whatever they try."""

import asyncio
import re
from datetime import timedelta
from html import unescape

import httpx
import pytest
from fastapi import Response
from starlette.types import Scope

from master_dataset.registry.stores import Store
from serving_layer.keys.authenticator import ConcurrencyLimiter
from serving_layer.keys.rates import RateLimiter
from serving_layer.keys.throttle import LookupThrottle
from serving_layer.limits import LIMITS
from serving_layer.pages.shared import SharedPages, without_ways_out
from serving_layer.saved.shares import WRONG_TOKENS_PER_MINUTE, ShareLink
from tests.support import World
from tests.support.world_api import EMBEDDER, OPERATOR_KEY, Asking
from tests.support.world_clients import ORIGIN, Browsing

SHARES = "/v1/shares"
QUERY = re.compile(r'data-query="([^"]+)"')


def shared(asking: Asking, address: str, key: str = OPERATOR_KEY, **more: object) -> str:
    """The path of a new link."""
    made = asking.response(SHARES, method="POST", key=key, said={"address": address, "hours": 24, **more})
    assert made.status_code == 201, made.text
    path: str = made.json()["path"]
    return path


def header(path: str) -> dict[str, str]:
    """What the script of a shared page sends."""
    return {"Authorization": f"Share {path.removeprefix('/shared/')}"}


def queries(page: str) -> list[str]:
    """The addresses that the script of a page asks."""
    return [unescape(each) for each in QUERY.findall(page)]


@pytest.fixture
def path(asking: Asking) -> str:
    """Of a link to a store on a day."""
    return shared(asking, "/stores/12?day=2026-11-21")


@pytest.fixture(scope="module")
def visited(lasting: Browsing) -> str:
    """The same path for all tests that change nothing; its page was opened."""
    path = shared(lasting.asking, "/stores/12?day=2026-11-21")
    lasting.get(path)
    return path


def test_the_page_of_a_store_is_shown_without_a_key(browsing: Browsing, path: str) -> None:
    page = browsing.words(path)

    assert "Kosice" in page
    assert "Sat, 21 Nov 2026" in page
    assert "Shared, read-only" in page
    assert browsing.cookies == httpx.Cookies()


def test_where_nothing_is_shown_without_a_key_a_link_still_opens(asking: Asking, path: str) -> None:
    asking.app.state.authenticator.keys._anonymous = None  # noqa: SLF001 - as a stack without an anonymous tenant is made
    browsing = Browsing(asking)

    page = browsing.get(path)

    assert "Kosice" in page
    assert browsing.response("GET", queries(page)[0], header(path)).status_code == 200
    browsing.get("/stores/12", status=401)


def test_a_shared_page_has_no_form_and_leads_nowhere(browsing: Browsing, asking: Asking, path: str) -> None:
    for each in (path, shared(asking, "/")):
        page = browsing.get(each)

        assert "<form" not in page
        assert "<nav" not in page
        assert re.findall(r'<a\b[^>]*href="([^"]*)"', page) == ["#main"]
        assert "/v1/metrics" not in re.sub(r'data-query="[^"]*"', "", page)


def test_nothing_of_a_shared_page_is_there_only_to_lead_away(asking: Asking) -> None:
    browsing = Browsing(asking)
    own = 'data-drill="/' + r'|class="switch"|rel="prev"|>All (?:alerts|products|annotations)<|Yesterday'
    addresses = ["/", "/?range=last_7_days", "/stores/12?day=2026-11-21", "/stores/12?range=last_7_days"]

    for address in addresses:
        whole, page = browsing.get(address), browsing.get(shared(asking, address))

        assert len(set(re.findall(own, whole))) >= 2
        assert re.findall(own, page) == []
        drills = re.findall('data-drill="[^"]*"', page)
        assert drills
        assert set(drills) == {'data-drill=""'}


def test_the_address_of_a_shared_page_stays_between_its_holder_and_us(browsing: Browsing, path: str) -> None:
    headers = browsing.response("GET", path).headers

    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert "set-cookie" not in headers


def test_the_script_of_a_shared_page_gets_every_number_of_it(browsing: Browsing, asking: Asking, path: str) -> None:
    for each in (path, shared(asking, "/")):
        asked = queries(browsing.get(each))

        assert len(asked) > 3
        assert {browsing.response("GET", query, header(each)).status_code for query in asked} == {200}


def test_queries_of_several_metrics_are_those_that_the_script_makes(browsing: Browsing, path: str) -> None:
    asked = [each for each in queries(browsing.get(path)) if "grain=total" in each and "compare" not in each]
    arguments = asked[0].partition("?")[2]
    metrics = sorted(
        {each.removeprefix("/v1/metrics/").partition("?")[0] for each in asked if each.endswith(arguments)}
    )
    together = f"/v1/metrics/{','.join(metrics)}?{arguments}"

    assert len(metrics) > 1
    assert browsing.response("GET", together, header(path)).status_code == 200
    beside = f"/v1/metrics/{','.join([*metrics, 'returns_value'])}?{arguments}"
    assert browsing.response("GET", beside, header(path)).status_code == 403


@pytest.mark.parametrize(
    "query",
    [
        "/v1/metrics/net_sales?store=12&from=2026-11-14&to=2026-11-15&grain=total",
        "/v1/metrics/net_sales?store=40&from=2026-11-21&to=2026-11-22&grain=total",
        "/v1/metrics/net_sales?store=acme-1&from=2026-11-21&to=2026-11-22&grain=total",
        "/v1/metrics/net_sales?from=2026-11-21&to=2026-11-22&grain=total",
        "/v1/metrics/net_sales?store=12&from=2026-11-21&to=2026-11-22&grain=total&by=till",
        "/v1/metrics/net_sales?store=12&from=2026-11-21&to=2026-11-22&grain=total&format=csv",
        "/v1/metrics/,",
        "/v1/metrics",
        "/v1/live/net_sales?store=12&from=2026-11-21&to=2026-11-22",
        "/v1/index/net_sales?store=12&from=2026-11-21&to=2026-11-22",
        "/v1/raw/pos_transactions?store=12&day=2026-11-21",
        "/v1/views/sales/cells?store=12&from=2026-11-21&to=2026-11-22",
        "/v1/stores",
        "/v1/products",
        "/v1/alerts",
        "/v1/alert-rules",
        "/v1/annotations",
        "/v1/saved-views",
        "/v1/shares",
        "/v1/publications",
        "/v1/freshness",
        "/v1/webhooks",
        "/v1/recomputes/x",
    ],
)
def test_rest_answers_nothing_else(lasting: Browsing, visited: str, query: str) -> None:
    refused = lasting.response("GET", query, header(visited))

    assert refused.status_code in {401, 403, 404}
    assert "Kosice" not in refused.text
    assert "77.00" not in refused.text


def test_a_link_demands_no_events_and_learns_no_offsets(browsing: Browsing, path: str) -> None:
    asked = queries(browsing.get(path))[0]

    assert browsing.response("GET", asked, header(path)).status_code == 200
    refused = browsing.response("GET", asked, {**header(path), "Galatea-At-Least": ""})
    assert refused.status_code == 403
    assert "Galatea-Token" not in refused.headers


def test_what_a_tenants_key_has_in_the_cache_is_not_for_a_link(browsing: Browsing, asking: Asking, path: str) -> None:
    query = "/v1/metrics/net_sales?store=40&from=2026-11-21&to=2026-11-22&grain=total"
    key = {"Authorization": f"Bearer {asking.keys.make('default')}"}
    for _ in range(2):
        assert browsing.response("GET", query, key).status_code == 200

    assert browsing.response("GET", query, header(path)).status_code == 403
    assert browsing.response("GET", query, key).status_code == 200


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "/v1/annotations"),
        ("POST", "/v1/saved-views"),
        ("POST", "/v1/shares"),
        ("DELETE", "/v1/shares/x"),
        ("POST", "/v1/alert-rules/preview"),
        ("POST", "/v1/events/pos_transactions"),
        ("POST", "/v1/recomputes"),
    ],
)
def test_a_token_changes_nothing(lasting: Browsing, visited: str, method: str, route: str) -> None:
    headers = {"Content-Type": "application/json", **header(visited)}

    refused = lasting.response(method, route, headers, "{}")

    assert refused.status_code in {401, 403}
    assert len(lasting.asking.shares.kept) == 1


@pytest.mark.parametrize("route", ["/saved", "/annotations", "/recomputes", "/logout", "/alerts/rules"])
def test_a_form_with_a_token_is_refused(lasting: Browsing, visited: str, route: str) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ORIGIN, **header(visited)}

    refused = lasting.response("POST", route, kind, "do=share&address=/&hours=1")

    assert refused.status_code in {303, 401, 403}
    assert refused.headers.get("location", "/login") in {"/login", "/"}
    assert len(lasting.asking.shares.kept) == 1
    assert lasting.response("POST", visited, kind, "").status_code == 405


def test_the_query_and_the_session_of_a_visitor_count_for_nothing(asking: Asking, path: str) -> None:
    browsing = Browsing(asking)
    plain = browsing.words(path)
    browsing.sign_in(OPERATOR_KEY)

    assert browsing.words(f"{path}?day=2026-11-14&q=x") == plain
    assert "Save or share" not in browsing.get(path)
    refused = browsing.response("GET", "/v1/stores", header(path))
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ({}, "en"),
        ({"Accept-Language": "sk, en;q=0.5"}, "sk"),
        ({"Accept-Language": "sk", "Cookie": "galatea_language=de; galatea_session=x"}, "de"),
        ({"Accept-Language": "sk", "Cookie": "galatea_language=xx"}, "sk"),
    ],
)
def test_a_shared_page_is_in_the_language_of_its_visitor(
    browsing: Browsing, path: str, headers: dict[str, str], spoken: str
) -> None:
    response = browsing.response("GET", path, headers)

    assert response.headers["content-language"] == spoken
    assert f'<html lang="{spoken}">' in response.text
    asked = queries(response.text)
    assert {browsing.response("GET", each, header(path)).status_code for each in asked} == {200}


def test_a_link_of_a_tenant_shows_its_stores_alone(browsing: Browsing, asking: Asking) -> None:
    key = asking.keys.make("acme")
    path = shared(asking, "/", key)

    page = browsing.get(path)

    assert "Of another" in page
    assert "Kosice" not in page
    assert all(browsing.response("GET", each, header(path)).status_code == 200 for each in queries(page))
    query = "/v1/metrics/net_sales?store=12&from=2026-11-21&to=2026-11-22&grain=day"
    assert browsing.response("GET", query, header(path)).status_code == 403


def test_a_store_that_went_to_another_tenant_is_not_shown_any_more(world: World, asking: Asking, path: str) -> None:
    browsing = Browsing(asking)
    asked = queries(browsing.get(path))
    world.stores["12"] = Store(id="12", timezone="Europe/Bratislava", name="Kosice", tenant="acme")
    world.stores["13"] = Store(id="13", timezone="UTC")  # the registry has another version by its number of stores

    page = browsing.get(path, status=404)

    assert "Kosice" not in page
    assert browsing.response("GET", asked[0], header(path)).status_code == 404


def test_another_process_answers_the_script_too(asking: Asking, path: str) -> None:
    asked = queries(Browsing(asking).get(path))
    other = Browsing(Asking(asking.world, beside=asking))

    assert {other.response("GET", each, header(path)).status_code for each in asked} == {200}


def test_a_process_that_does_not_know_the_queries_renders_the_page_once_for_all(
    asking: Asking, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = queries(Browsing(asking).get(path))
    other = Asking(asking.world, beside=asking)
    rendered: list[str] = []
    render = SharedPages.page

    async def page(self: SharedPages, of: Scope, link: ShareLink) -> Response:
        rendered.append(link.id)
        await asyncio.sleep(0)
        return await render(self, of, link)

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(other.app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=header(path)) as client:
            return [each.status_code for each in await asyncio.gather(*map(client.get, asked * 3))]

    monkeypatch.setattr(SharedPages, "page", page)

    assert len(asked) * 3 > LIMITS.requests_per_key
    assert set(asyncio.run(ask())) == {200}
    assert len(rendered) == 1


def test_an_expired_link_says_so(browsing: Browsing, path: str) -> None:
    asked = queries(browsing.get(path))[0]
    browsing.asking.world.pass_time(browsing.asking.world.now() + timedelta(hours=24))

    page = browsing.words(path, status=410)

    assert "has expired" in page
    assert "Kosice" not in page
    assert browsing.response("GET", asked, header(path)).status_code == 410


def test_a_revoked_link_says_so(browsing: Browsing, path: str) -> None:
    asked = queries(browsing.get(path))[0]
    [id_] = browsing.asking.shares.kept
    browsing.asking.response(f"{SHARES}/{id_}", method="DELETE", key=OPERATOR_KEY)

    page = browsing.get(path, status=410)

    assert "was revoked" in page
    assert 'href="/' not in page.partition("<body>")[2]
    assert browsing.response("GET", asked, header(path)).status_code == 410


def test_the_frame_of_a_link_says_that_it_has_ended(asking: Asking) -> None:
    browsing, framed = Browsing(asking), shared(asking, "/stores/12", origin=EMBEDDER)
    asking.world.pass_time(asking.world.now() + timedelta(hours=24))

    ended = browsing.response("GET", framed)

    assert (ended.status_code, "has expired" in ended.text) == (410, True)
    assert f"frame-ancestors {EMBEDDER};" in ended.headers["content-security-policy"]
    assert "x-frame-options" not in ended.headers
    asking.app.state.saved.shares.origins = ()
    assert browsing.response("GET", framed).headers["x-frame-options"] == "DENY"


def test_every_error_of_a_shared_page_is_guarded_as_the_page_is(asking: Asking, path: str) -> None:
    browsing = Browsing(asking)
    browsing.get(path)
    authenticator = asking.app.state.authenticator
    refused: list[httpx.Response] = []

    object.__setattr__(authenticator, "rates", RateLimiter(1, 1, shared=1))
    refused.extend(browsing.response("GET", path) for _ in range(2))
    object.__setattr__(authenticator, "rates", RateLimiter(9, 9, shared=9))
    object.__setattr__(authenticator, "concurrency", ConcurrencyLimiter(1, max_shared=0))
    refused.append(browsing.response("GET", path))
    asking.shares.is_away = True
    refused.append(browsing.response("GET", f"/shared/{'x' * 43}"))
    asking.app.state.saved = None
    refused.append(browsing.response("GET", path))

    assert [each.status_code for each in refused] == [200, 429, 429, 503, 404]
    for each in refused[1:]:
        assert "This cannot be shown" in each.text
        assert "<form" not in each.text
        assert each.headers["referrer-policy"] == "no-referrer"
        assert each.headers["cache-control"] == "no-store"
        assert each.headers["x-robots-tag"] == "noindex, nofollow"
        assert "form-action 'none'" in each.headers["content-security-policy"]
    assert [each.headers.get("retry-after") for each in refused[1:]] == ["1", "1", "2", None]


@pytest.mark.parametrize("token", ["x" * 43, "x", "%00", "x" * 5000])
def test_an_unknown_link_says_so(browsing: Browsing, token: str) -> None:
    assert "There is no such share link" in browsing.words(f"/shared/{token}", status=404)
    assert browsing.response("GET", "/v1/stores", {"Authorization": f"Share {token}"}).status_code in {404, 429}


def test_guesses_are_limited(browsing: Browsing, path: str) -> None:
    stopped = LookupThrottle("share links", WRONG_TOKENS_PER_MINUTE, lambda: 0.0)
    browsing.asking.app.state.saved.shares._lookups = stopped  # noqa: SLF001 - the clock goes on whenever it is read
    browsing.get(path)
    statuses = [
        browsing.response("GET", f"/shared/{number:043d}").status_code for number in range(WRONG_TOKENS_PER_MINUTE + 1)
    ]

    assert statuses == [404] * WRONG_TOKENS_PER_MINUTE + [429]
    assert browsing.response("GET", "/v1/stores", header(f"/shared/{'y' * 43}")).status_code == 429
    assert "Kosice" in browsing.get(path)


def test_only_a_listed_origin_shows_a_page_in_a_frame(asking: Asking) -> None:
    browsing = Browsing(asking)
    alone, framed = shared(asking, "/stores/12"), shared(asking, "/stores/12", origin=EMBEDDER)

    headers = [browsing.response("GET", each).headers for each in (alone, framed)]

    assert "frame-ancestors 'none'" in headers[0]["content-security-policy"]
    assert headers[0]["x-frame-options"] == "DENY"
    assert f"frame-ancestors {EMBEDDER};" in headers[1]["content-security-policy"]
    assert "x-frame-options" not in headers[1]
    assert "form-action 'none'" in headers[1]["content-security-policy"]

    asking.app.state.saved.shares.origins = ()
    again = browsing.response("GET", framed).headers
    assert "frame-ancestors 'none'" in again["content-security-policy"]
    assert again["x-frame-options"] == "DENY"


def test_a_page_that_nobody_shared_is_shown_in_no_frame(browsing: Browsing) -> None:
    headers = browsing.response("GET", "/stores/12").headers

    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"


def test_ways_out_are_taken_out_of_any_page() -> None:
    page = (
        '<a class="skip" href="#main">Skip</a><nav><a href="/">All</a></nav><form method="post">\n<input>'
        '</form><h2><a href="/stores/1">One</a></h2><a class="brand" href="/"><svg/>G</a>'
        '<details class="data"><summary>Numbers of it</summary>\n</details><abbr>a</abbr>'
    )

    assert without_ways_out(page) == (
        '<a class="skip" href="#main">Skip</a><h2><span>One</span></h2><span class="brand"><svg/>G</span><abbr>a</abbr>'
    )
