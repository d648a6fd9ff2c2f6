"""Certificates, servers with TLS, and a Kafka broker that lets nobody in, all within the process of a test."""

import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
DAY = timedelta(days=1)
ILLEGAL_CREDENTIALS, UNSUPPORTED_MECHANISM = 58, 33
_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE = 18, 17, 36
_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)
"""Python 3.13 trusts an authority only if it says so."""
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
        self._folder, self._name = folder, _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(self._name, self._name, self._key, DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_SIGNS, critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.file = _written(folder / f"{name}.pem", _pem(made.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        host: str = HOST,
        lasts: timedelta = DAY,
        form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
        password: str = "",
    ) -> Issued:
        """A certificate for that host. `lasts`: from now; negative for one that has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(_name(name), self._name, key, lasts)
        alternative: x509.GeneralName = x509.DNSName(host)
        with suppress(ValueError):
            alternative = x509.IPAddress(ip_address(host))
        made = made.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(signed_by, critical=False)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        text = key.private_bytes(serialization.Encoding.PEM, form, encryption)
        return Issued(
            _written(self._folder / f"{name}.pem", b"subject=/CN=x\n" + _pem(made.sign(self._key, hashes.SHA256()))),
            _written(self._folder / f"{name}.key", text),
        )


def _name(of: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, of)])


def _builder(
    of: x509.Name, by: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(of).issuer_name(by).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - 2 * DAY).not_valid_after(now + lasts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


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
