"""The files of a secured home: its authority, the certificate of its servers, and the password of each process.

`galatea up --secure` makes them once, in the folder `secure` of the home. Only their owner can read them, and nothing
is passed on a command line. What each process may do is in `rights`.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deploy.local.nodes import HOSTS
from deploy.secret_files import write_private

OPERATOR, BROKER = "operator", "broker"
"""Users that may do everything: commands on this machine, and the brokers among themselves."""
PROCESSES = ("archive", "speed", "alerts", "dispatcher", "api", "sql", "batch")
"""Users with rights of their own. Those of `batch` are for recomputes, whoever starts them."""
AUTHORITY_LASTS, SERVER_LASTS = timedelta(days=3650), timedelta(days=397)
RENEWED_BEFORE = timedelta(days=60)
"""A start that finds the certificate of the servers this close to its end issues another one."""


@dataclass(frozen=True)
class Security:
    """The files of a secured home. `hosts`: the addresses that the certificate of its servers is for."""

    home: Path
    hosts: Sequence[str] = HOSTS

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
    def metrics_token(self) -> Path:
        """Token with which Prometheus reads metrics."""
        return self.folder / "metrics.token"

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
        for file in (*map(self.password_file, (OPERATOR, BROKER, *PROCESSES)), self.metrics_token):
            if not file.exists():
                write_private(file, secrets.token_urlsafe(32))
        if not self.authority.exists():
            self._make_authority()
        if not self.key_and_certificate.exists() or self._expires_soon():
            self._issue()

    def _expires_soon(self) -> bool:
        from deploy.local.authority import expires

        return expires(self.certificate) < datetime.now(UTC) + RENEWED_BEFORE

    def _make_authority(self) -> None:
        from deploy.local.authority import Authority

        own = Authority.new("Galatea local authority", AUTHORITY_LASTS).own
        write_private(self._authority_key, own.key_text)
        write_private(self.authority, own.certificate_text)

    def _issue(self) -> None:
        from deploy.local.authority import Authority

        authority = Authority.read(self.authority, self._authority_key)
        issued = authority.issue(BROKER, ("localhost", *self.hosts), SERVER_LASTS)
        chain = issued.certificate_text + authority.own.certificate_text
        write_private(self.key, issued.key_text)
        write_private(self.certificate, chain)
        write_private(self.key_and_certificate, issued.key_text + chain)
