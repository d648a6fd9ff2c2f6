"""The secured local stack: an authority of its own, a user for each process, and what each of them may do.

`galatea up --secure` makes all of it once, in the folder `secure` of the home. Passwords are files that only their
owner can read; nothing is passed on a command line.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.nodes import HOSTS
from deploy.secret_files import write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

OPERATOR, BROKER = "operator", "broker"
"""Users that may do everything: commands on this machine, and the brokers among themselves."""
PROCESSES = ("archive", "speed", "alerts", "dispatcher", "api", "sql", "batch")
"""Users with rights of their own. Those of `batch` are for recomputes, whoever starts them."""
AUTHORITY_LASTS, SERVER_LASTS = timedelta(days=3650), timedelta(days=397)
RENEWED_BEFORE = timedelta(days=60)
"""A start that finds the certificate of the servers this close to its end issues another one."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Security:
    """The files of a secured home."""

    home: Path

    @property
    def folder(self) -> Path:
        """Folder of all of them, for its owner alone."""
        return self.home / "secure"

    @property
    def authority(self) -> Path:
        """Certificate of the authority, which clients trust."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """Certificate of all servers, and that of the authority."""
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        """Private key of that certificate."""
        return self.folder / "server.key"

    @property
    def key_and_certificate(self) -> Path:
        """Both in one file, as brokers and Cassandra read them."""
        return self.folder / "server-with-key.pem"

    @property
    def _authority_key(self) -> Path:
        return self.folder / "ca.key"

    def password_file(self, user: str) -> Path:
        """Return the file with the password of a user, for Kafka and for Cassandra."""
        return self.folder / f"{user}.password"

    def password(self, user: str) -> str:
        """Return the password of a user."""
        return self.password_file(user).read_text(encoding="utf-8").strip()

    def passwords(self) -> Mapping[str, str]:
        """Return the password of each process."""
        return {user: self.password(user) for user in PROCESSES}

    def prepare(self) -> None:
        """Make whatever is missing, and renew the certificate of the servers in time."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for user in (OPERATOR, BROKER, *PROCESSES):
            if not self.password_file(user).exists():
                write_private(self.password_file(user), secrets.token_urlsafe(32))
        if not self.authority.exists():
            self._make_authority()
        if not self.key_and_certificate.exists() or self._expires_soon():
            self._issue()

    def _expires_soon(self) -> bool:
        from cryptography import x509

        found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        return found.not_valid_after_utc < datetime.now(UTC) + RENEWED_BEFORE

    def _make_authority(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        key, name = _new_key(), _name("Galatea local authority")
        public = key.public_key()
        made = (
            _builder(name, name, public, AUTHORITY_LASTS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(self._authority_key, _key_text(key))
        write_private(self.authority, _certificate_text(made))

    def _issue(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.x509.oid import ExtendedKeyUsageOID

        authority = x509.load_pem_x509_certificate(self.authority.read_bytes())
        signing = serialization.load_pem_private_key(self._authority_key.read_bytes(), None)
        if not isinstance(signing, EllipticCurvePrivateKey):
            raise TypeError(f"`{self._authority_key}` is not the key that was written there")
        key = _new_key()
        public, names = (
            key.public_key(),
            [x509.DNSName("localhost"), *(x509.IPAddress(ip_address(each)) for each in HOSTS)],
        )
        both_ways = [
            ExtendedKeyUsageOID.SERVER_AUTH,
            ExtendedKeyUsageOID.CLIENT_AUTH,
        ]  # brokers and nodes are clients, too
        made = (
            _builder(_name(BROKER), authority.subject, public, SERVER_LASTS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)  # type: ignore[arg-type]  # of one of the kinds that sign
            .sign(signing, hashes.SHA256())
        )
        chain = _certificate_text(made) + self.authority.read_text(encoding="utf-8")
        write_private(self.key, _key_text(key))
        write_private(self.certificate, chain)
        write_private(self.key_and_certificate, _key_text(key) + chain)


def _new_key() -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(of: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, of)])


def _builder(
    of: "x509.Name", by: "x509.Name", public: "EllipticCurvePublicKey", lasts: timedelta
) -> "x509.CertificateBuilder":
    from cryptography import x509

    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(of).issuer_name(by).public_key(public)
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - _DAY).not_valid_after(now + lasts)


def _usage(*, signs_certificates: bool) -> "x509.KeyUsage":
    from cryptography import x509

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


def _key_text(key: "EllipticCurvePrivateKey") -> str:
    from cryptography.hazmat.primitives import serialization

    form = serialization.PrivateFormat.PKCS8  # the one that Java reads
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _certificate_text(certificate: "x509.Certificate") -> str:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM).decode()
