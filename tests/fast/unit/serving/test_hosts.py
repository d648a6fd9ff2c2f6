"""Requests are answered under the names of the API alone: a page of another site cannot make itself one of them."""

import httpx
import pytest

from serving_layer.http.hosts import AllowedHosts
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import listening

NET = "/v1/metrics"
SERVED = AllowedHosts.of(["Galatea.example", "*.shop.example", "10.0.0.7", "[2001:db8::7]"])
OURS = ["localhost", "LOCALHOST:8000", "a.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]:8000", "[0:0:0:0:0:0:0:1]"]
LISTED = ["galatea.example", "GALATEA.example.:8000", "a.shop.example", "a.b.shop.example:1", "10.0.0.7:8000"]
LISTED_V6 = ["[2001:db8::7]:8000", "[2001:DB8:0::7]"]
OTHERS = [
    "evil.example",
    "galatea.example.evil.example",
    "evilgalatea.example",
    "shop.example",
    "evilshop.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.8",
    "[2001:db8::8]",
    "[::1",
    "0.0.0.0",  # noqa: S104 - a name that is refused
]


@pytest.mark.parametrize("host", [*OURS, *LISTED, *LISTED_V6])
def test_names_of_this_machine_and_listed_ones_are_allowed_whatever_the_port(host: str) -> None:
    assert SERVED.allow(host)


@pytest.mark.parametrize("host", [*OTHERS, "", ":8000", "[]", "."])
def test_every_other_name_is_not(host: str) -> None:
    assert not SERVED.allow(host)


@pytest.mark.parametrize("host", [*LISTED, *LISTED_V6, *OTHERS])
def test_only_this_machine_has_names_that_nobody_lists(host: str) -> None:
    assert not AllowedHosts.of([]).allow(host)


@pytest.fixture
def asking() -> Asking:
    return Asking(World(), hosts=AllowedHosts.of(["galatea.example"]))


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", NET), ("GET", "/"), ("GET", "/login"), ("POST", "/login"), ("GET", "/static/live.js"), ("GET", "/none")],
)
def test_a_request_for_another_name_is_refused_and_the_setting_is_named(asking: Asking, method: str, path: str) -> None:
    refused = asking.request(method, path, headers={"Host": "evil.example:8000", "Accept": "text/html"})

    assert refused.status_code == 421
    assert refused.json()["code"] == "host_not_allowed"
    assert "`evil.example`" in refused.json()["title"]
    assert "GALATEA_API_HOSTS" in refused.json()["detail"]
    assert "set-cookie" not in refused.headers


def test_a_key_does_not_help(asking: Asking) -> None:
    headers = {"Host": "evil.example", "Authorization": f"Bearer {OPERATOR_KEY}"}

    assert asking.request("GET", NET, headers=headers).status_code == 421


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_are_answered_under_every_name(asking: Asking, path: str) -> None:
    assert asking.request("GET", path, headers={"Host": "10.1.2.3:8000"}).status_code == 200


def test_it_is_answered_under_its_own_names(asking: Asking) -> None:
    for host in ("localhost:8000", "galatea.example"):
        assert asking.request("GET", NET, headers={"Host": host}).status_code == 200


def test_a_connection_goes_on_after_a_refused_form(asking: Asking) -> None:
    with listening(asking.app) as url, httpx.Client(base_url=url, trust_env=False) as client:
        refused = client.post("/login", headers={"Host": "evil.example"}, data={"key": "x" * 2000})
        answered = client.get("/healthz")

    assert (refused.status_code, answered.status_code) == (421, 200)
