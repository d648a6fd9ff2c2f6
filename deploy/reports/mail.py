"""Sends reports over SMTP. Every failure names the setting to look at."""

import smtplib
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from types import TracebackType
from typing import Self, TypeVar

from deploy.reports.sections import SmtpSettings
from deploy.secret_files import check_certificates, secret_of
from master_dataset.errors import GalateaError, MailNotSentError, MailServerUnavailableError, OperatorError
from master_dataset.tls import Tls

T = TypeVar("T")
SENDER_NAME = "Galatea"
SMTP_TEXT = 200
"""Characters of what a mail server says that are shown."""


@dataclass(frozen=True)
class Mail:
    """A mail to one recipient.

    `id`: the same whenever the same mail is made. `pdf`: None for no attachment. `language`: of its texts.
    """

    id: str
    to: str
    subject: str
    text: str
    html: str
    pdf: bytes | None = None
    file_name: str = "report.pdf"
    language: str = "en"

    def message(self, sender: str) -> EmailMessage:
        """The message. Its policy refuses line breaks in headers, so that nothing in a name can add one."""
        message = EmailMessage(policy=SMTP)
        message["From"] = Address(SENDER_NAME, addr_spec=sender)
        message["To"] = Address(addr_spec=self.to)
        message["Subject"] = " ".join(self.subject.split())
        message["Date"] = datetime.now(UTC)
        message["Message-ID"] = f"<report.{self.id}@{sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"  # so that nobody's "out of office" answers it
        message.set_content(self.text, cte="quoted-printable")
        message.add_alternative(self.html, subtype="html", cte="quoted-printable")
        if self.pdf is not None:
            message.add_attachment(self.pdf, maintype="application", subtype="pdf", filename=self.file_name)
        message["Content-Language"] = self.language  # parts take the headers of content that come before them
        return message


class MailServerRefusesError(OperatorError):
    """The mail server does not let Galatea in, or cannot be trusted: no other mail would get further."""


@dataclass
class MailServer:
    """A connection to the mail server of the settings, for `with`."""

    smtp: SmtpSettings
    _client: smtplib.SMTP = field(init=False, repr=False)

    def __enter__(self) -> Self:
        """Connect, encrypt and sign in.

        Raises:
            MailServerUnavailableError: It does not answer, or not now.
            OperatorError: A setting is missing or wrong, or a file cannot be used.
        """
        smtp = self.smtp
        if not smtp.host:
            do = "set GALATEA_SMTP_HOST and GALATEA_SMTP_FROM"
            raise OperatorError("no mail server is configured, so reports cannot be sent", do=do)
        password = secret_of("GALATEA_SMTP_PASSWORD", smtp.password, smtp.password_file)
        if not password.isascii():  # smtplib cannot send it, and would show one of its characters
            message = f"the password in `{smtp.password_file}` of GALATEA_SMTP_PASSWORD_FILE is not ASCII"
            raise OperatorError(message, do="choose one of ASCII characters at the mail server, and write it there")
        trusted = self._trusted() if smtp.tls != "none" else None
        try:
            self._client = self._checked(lambda: self._connected(trusted))
            try:
                self._checked(lambda: self._sign_in(trusted, password))
            except GalateaError:
                self._client.close()
                raise
        except OperatorError as error:
            raise MailServerRefusesError(error.message, do=error.do) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say goodbye. What was sent is sent, whatever comes of it."""
        try:
            self._client.quit()
        except (OSError, smtplib.SMTPException):
            self._client.close()

    def send(self, mail: Mail) -> None:
        """Send a mail; the server has taken it when this returns.

        Raises:
            MailServerUnavailableError: It does not answer, or cannot take the mail now; see `is_connected`.
            MailNotSentError: It refuses the sender, the recipient or the mail.
        """
        message = mail.message(self.smtp.sender)
        try:
            self._checked(lambda: self._client.send_message(message, self.smtp.sender, [mail.to]))
        except GalateaError:
            # smtplib leaves the mail open if the server refuses the command DATA itself.
            with suppress(OSError, smtplib.SMTPException):
                self._client.rset()
            raise

    @property
    def is_connected(self) -> bool:
        """Whether further mails can be sent: false once the server has closed the connection, or has announced it."""
        return self._client.sock is not None

    @property
    def _place(self) -> str:
        return f"`{self.smtp.host}:{self.smtp.port}`"

    def _trusted(self) -> ssl.SSLContext:
        if self.smtp.ca_file:
            check_certificates("GALATEA_SMTP_CA_FILE", self.smtp.ca_file)
        return Tls(self.smtp.ca_file).context()

    def _connected(self, trusted: ssl.SSLContext | None) -> smtplib.SMTP:
        host, port, seconds, here = self.smtp.host, self.smtp.port, self.smtp.seconds, socket.gethostname()
        if self.smtp.tls == "tls":
            return smtplib.SMTP_SSL(host, port, local_hostname=here, timeout=seconds, context=trusted)
        return smtplib.SMTP(host, port, local_hostname=here, timeout=seconds)

    def _sign_in(self, trusted: ssl.SSLContext | None, password: str) -> None:
        if self.smtp.tls == "starttls":
            self._client.starttls(context=trusted)
        if self.smtp.user:
            self._client.login(self.smtp.user, password)

    def _checked(self, act: Callable[[], T]) -> T:
        """What an act returns, or what its failure means. The password is in no message."""
        try:
            return act()
        except smtplib.SMTPException as error:
            raise self._refused(error) from error
        except ssl.SSLError as error:
            message, do = self._not_trusted(error)
            raise OperatorError(message, do=do) from error
        except OSError as error:
            why = "did not answer in time" if isinstance(error, TimeoutError) else str(error.strerror or error)
            message = f"the mail server {self._place} cannot be reached: {why}"
            do = "check GALATEA_SMTP_HOST, GALATEA_SMTP_PORT and GALATEA_SMTP_TLS, and that the network lets you"
            raise MailServerUnavailableError(message, do=do) from error

    def _not_trusted(self, error: ssl.SSLError) -> tuple[str, str]:
        if isinstance(error, ssl.SSLCertVerificationError):
            message = f"the certificate of the mail server {self._place} is not trusted: {error.verify_message}"
            return message, "set GALATEA_SMTP_CA_FILE to its authority, or name it in GALATEA_SMTP_HOST as it does"
        reason = (error.reason or str(error)).lower().replace("_", " ")
        message = f"the TLS handshake with the mail server {self._place} fails: {reason}"
        return message, "check GALATEA_SMTP_TLS and GALATEA_SMTP_PORT: `starttls` is usual on 587, `tls` on 465"

    def _refused(self, error: smtplib.SMTPException) -> GalateaError:
        place = f"the mail server {self._place}"
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            [(recipient, (code, said))] = error.recipients.items()
            message = f"{place} refuses the recipient `{recipient}`: {_text(code, said)}"
            kind = _kind(code)
            again, correct = "try again later", "correct the address in GALATEA_REPORTS_FILE or `--to`"
            return kind(message, do=correct if kind is MailNotSentError else again)
        if isinstance(error, smtplib.SMTPResponseException):
            return self._refused_with_code(error, place)
        if isinstance(error.__context__, TimeoutError):
            do = "check GALATEA_SMTP_TLS and GALATEA_SMTP_PORT, which have to fit; or set GALATEA_SMTP_SECONDS higher"
            return MailServerUnavailableError(f"{place} did not answer in time", do=do)
        if isinstance(error, smtplib.SMTPServerDisconnected):
            do = "try again; if it stays so, check GALATEA_SMTP_TLS and the log of the mail server"
            return MailServerUnavailableError(f"{place} closed the connection", do=do)
        if isinstance(error, smtplib.SMTPNotSupportedError) and "STARTTLS" in str(error):
            do = "set GALATEA_SMTP_TLS to `tls` and GALATEA_SMTP_PORT to the port of that, usually 465"
            return OperatorError(f"{place} does not offer STARTTLS", do=do)
        do = "check GALATEA_SMTP_USER and GALATEA_SMTP_TLS: some servers let users sign in over TLS only, or not at all"
        return OperatorError(f"{place} does not do what is asked: {str(error)[:SMTP_TEXT]}", do=do)

    def _refused_with_code(self, error: smtplib.SMTPResponseException, place: str) -> GalateaError:
        said = _text(error.smtp_code, error.smtp_error)
        if isinstance(error, smtplib.SMTPAuthenticationError):
            do = "check GALATEA_SMTP_USER, and GALATEA_SMTP_PASSWORD or its file"
            return OperatorError(f"{place} refuses the user `{self.smtp.user}`: {said}", do=do)
        if isinstance(error, smtplib.SMTPSenderRefused):
            do = "set GALATEA_SMTP_FROM to an address that this server may send for, or sign in"
            return _kind(error.smtp_code)(f"{place} refuses the sender `{self.smtp.sender}`: {said}", do=do)
        do = "read the log of the mail server; send without `pdf` if mails are too large"
        return _kind(error.smtp_code)(f"{place} does not take the mail: {said}", do=do)


_PERMANENT = 500


def _kind(code: int) -> type[MailServerUnavailableError] | type[MailNotSentError]:
    """The error for an answer: below 500 the server asks to try again."""
    return MailNotSentError if code >= _PERMANENT else MailServerUnavailableError


def _text(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return f"{code} {' '.join(text.split())[:SMTP_TEXT]}"
