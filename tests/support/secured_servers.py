"""Certificates, servers with TLS, and a Kafka broker that lets nobody in, all within the process of a test."""

import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import NamedTuple

from cryptography.hazmat.primitives import serialization

from deploy.local import authority

HOST = "127.0.0.1"
DAY = timedelta(days=1)
ILLEGAL_CREDENTIALS, UNSUPPORTED_MECHANISM = 58, 33
_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE = 18, 17, 36
Handler = Callable[[socket], None]


class Issued(NamedTuple):
    """Files of a certificate and of its key."""

    certificate: str
    key: str

    def server(self, clients_of: str = "") -> ssl.SSLContext:
        """For a server. `clients_of`: the authority of the certificates that it asks clients for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if clients_of:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of)
        return context


class Authority:
    """Issues certificates into a folder. `file`: its own certificate."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder, self._own = folder, authority.Authority.new(name, DAY)
        self.file = _written(folder / f"{name}.pem", self._own.own.certificate_text.encode())

    def issue(
        self,
        name: str,
        host: str = HOST,
        lasts: timedelta = DAY,
        form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
        password: str = "",
    ) -> Issued:
        """A certificate for that host. `lasts`: from now; negative for one that has expired."""
        made = self._own.issue(name, [host], lasts, is_client=True)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        text = made.key.private_bytes(serialization.Encoding.PEM, form, encryption)
        return Issued(
            _written(self._folder / f"{name}.pem", b"subject=/CN=x\n" + made.certificate_text.encode()),
            _written(self._folder / f"{name}.key", text),
        )


def _written(file: Path, text: bytes) -> str:
    file.write_bytes(text)
    file.chmod(0o600)
    return str(file)


def says_nothing(connection: socket) -> None:
    """Accept, and wait until the client leaves."""
    with suppress(OSError):
        while connection.recv(1024):
            continue


@contextmanager
def serving(context: ssl.SSLContext | None = None, handler: Handler = says_nothing) -> Iterator[int]:
    """Serve on loopback, over TLS if there is a context; yields the port."""
    with create_server((HOST, 0)) as server:

        def serve(connection: socket) -> None:
            with suppress(OSError, EOFError), connection:
                if context is None:
                    handler(connection)
                else:
                    with context.wrap_socket(connection, server_side=True) as encrypted:
                        handler(encrypted)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

        Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


def rejecting(error: int = ILLEGAL_CREDENTIALS, text: str = "Invalid username or password") -> Handler:
    """A Kafka broker that answers every login with that error; it knows as much of the protocol as that takes."""

    def handle(connection: socket) -> None:
        while True:
            [size] = struct.unpack(">i", _read(connection, 4))
            api, version, correlation = struct.unpack(">hhi", _read(connection, size)[:8])
            body = struct.pack(">i", correlation) + _answer(api, version, error, text.encode())
            connection.sendall(struct.pack(">i", len(body)) + body)

    return handle


def _answer(api: int, version: int, error: int, text: bytes) -> bytes:
    if api == _API_VERSIONS:
        known = [(_API_VERSIONS, 0, 0), (_HANDSHAKE, 0, 1), (_AUTHENTICATE, 0, 1), (3, 0, 4)]
        listed = b"".join(struct.pack(">hhh", *each) for each in known)
        return struct.pack(">hi", 35 if version else 0, len(known)) + listed
    if api == _HANDSHAKE:
        refused = error if error == UNSUPPORTED_MECHANISM else 0
        return struct.pack(">hih", refused, 1, len(b"PLAIN")) + b"PLAIN"
    if api == _AUTHENTICATE:
        lifetime = struct.pack(">q", 0) if version else b""
        return struct.pack(">hh", error, len(text)) + text + struct.pack(">i", 0) + lifetime
    raise EOFError


def _read(connection: socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        read = connection.recv(size - len(found))
        if not read:
            raise EOFError
        found += read
    return found
