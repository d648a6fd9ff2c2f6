"""An authority that issues certificates: that of a secured local stack. Imported where one is needed only."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple, Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BEFORE = timedelta(days=2)
"""How long a certificate is valid already when it is issued: clocks differ."""
Key = ec.EllipticCurvePrivateKey


class Issued(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: Key

    @property
    def certificate_text(self) -> str:
        """The certificate, PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_text(self) -> str:
        """The key, PEM, not encrypted, in the format that Java reads."""
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


class Authority:
    """Issues certificates for servers."""

    def __init__(self, own: Issued) -> None:
        """`own`: its certificate and key."""
        self.own = own

    @classmethod
    def new(cls, name: str, lasts: timedelta) -> Self:
        """Make an authority."""
        key, named = _new_key(), _named(name)
        public = key.public_key()
        made = (
            _begun(named, named, public, lasts)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(Issued(made, key))

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Self:
        """Read one from its files. ValueError or TypeError if they have something else."""
        found = serialization.load_pem_private_key(key.read_bytes(), None)
        if not isinstance(found, Key):
            raise TypeError(f"`{key}` has another kind of key than those that are made here")
        return cls(Issued(x509.load_pem_x509_certificate(certificate.read_bytes()), found))

    def issue(self, name: str, hosts: Sequence[str], lasts: timedelta, *, is_client: bool = False) -> Issued:
        """Issue a certificate.

        Args:
            name: Its common name.
            hosts: Names and addresses that clients may reach the server by.
            lasts: From now; negative for one that has expired.
            is_client: Whether the server also proves by it who it is where it is a client, as nodes among themselves.
        """
        key, authority = _new_key(), self.own.certificate
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else [])]
        signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.own.key.public_key())
        made = (
            _begun(_named(name), authority.subject, key.public_key(), lasts)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName([_place(host) for host in hosts]), critical=False)
            .add_extension(signed_by, critical=False)
            .sign(self.own.key, hashes.SHA256())
        )
        return Issued(made, key)


def times_of(certificate: Path) -> tuple[datetime, datetime]:
    """Return from when to when a certificate is valid. ValueError if it is none."""
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    return found.not_valid_before_utc, found.not_valid_after_utc


def end_if_issued(authority: Path, name: str, certificate: Path, key: Path) -> datetime | None:
    """Return when a certificate ends; None if the authority has not issued it for that common name and key.

    None also if it has not begun: it was made while the clock was ahead.

    Args:
        authority: File with the certificate of the authority.
        name: The common name.
        certificate: File with the certificate, first.
        key: File with its private key; it may be the same.
    """
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        own = serialization.load_pem_private_key(key.read_bytes(), None)
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.read_bytes()))
    except (OSError, ValueError, TypeError, InvalidSignature):
        return None
    has_begun = found.not_valid_before_utc <= datetime.now(UTC)
    fits = has_begun and found.subject == _named(name) and found.public_key() == own.public_key()
    return found.not_valid_after_utc if fits else None


def _new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _place(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _begun(
    of: x509.Name, by: x509.Name, public: ec.EllipticCurvePublicKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(of).issuer_name(by).public_key(public)
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - _BEFORE).not_valid_after(now + lasts)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Python 3.13 trusts an authority only if it says that it signs certificates."""
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
