"""Which addresses a tenant may name, and that the secret is in no log."""

from ipaddress import ip_network

import pytest

from master_dataset.errors import RequestError
from master_dataset.webhooks.endpoint import Endpoint, check_url, new_secret

BAD = [
    "",
    "shop.example/alerts",
    "http://shop.example/",
    "ftp://shop.example/",
    "https:///alerts",
    "https://",
    "https://name:word@shop.example/",
    "https://shop.example/#part",
    "https://shop.example:0/",
    "https://shop.example:99999/",
    "https://shop.example/a b",
    "https://shop.example/\r\nHost: other",
    "https://shop.exämple/",
    "https://[::1/",
    f"https://shop.example/{'a' * 2000}",
    "javascript:alert(1)",
    "https://shop..example/",
    f"https://{'a' * 64}.example/",
    "file:///etc/passwd",
    "https://127.0.0.1/",
    "https://localhost:8000/",
    "https://api.localhost/",
    "https://10.0.0.7/",
    "https://169.254.169.254/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.7]/",
    "https://[64:ff9b::a00:7]/",
]


@pytest.mark.parametrize("url", BAD)
def test_what_cannot_be_called_is_refused_with_the_field_and_an_example(url: str) -> None:
    with pytest.raises(RequestError) as refused:
        check_url(url, [])

    assert "`url`" in refused.value.message
    assert refused.value.do == "https://host/path"


@pytest.mark.parametrize(
    "url", ["https://shop.example", "https://shop.example:8443/alerts?store=1", "https://[2606::1]/"]
)
def test_an_address_of_the_web_is_taken(url: str) -> None:
    check_url(url, [])


def test_without_encryption_only_where_the_operator_has_networks_of_their_own() -> None:
    allowed = [ip_network("10.0.0.0/8"), ip_network("127.0.0.0/8")]

    for url in ("http://10.0.0.7/alerts", "http://hooks.shop.example/", "https://localhost/"):
        check_url(url, allowed)
    with pytest.raises(RequestError, match="not public"):
        check_url("https://192.168.0.7/", allowed)


def test_a_secret_is_long_and_not_shown() -> None:
    secret = new_secret()

    assert len(secret) >= 43
    assert secret not in repr(Endpoint("e", "acme", "https://shop.example/", secret))
