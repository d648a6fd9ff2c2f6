"""Certificates of receivers: one that is good, and those that are not."""

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


class Authority:
    """Signs. `trust`: for whoever calls and trusts it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Galatea's tests")
        made = _builder(self._name, self._name, self._key.public_key(), NOW - DAY, NOW + DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = made.sign(self._key, hashes.SHA256())

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=_pem(self._certificate).decode())
        return context

    def serving(self, host: str, *, is_expired: bool = False, is_own: bool = False) -> ssl.SSLContext:
        """For a receiver of that name. `is_own`: signed by nobody but itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = NOW - timedelta(hours=1) if is_expired else NOW + DAY
        issuer, signs = (_name(host), key) if is_own else (self._name, self._key)
        made = _builder(_name(host), issuer, key.public_key(), NOW - DAY, until)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return _loaded(made.sign(signs, hashes.SHA256()), key)


@cache
def authority() -> Authority:
    """One for all tests."""
    return Authority()


def _name(of: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, of)])


def _builder(
    of: x509.Name, by: x509.Name, key: ec.EllipticCurvePublicKey, since: datetime, until: datetime
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(of).issuer_name(by).public_key(key)
    return made.serial_number(x509.random_serial_number()).not_valid_before(since).not_valid_after(until)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _loaded(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with TemporaryDirectory() as folder:
        file = Path(folder, "both.pem")
        file.write_bytes(text + _pem(certificate))
        context.load_cert_chain(file)
    return context
