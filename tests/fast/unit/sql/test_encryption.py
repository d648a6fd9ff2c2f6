"""The SQL component over TLS: no password without it, and nothing that was sent before it counts."""

import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.secured_servers import HOST, Authority
from tests.support.sql_server import PATIENCE_SECONDS, RunningServer, message, running_server, startup

SSL_REQUEST, GSS_REQUEST = (message(b"", struct.pack("!i", code)) for code in (80877103, 80877104))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Iterator[RunningServer]:
    with running_server(tls=authority.issue("server").server()) as running:
        yield running


def test_a_client_that_checks_the_certificate_is_answered(server: RunningServer, authority: Authority) -> None:
    with server.connect(sslmode="verify-full", sslrootcert=authority.file) as connection:
        rows = connection.execute("series 20000").fetchall()

        assert len(rows) == 20_000
        assert connection.pgconn.ssl_in_use


def test_a_client_that_trusts_another_authority_leaves(server: RunningServer, tmp_path: Path) -> None:
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        server.connect(sslmode="verify-full", sslrootcert=Authority(tmp_path, "other").file)


def test_a_login_without_encryption_is_refused_before_the_password(server: RunningServer) -> None:
    with server.raw() as client:
        client.send(startup())
        kind, body = client.receive()

    assert kind == b"E"
    assert b"28000" in body
    assert b"sslmode=verify-full" in body


def test_encryption_by_gss_is_declined_and_tls_can_follow(server: RunningServer) -> None:
    with server.raw() as client:
        client.send(GSS_REQUEST)
        first = client.byte()
        client.send(SSL_REQUEST)

        assert (first, client.byte()) == (b"N", b"S")


def test_what_was_sent_before_the_handshake_is_not_taken_for_the_clients(server: RunningServer) -> None:
    with server.raw() as client:
        client.send(SSL_REQUEST + startup("beta"))
        kind, body = client.receive()

    assert kind == b"E"
    assert b"08P01" in body


def test_bytes_that_are_no_handshake_end_their_connection_only(server: RunningServer, authority: Authority) -> None:
    with server.raw() as client:
        client.send(SSL_REQUEST)
        assert client.byte() == b"S"
        client.send(b"x" * 100)
        client.socket.settimeout(PATIENCE_SECONDS)
        while client.socket.recv(4096):
            continue

    with server.connect(sslmode="verify-full", sslrootcert=authority.file) as connection:
        assert connection.execute("series 1").fetchall()


def test_a_statement_can_be_cancelled_over_tls(server: RunningServer, authority: Authority) -> None:
    with server.connect(sslmode="verify-full", sslrootcert=authority.file) as connection:
        session = server.scripted()
        connection.execute("series 1")

        def cancel() -> None:
            assert session.sleeping.wait(PATIENCE_SECONDS)
            connection.cancel_safe(timeout=PATIENCE_SECONDS)

        beside = threading.Thread(target=cancel)
        beside.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("sleep")
        beside.join()


def test_a_server_without_a_certificate_offers_none() -> None:
    with running_server() as running, running.raw() as client:
        client.send(SSL_REQUEST)

        assert client.byte() == b"N"
        with pytest.raises(psycopg.OperationalError, match="server does not support SSL"):
            running.connect(sslmode="require")


def test_a_handshake_has_the_name_of_the_host(server: RunningServer, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    with server.raw() as client:
        client.send(SSL_REQUEST)
        assert client.byte() == b"S"
        with context.wrap_socket(client.socket, server_hostname=HOST) as encrypted:
            assert encrypted.version() in ("TLSv1.2", "TLSv1.3")
