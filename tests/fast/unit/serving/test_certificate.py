"""The REST interface over TLS and behind a proxy: who asks, how, and a certificate that is renewed while it serves."""

import os
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from cryptography import x509
from prometheus_client import REGISTRY

from deploy.secret_files import server_certificate
from deploy.settings import Settings
from galatea.client import Client
from galatea.client.errors import InvalidResponseError
from serving_layer.http.certificate import RELOADS, ServerCertificate
from serving_layer.http.connections import ConnectionLimits
from tests.support.raw_http import wire
from tests.support.secured_servers import HOST, Authority, Issued
from tests.support.world_clients import listening


async def says_who_asks(scope: Any, _receive: Any, send: Any) -> None:
    """An ASGI application."""
    text = f"{scope['scheme']} {scope['client'][0]}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def served(issued: Issued) -> ServerCertificate:
    return ServerCertificate(issued.certificate, issued.key)


def serial_shown(url: str, authority: Authority) -> int:
    place = urlsplit(url)
    context = ssl.create_default_context(cafile=authority.file)
    with (
        socket.create_connection((HOST, place.port or 0)) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as encrypted,
    ):
        found = encrypted.getpeercert() or {}
    return int(str(found["serialNumber"]), 16)


def test_answers_are_encrypted_for_clients_that_trust_the_authority(authority: Authority) -> None:
    with listening(says_who_asks, certificate=served(authority.issue("server"))) as url:
        trusted = httpx.get(url, verify=ssl.create_default_context(cafile=authority.file), trust_env=False)

        assert trusted.text == f"https {HOST}"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(url, trust_env=False)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(url.replace("https", "http"), trust_env=False)


def test_protocols_older_than_tls_1_2_are_refused(authority: Authority) -> None:
    certificate = served(authority.issue("server"))

    assert certificate.context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_silent_connections_count_before_their_handshake_and_end_soon(authority: Authority) -> None:
    limits = ConnectionLimits(connections=3, receive_seconds=1.0)
    with listening(says_who_asks, limits, served(authority.issue("server"))) as url, ExitStack() as open_:
        silent = [open_.enter_context(wire(url)) for _ in range(5)]
        for each in silent[:2]:  # more than there may be
            each.listen(1)
        too_many = [each.is_closed for each in silent]

        trusted = httpx.get(url, verify=ssl.create_default_context(cafile=authority.file), trust_env=False)
        for each in silent[2:]:
            each.listen(1)

    assert too_many == [True, True, False, False, False]
    assert trusted.text == f"https {HOST}"
    assert all(each.is_closed and not each.heard for each in silent)


def test_a_large_body_that_comes_with_the_handshake_is_read_to_its_end(authority: Authority) -> None:
    async def counts(scope: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        await says_who_asks({**scope, "scheme": str(size)}, receive, send)

    with listening(counts, certificate=served(authority.issue("server"))) as url:
        trusted = ssl.create_default_context(cafile=authority.file)
        for size in (0, 1, 300_000, 3_000_000):
            answer = httpx.post(url, content=b"x" * size, verify=trusted, trust_env=False)
            assert answer.text == f"{size} {HOST}"


def encrypted(url: str, authority: Authority, open_: ExitStack) -> ssl.SSLSocket:
    """A client that has done its handshake, and neither reads nor sends."""
    plain = open_.enter_context(socket.create_connection((HOST, urlsplit(url).port or 0), timeout=10))
    context = ssl.create_default_context(cafile=authority.file)
    return open_.enter_context(context.wrap_socket(plain, server_hostname=HOST))


def test_of_clients_that_read_nothing_the_ones_that_wait_longest_end(authority: Authority) -> None:
    certificate = served(authority.issue("server"))
    with listening(says_who_asks, ConnectionLimits(connections=3), certificate) as url, ExitStack() as open_:
        clients = [encrypted(url, authority, open_) for _ in range(6)]
        for each in clients[:3]:
            with suppress(ssl.SSLError):
                while each.recv(1000):
                    continue

        clients[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            clients[-1].recv(1000)


def test_a_server_that_ends_accepts_nothing_more_and_ends_silent_connections(authority: Authority) -> None:
    began = time.monotonic()
    with ExitStack() as silent:
        with listening(says_who_asks, certificate=served(authority.issue("server"))) as url:
            for _ in range(3):
                silent.enter_context(wire(url))
            encrypted(url, authority, silent)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, urlsplit(url).port or 0), timeout=5)

    assert time.monotonic() - began < ConnectionLimits().receive_seconds


def test_a_renewed_certificate_is_shown_without_a_restart(authority: Authority) -> None:
    certificate = served(authority.issue("server"))
    with listening(says_who_asks, certificate=certificate) as url:
        first = serial_shown(url, authority)
        certificate.reload()
        unchanged = serial_shown(url, authority)
        renewed = authority.issue("server", lasts=timedelta(days=40))
        certificate.reload()

        ends = x509.load_pem_x509_certificate(Path(renewed.certificate).read_bytes()).not_valid_after_utc
        assert REGISTRY.get_sample_value("galatea_certificate_expires_seconds") == ends.timestamp()
        assert unchanged == first
        assert serial_shown(url, authority) != first


@pytest.mark.parametrize("name", ["server.pem", "server.key"])
def test_half_of_a_renewed_pair_changes_nothing_until_the_other_half_is_there(
    authority: Authority, tmp_path: Path, name: str
) -> None:
    certificate = served(authority.issue("server"))
    other = authority.issue("other")
    halves = {"server.pem": other.certificate, "server.key": other.key}
    with listening(says_who_asks, certificate=certificate) as url:
        first = serial_shown(url, authority)
        os.replace(halves.pop(name), tmp_path / name)  # noqa: PTH105 - as a deployment does it
        certificate.reload()
        kept = serial_shown(url, authority)
        [(rest, file)] = halves.items()
        os.replace(file, tmp_path / rest)  # noqa: PTH105 - likewise
        certificate.reload()

        assert kept == first
        assert serial_shown(url, authority) != first


def test_a_certificate_that_is_missing_for_a_moment_is_kept(authority: Authority, tmp_path: Path) -> None:
    certificate = served(authority.issue("server"))
    with listening(says_who_asks, certificate=certificate) as url:
        first = serial_shown(url, authority)
        (tmp_path / "server.pem").unlink()
        certificate.reload()

        assert serial_shown(url, authority) == first


def test_a_valid_certificate_is_not_replaced_by_an_expired_one(authority: Authority) -> None:
    certificate = served(authority.issue("server"))
    with listening(says_who_asks, certificate=certificate) as url:
        first = serial_shown(url, authority)
        authority.issue("server", lasts=timedelta(0))
        certificate.reload()
        kept = serial_shown(url, authority)
        authority.issue("server")
        certificate.reload()

        assert kept == first
        assert serial_shown(url, authority) != first


def test_the_client_trusts_the_authority_of_a_file(authority: Authority) -> None:
    with (
        listening(says_who_asks, certificate=served(authority.issue("server"))) as url,
        Client(url, ca_file=authority.file) as client,
        pytest.raises(InvalidResponseError),
    ):
        client.freshness()  # it was answered, with a text
    with pytest.raises(OSError, match="No such file"):
        Client(url, ca_file=Path(authority.file).with_name("none.pem"))


FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


@pytest.mark.parametrize(
    ("proxies", "said"),
    [
        ([], f"http {HOST}"),
        ([ip_network("10.0.0.0/8")], f"http {HOST}"),
        ([ip_network("127.0.0.0/8")], "https 203.0.113.9"),
    ],
)
def test_only_named_proxies_say_who_asks(proxies: Any, said: str) -> None:
    with listening(says_who_asks, proxies=proxies) as url:
        assert httpx.get(url, headers=FORWARDED, trust_env=False).text == said


def test_a_client_cannot_pretend_to_be_another_through_a_proxy() -> None:
    with listening(says_who_asks, proxies=[ip_network("127.0.0.0/8")]) as url:
        forged = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}  # the proxy adds the address that it saw

        assert httpx.get(url, headers=forged, trust_env=False).text == "http 203.0.113.9"


def test_all_servers_of_a_process_have_one_certificate_whose_renewal_is_counted_once(
    authority: Authority, tmp_path: Path
) -> None:
    issued = authority.issue("server")
    settings = Settings(home=tmp_path, tls_certificate_file=issued.certificate, tls_key_file=issued.key)
    of_rest, of_metrics = (server_certificate(settings.tls) for _ in range(2))
    assert of_rest is not None
    assert of_metrics is not None
    before = RELOADS.labels("yes")._value.get()  # noqa: SLF001 - prometheus_client shows it in texts alone

    os.utime(issued.certificate, ns=(1, 1))
    of_rest.reload()
    of_metrics.reload()

    assert RELOADS.labels("yes")._value.get() == before + 1  # noqa: SLF001 - likewise
