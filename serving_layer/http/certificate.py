"""The certificate that this process shows to its clients. When its files change, it is read again without a restart."""

import asyncio
import math
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import structlog
from cryptography import x509
from prometheus_client import Counter, Gauge

RELOAD_SECONDS = 10.0
"""How often the files are looked at. A certificate is renewed days before the old one expires."""

RELOADS = Counter("galatea_certificate_reloads", "Certificates that were read again, by whether it worked.", ("ok",))
EXPIRES = Gauge("galatea_certificate_expires_seconds", "When the certificate that clients get expires, since 1970.")

log = structlog.get_logger()


class ServerCertificate:
    """A certificate and its key, for all servers of this process."""

    def __init__(self, certificate_file: str, key_file: str, key_password: str = "") -> None:
        """Read the files.

        Args:
            certificate_file: The certificate and those between it and its authority, PEM.
            key_file: The private key, PEM.
            key_password: Password of the key; if empty, the key is not encrypted.

        Raises:
            OSError: A file cannot be used; `ssl.SSLError` is a kind of it.
        """
        self._files, self._password = (certificate_file, key_file), key_password
        self._seen, self._reloading = self._state(), Lock()
        self.context = self._read()
        """For TLS 1.2 and later. New connections use the certificate that was read last."""
        self._expires_at = self._expiry()
        EXPIRES.set(self._expires_at)

    async def follow(self) -> None:
        """Read the files again whenever they change, until cancelled.

        If they cannot be used, or have an expired certificate, keep the one that is valid.
        """
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.reload()

    def reload(self) -> None:
        """Read the files if they have changed. Threads of several servers may ask at once."""
        with self._reloading:
            try:
                state = self._state()
                if state == self._seen:
                    return
                self._read()  # into another context: half of a new pair would replace the old one
                expires_at = self._expiry()
                self._refuse_expired(expires_at)
                self._load(self.context)
            except OSError as error:
                RELOADS.labels("no").inc()
                log.warning("certificate.not_reloaded", files=self._files, message=str(error))
            else:
                self._seen, self._expires_at = state, expires_at
                EXPIRES.set(expires_at)
                RELOADS.labels("yes").inc()
                log.info("certificate.reloaded", file=self._files[0])

    def _refuse_expired(self, expires_at: float) -> None:
        if expires_at <= time.time() < self._expires_at:
            raise OSError("the certificate has expired, unlike the one that is used")

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        # Without a password OpenSSL would ask for one on the terminal.
        context.load_cert_chain(*self._files, lambda: self._password)

    def _expiry(self) -> float:
        """When the certificate of the file expires, in seconds since 1970; nan if that cannot be read."""
        try:
            own, *_ = x509.load_pem_x509_certificates(Path(self._files[0]).read_bytes())
        except (OSError, ValueError) as error:  # OpenSSL has read it, so it is used
            log.warning("certificate.expiry_unknown", file=self._files[0], message=str(error))
            return math.nan
        return own.not_valid_after_utc.timestamp()

    def _state(self) -> Sequence[tuple[int, int, int]]:
        """What changes when a file is written or replaced, also by a link that is turned to another one."""
        found = [Path(file).stat() for file in self._files]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]
