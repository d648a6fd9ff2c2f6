"""TLS of clients: whose certificates they trust, the certificate that they show, and why a handshake fails."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl  # only where it is used: short commands read the settings without it

GUIDE = "docs/how-to/secured-clusters.md"
"""The page that errors point to."""
PROBE_SECONDS = 5.0
_ALERT_SECONDS = 0.5
"""How long a server may take to reject a client's certificate: with TLS 1.3 it does so after the handshake."""
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_NOT_YET_VALID, _EXPIRED = 9, 10
_WRONG_NAME = frozenset({62, 64})
"""Codes of OpenSSL (X509_V_ERR_...), as in `ssl.SSLCertVerificationError.verify_code`."""


class TlsNames(NamedTuple):
    """The settings that an error has to name: the variable without its last part, that of the hosts, the switch."""

    prefix: str
    hosts: str
    switch: str


class TlsProblem(NamedTuple):
    """Why a server cannot be reached over TLS, in a sentence, and the next step.

    `passes`: whether it ends without a change here, as when a certificate is renewed.
    """

    message: str
    do: str
    passes: bool = False


@dataclass(frozen=True)
class Tls:
    """How a client uses TLS. The server's certificate is always checked, and so is the name in it.

    Attributes:
        ca_file: Certificates of the authorities to trust, PEM; if empty, those that the system trusts.
        certificate_file: The client's certificate and those between it and its authority, PEM; if empty, none.
        key_file: The private key of that certificate, PEM.
        key_password: Password of the key; if empty, the key is not encrypted.
    """

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)

    def context(self) -> "ssl.SSLContext":
        """Return a context of Python's `ssl`. OSError, of which `ssl.SSLError` is a kind, if a file cannot be used."""
        import ssl  # noqa: PLC0415 - see above

        context = ssl.create_default_context(cafile=self.ca_file or None)
        if self.certificate_file:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self.certificate_file, self.key_file, lambda: self.key_password)
        return context

    def problem(self, host: str, port: int, names: TlsNames) -> TlsProblem | None:
        """Try a handshake, to find out why that of a driver failed: drivers report too little.

        Args:
            host: The server, as the certificate has to name it.
            port: Its port.
            names: The settings to name.

        Returns:
            None if the handshake succeeds, or the server cannot be connected to at all.

        Raises:
            OSError: A file cannot be used.
        """
        import ssl  # noqa: PLC0415 - see above

        context, place = self.context(), f"`{host}:{port}`"
        try:
            plain = socket.create_connection((host, port), PROBE_SECONDS)
        except OSError:
            return None
        with plain:
            try:
                with context.wrap_socket(plain, server_hostname=host) as encrypted:
                    encrypted.settimeout(_ALERT_SECONDS)
                    with suppress(TimeoutError):
                        encrypted.recv(1)
            except ssl.SSLCertVerificationError as error:
                return self._untrusted(error, place, names)
            except ssl.SSLError as error:
                return self._rejected(error, place, names)
            except TimeoutError:
                do = f"try again; if it is not busy, it does not use TLS: correct {names.switch}, or {names.hosts}"
                return TlsProblem(f"{place} does not answer a TLS handshake", do, passes=True)
            except OSError as error:
                return TlsProblem(f"{place} ended the TLS handshake: {error}", f"read its log; check {names.switch}")
        return None

    def valid_until(self, host: str, port: int) -> datetime:
        """Return until when the certificate of a server is valid. OSError, of which `ssl.SSLError` is a kind."""
        import ssl  # noqa: PLC0415 - see above

        with (
            socket.create_connection((host, port), PROBE_SECONDS) as plain,
            self.context().wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            shown = encrypted.getpeercert() or {}
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)

    def _untrusted(self, error: "ssl.SSLCertVerificationError", place: str, names: TlsNames) -> TlsProblem:
        if error.verify_code in _UNKNOWN_AUTHORITY:
            trusted = f"in `{self.ca_file}`" if self.ca_file else "that this system trusts"
            return TlsProblem(
                f"the certificate of {place} is not signed by an authority {trusted}",
                f"set {names.prefix}_CA_FILE to the certificate of the authority that signed it",
            )
        if error.verify_code == _EXPIRED:
            return TlsProblem(f"the certificate of {place} has expired", "renew it on the server", passes=True)
        if error.verify_code == _NOT_YET_VALID:
            return TlsProblem(
                f"the certificate of {place} is not valid yet", "compare the clocks of both machines", passes=True
            )
        if error.verify_code in _WRONG_NAME:
            return TlsProblem(
                f"the certificate of {place} is for another name",
                f"name the server in {names.hosts} as its certificate does, or issue one with this name or address",
            )
        return TlsProblem(
            f"the certificate of {place} is not valid: {error.verify_message}", "issue another one for the server"
        )

    def _rejected(self, error: "ssl.SSLError", place: str, names: TlsNames) -> TlsProblem:
        reason = (error.reason or "").lower().replace("_", " ")
        if "alert" in reason:
            shown = f"the client certificate `{self.certificate_file}`" if self.certificate_file else "a client without"
            shown = shown if self.certificate_file else f"{shown} a certificate"
            return TlsProblem(
                f"{place} rejects {shown} ({reason})",
                f"set {names.prefix}_CERTIFICATE_FILE and {names.prefix}_KEY_FILE to one that the server trusts",
            )
        if "wrong version number" in reason or "record layer failure" in reason:
            return _not_tls(place, names)
        return TlsProblem(f"the TLS handshake with {place} fails: {reason or error}", f"check {names.switch}")


def _not_tls(place: str, names: TlsNames) -> TlsProblem:
    return TlsProblem(f"{place} does not use TLS", f"correct {names.switch}, or name a port with TLS in {names.hosts}")
