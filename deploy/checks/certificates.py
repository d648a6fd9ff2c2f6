"""Checks of certificates, and of files that only their owner may read."""

import ssl
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deploy.checks.finding import Finding, failed, fault, good
from deploy.secret_files import checked_tls, secret_of
from master_dataset.errors import OperatorError
from master_dataset.kafka.client_errors import NAMES as KAFKA
from master_dataset.tls import Tls, TlsNames

if TYPE_CHECKING:
    from deploy.settings import Settings

RENEW = timedelta(days=30)
"""A certificate that ends earlier should be renewed now."""
OWN = TlsNames("GALATEA_TLS", "GALATEA_API_URL", "GALATEA_TLS_CERTIFICATE_FILE")
_EXPIRED, _WRONG_NAMES = 10, frozenset({62, 64})
"""Codes of OpenSSL, as in `ssl.SSLCertVerificationError.verify_code`."""
_OTHERS = 0o077


def certificate_findings(settings: "Settings", now: datetime | None = None) -> Iterator[Finding]:
    """Check the certificates of Kafka's and Cassandra's servers, those that Galatea shows, and private files.

    Args:
        settings: The settings.
        now: The time; by default that of this machine.
    """
    from deploy.cassandra import NAMES as CASSANDRA  # noqa: PLC0415 - the driver is slow to import

    now = now or datetime.now(UTC)
    if settings.kafka.security_protocol.endswith("SSL"):
        servers = [each.strip() for each in settings.kafka.bootstrap.split(",")]
        yield from _cluster(KAFKA, servers, lambda: settings.kafka.connection.tls, now)
    if settings.cassandra.is_encrypted:
        points = [f"{each.strip()}:{settings.cassandra.port}" for each in settings.cassandra.contact_points.split(",")]
        yield from _cluster(CASSANDRA, points, lambda: settings.cassandra.address.tls, now)
    if settings.tls.is_on:
        yield own_finding(settings, now)
    yield from private_findings(settings)


def _cluster(names: TlsNames, servers: list[str], tls_of: Callable[[], Tls | None], now: datetime) -> Iterator[Finding]:
    try:
        tls = tls_of()
    except OperatorError as error:
        yield failed(names.prefix, error)
        return
    if tls is None:
        return
    for server in servers:
        place = urlsplit(f"//{server}")
        yield server_finding(tls, place.hostname or "", place.port or 0, names, now)
    if tls.certificate_file:
        yield file_finding(f"{names.prefix}_CERTIFICATE_FILE", tls, "", now)


def server_finding(tls: Tls, host: str, port: int, names: TlsNames, now: datetime) -> Finding:
    """Check the certificate that a server shows."""
    check = f"certificate of {host}:{port}"
    if (problem := tls.problem(host, port, names)) is not None:
        return fault(check, problem.message, problem.do)
    try:
        until = tls.valid_until(host, port)
    except OSError:
        return fault(check, "the server does not respond", f"start it, or correct {names.hosts}", blocks=False)
    return lasting(check, until, now, "renew it on the server")


def lasting(check: str, until: datetime, now: datetime, renew: str) -> Finding:
    """Check that a certificate lasts long enough."""
    if until - now >= RENEW:
        return good(check, f"valid until {until:%Y-%m-%d}")
    days = int((until - now) / timedelta(days=1))
    return fault(check, f"expires in {days} days, on {until:%Y-%m-%d}", renew, blocks=False)


def own_finding(settings: "Settings", now: datetime) -> Finding:
    """Check the certificate of REST, SQL and metrics, and that it names the host at which commands reach REST."""
    own, check = settings.tls, "GALATEA_TLS_CERTIFICATE_FILE"
    try:
        password = secret_of("GALATEA_TLS_KEY_PASSWORD", own.key_password, own.key_password_file)
        tls = checked_tls("GALATEA_TLS", Tls("", own.certificate_file, own.key_file, password), in_java=False)
    except OperatorError as error:
        return failed(check, error)
    url = settings.api_url
    return file_finding(check, tls, urlsplit(url).hostname or "" if url.startswith("https:") else "", now)


def file_finding(check: str, tls: Tls, host: str, now: datetime) -> Finding:
    """Check a certificate in a file.

    Args:
        check: The setting that names it.
        tls: The file, its key and the password.
        host: The name that it must have; empty if it needs none.
        now: The time.
    """
    try:
        until = shown_until(tls, host)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == _EXPIRED:
            return fault(
                check, f"`{tls.certificate_file}` has expired", f"renew it, under the same path or with {check}"
            )
        if error.verify_code in _WRONG_NAMES:
            do = f"issue one with this name, or set {OWN.hosts} to a name that it has"
            return fault(check, f"`{tls.certificate_file}` is not for `{host}`", do)
        return fault(check, f"`{tls.certificate_file}` is not valid: {error.verify_message}", "issue another one")
    except OSError as error:
        return fault(check, f"`{tls.certificate_file}` cannot be used: {error}", f"correct {check}, or its key")
    return lasting(check, until, now, "renew it; processes that serve read it again without a restart")


def shown_until(tls: Tls, host: str) -> datetime:
    """Return until when a certificate in a file is valid, by a handshake in memory: Python reads no PEM by itself.

    Raises:
        ssl.SSLCertVerificationError: It has expired, is not valid yet, or does not name the host.
        OSError: It cannot be used.
    """
    shows, looks = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if not host else ssl.PROTOCOL_TLS_SERVER),
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if not host else ssl.PROTOCOL_TLS_CLIENT),
    )  # one without a name is that of a client
    for context in (shows, looks):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(tls.certificate_file, tls.key_file, lambda: tls.key_password)
    looks.verify_mode = ssl.CERT_REQUIRED
    looks.check_hostname = bool(host)
    looks.load_verify_locations(tls.certificate_file)
    looks.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trusted as it is, without its authority
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = shows.wrap_bio(there, back, server_side=bool(host))
    other = looks.wrap_bio(back, there, server_side=not host, server_hostname=host or None)
    for side in (one, other) * 3:  # in turn, as a handshake has it
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    shown = other.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)


def private_findings(settings: "Settings") -> Iterator[Finding]:
    """Check that no other user can read a file with a secret."""
    own = settings.metrics
    secrets: Mapping[str, Callable[[], object]] = {
        "GALATEA_KAFKA": lambda: settings.kafka.connection,
        "GALATEA_CASSANDRA": lambda: settings.cassandra.address,
        "GALATEA_METRICS_TOKEN": lambda: secret_of("GALATEA_METRICS_TOKEN", own.token, own.token_file),
    }
    findings = []
    for name, read in secrets.items():
        try:
            read()
        except OperatorError as error:
            findings.append(failed(f"files of {name}", error))
    own_files = (settings.home / "operator.key", settings.home / "secrets.key")
    for place in (*own_files, Path(settings.airflow.password_file)):
        if place.exists() and (mode := stat.S_IMODE(place.stat().st_mode)) & _OTHERS:
            found = f"`{place}` can be read by others (mode {mode:o})"
            findings.append(fault("private files", found, f"chmod 600 {place}", blocks=False))
    yield from findings or [good("private files", "readable by their owner alone")]
