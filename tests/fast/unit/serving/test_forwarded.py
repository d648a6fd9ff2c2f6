"""Nothing is shown without a key to whoever comes through a proxy."""

from ipaddress import ip_network
from typing import Any

import httpx
import pytest

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, listening

NET = "/v1/metrics/net_sales"
DAY = {"store": "12", "range": "today", "by": "total"}
HEADERS = [
    {"Forwarded": "for=203.0.113.9"},
    {"X-Forwarded-For": "203.0.113.9"},
    {"X-Forwarded-Host": "galatea.example"},
    {"X-Real-IP": "203.0.113.9"},
    {"Via": "1.1 proxy"},
]


@pytest.fixture
def asking() -> Asking:
    world = World(Store(id="12", timezone="UTC"))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store="12"), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


@pytest.mark.parametrize("headers", HEADERS, ids=lambda each: next(iter(each)))
def test_a_request_through_a_proxy_needs_a_key(asking: Asking, headers: dict[str, str]) -> None:
    key = {"Authorization": f"Bearer {asking.keys.make('default')}"}
    for _ in range(2):  # the second answer is cached
        assert asking.response(NET, **DAY).status_code == 200

    refused = asking.request("GET", NET, params=DAY, headers=headers)

    assert refused.status_code == 401
    assert refused.json()["code"] == "key_missing"
    assert asking.request("GET", NET, params=DAY, headers=headers | key).status_code == 200


def test_a_page_through_a_proxy_needs_a_session(asking: Asking) -> None:
    browsing, headers = Browsing(asking), {"X-Forwarded-For": "203.0.113.9"}

    assert browsing.response("GET", "/", headers=headers).status_code == 401
    assert browsing.sign_in(asking.keys.make("default")).status_code == 303
    assert browsing.response("GET", "/", headers=headers).status_code == 200


@pytest.mark.parametrize("proxies", [(), ("10.0.0.0/8", "::/0"), ("127.0.0.0/8",)])
def test_whether_the_settings_name_the_proxy_makes_no_difference(asking: Asking, proxies: Any) -> None:
    with listening(asking.app, proxies=[ip_network(each) for each in proxies]) as url:
        response = httpx.get(url + NET, params=DAY, headers={"X-Forwarded-For": "203.0.113.9"}, trust_env=False)
        direct = httpx.get(url + NET, params=DAY, trust_env=False)

    assert (response.status_code, direct.status_code) == (401, 200)
