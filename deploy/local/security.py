"""The files of a secured home: its authority, the certificates of its servers, and the password of each process.

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
from master_dataset.errors import OperatorError

OPERATOR, BROKER = "operator", "broker"
"""Users that may do everything: commands on this machine, and the brokers among themselves."""
CASSANDRA, SERVER = "cassandra", "server"
"""Names of certificates, as `BROKER` is: of the nodes of Cassandra, and of every other server."""
PROCESSES = ("archive", "speed", "alerts", "dispatcher", "api", "sql", "batch")
"""Users with rights of their own. Those of `batch` are for recomputes, whatever starts them."""
AUTHORITY_LASTS, SERVER_LASTS = timedelta(days=3650), timedelta(days=397)
RENEWED_BEFORE = timedelta(days=60)
"""A start that finds a certificate this close to its end issues another one."""


@dataclass(frozen=True)
class Security:
    """The files of a secured home. `hosts`: the addresses that the certificates of its servers are for.

    Brokers and nodes of Cassandra accept any client certificate of this authority as that of another node. Only they
    have one, and only that of the brokers has the name of a superuser of Kafka.
    """

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
        """Certificate of all servers but the nodes, and that of the authority."""
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        """Private key of that certificate."""
        return self.folder / "server.key"

    def key_and_certificate(self, name: str) -> Path:
        """Both in one file, of the brokers (`BROKER`) or of the nodes of Cassandra (`CASSANDRA`)."""
        return self.folder / f"{name}-with-key.pem"

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
        """Make whatever is missing, and renew the certificates of the servers in time."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in (*map(self.password_file, (OPERATOR, BROKER, *PROCESSES)), self.metrics_token):
            if not file.exists():
                write_private(file, secrets.token_urlsafe(32))
        if self.authority.exists():
            self._check_authority()
        else:
            self._make_authority()
        if not self._is_current(SERVER, self.certificate, self.key):
            key, chain = self._issued(SERVER)
            write_private(self.key, key)
            write_private(self.certificate, chain)
        for name in (BROKER, CASSANDRA):
            file = self.key_and_certificate(name)
            if not self._is_current(name, file, file):
                write_private(file, "".join(self._issued(name)))
        (self.folder / "server-with-key.pem").unlink(missing_ok=True)  # of earlier homes: a broker's, for all servers

    def _check_authority(self) -> None:
        """Refuse one whose time has not begun or has ended: clients that trust it need to know of another one."""
        from deploy.local.authority import times_of

        (begins, ends), now = times_of(self.authority), datetime.now(UTC)
        if not begins <= now <= ends:
            valid = f"`{self.authority}` is valid from {begins:%F %T} to {ends:%F %T} UTC"
            do = "correct the clock; if it was wrong when the home was made, delete that file and `ca.key` beside it"
            message = f"{valid}, and the clock of this machine says {now:%F %T}"
            raise OperatorError(message, do=f"{do}. Clients then have to trust the new one")

    def _make_authority(self) -> None:
        from deploy.local.authority import Authority

        own = Authority.new("Galatea local authority", AUTHORITY_LASTS).own
        write_private(self._authority_key, own.key_text)
        write_private(self.authority, own.certificate_text)

    def _issued(self, name: str) -> tuple[str, str]:
        """A key, and its certificate with that of the authority."""
        from deploy.local.authority import Authority

        authority = Authority.read(self.authority, self._authority_key)
        issued = authority.issue(name, ("localhost", *self.hosts), SERVER_LASTS, is_client=name != SERVER)
        return issued.key_text, issued.certificate_text + authority.own.certificate_text

    def _is_current(self, name: str, certificate: Path, key: Path) -> bool:
        """Whether the authority has issued the certificate for that name and key, and it does not end soon."""
        from deploy.local.authority import end_if_issued

        end = end_if_issued(self.authority, name, certificate, key)
        return end is not None and end > datetime.now(UTC) + RENEWED_BEFORE
