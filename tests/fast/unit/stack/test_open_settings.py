"""REST can be read without a key by this machine alone, and is served under the names that settings say."""

from typing import Any

import pytest

from deploy.sections import ApiSettings, InvalidSettingsError
from deploy.services.api import say_who_reads
from deploy.settings import Settings

PROXY = {"api_proxies": "10.0.0.0/24"}
OPEN = [
    ({"api_host": "10.0.0.7", **PROXY}, "GALATEA_API_HOST"),
    ({"api_host": "0.0.0.0", **PROXY}, "GALATEA_API_HOST"),  # noqa: S104 - what is tested
    (PROXY, "GALATEA_API_PROXIES"),
    ({"api_hosts": "galatea.example"}, "GALATEA_API_HOSTS"),
    ({"api_url": "https://galatea.example"}, "GALATEA_API_URL"),
]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_while_this_machine_alone_reaches_rest_it_reads_without_a_key(host: str) -> None:
    api = Settings(api_host=host).api

    assert (api.opened_by, api.tenant_without_key) == ("", "default")


@pytest.mark.parametrize(("settings", "opened_by"), OPEN)
def test_nobody_reads_without_a_key_as_soon_as_others_reach_rest(settings: dict[str, Any], opened_by: str) -> None:
    api = Settings(**settings).api

    assert (api.opened_by, api.tenant_without_key) == (opened_by, "")


@pytest.mark.parametrize(("settings", "opened_by"), OPEN)
def test_a_tenant_that_is_meant_to_be_read_so_is_refused_then(settings: dict[str, Any], opened_by: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"GALATEA_ANONYMOUS_TENANT must be empty with {opened_by}:"):
        Settings(**settings, anonymous_tenant="shown")

    assert Settings(**settings, anonymous_tenant="").api.tenant_without_key == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ["readable_without_key", "default", "clients on this machine", "'localhost', '127.0.0.1'"]),
        ({"anonymous_tenant": ""}, ["needs_keys", "GALATEA_ANONYMOUS_TENANT is empty"]),
        (PROXY | {"api_hosts": "galatea.example"}, ["needs_keys", "GALATEA_API_PROXIES lets", "'galatea.example'"]),
    ],
)
def test_it_is_said_at_the_start(settings: dict[str, Any], said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_who_reads(Settings(**settings).api)

    printed = "".join(capsys.readouterr())
    assert [each for each in said if each not in printed] == []


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["127.0.0.1"]),
        ({"api_host": "10.0.0.7", **PROXY}, ["10.0.0.7"]),
        ({"api_host": "0.0.0.0", **PROXY}, []),  # noqa: S104 - what is tested
        ({"api_hosts": "galatea.example, *.shop.example"}, ["galatea.example", "*.shop.example", "127.0.0.1"]),
        ({"api_url": "https://galatea.example:8443/"}, ["127.0.0.1", "galatea.example"]),
    ],
)
def test_it_is_served_where_it_listens_where_commands_reach_it_and_as_listed(
    settings: dict[str, Any], names: list[str]
) -> None:
    assert Settings(**settings).api.served_names == names


@pytest.mark.parametrize("hosts", ["galatea.example:8000", "https://galatea.example", "*", "a b", "*.*.example", "-a"])
def test_what_is_no_name_is_refused(hosts: str) -> None:
    with pytest.raises(InvalidSettingsError, match="GALATEA_API_HOSTS"):
        Settings(api_hosts=hosts)


def test_addresses_can_be_listed() -> None:
    assert ApiSettings(hosts="10.0.0.7, 2001:db8::7").served_names[:2] == ["10.0.0.7", "2001:db8::7"]
