"""The settings of reports and of the mail server that sends them."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator

from deploy.local.nodes import is_loopback
from deploy.reports.address import mail_address
from deploy.sections import Port, Section, absolute


class SmtpSettings(Section):
    """Mail server.

    It sends the reports.
    """

    prefix = "smtp_"

    host: str = ""
    """Host name of the mail server; if empty, no report is sent by mail."""
    port: Port = 587
    """Port of the mail server."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted: after STARTTLS (usually port 587), from the start (465), or not at all."""
    ca_file: str = ""
    """CA certificates (PEM) that the mail server is verified with; if empty, the system's."""
    user: str = ""
    """User at the mail server; if empty, nobody signs in."""
    password: SecretStr = SecretStr("")
    """Password of that user."""
    password_file: str = ""
    """File with that password."""
    sender: str = Field(default="", validation_alias="smtp_from")
    """Address that reports come from, such as `reports@shop.example`."""
    seconds: float = Field(default=30.0, gt=0, le=600)
    """Seconds that the mail server may take for each answer."""

    @field_validator("sender")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return mail_address(text) if text else text

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("ca_file", "password_file")))

    def conflicts(self) -> Iterator[str]:
        """Say which settings contradict each other."""
        host, sender, user, password, file = self.names_of(("host", "sender", "user", "password", "password_file"))
        given = self.given()
        if not self.user.isascii():
            yield f"{user} has characters beside ASCII, which no mail server understands at a login"
        if not self.password.get_secret_value().isascii():
            yield f"{password} has characters beside ASCII, which no mail server understands at a login"
        if self.host and not self.sender:
            yield f"{host} needs {sender}"
        if {password, file} <= given:
            yield f"{password} and {file} are both set"
        if self.user and not {password, file} & given:
            yield f"{user} needs {password} or {file}"
        if not self.user:
            yield from (f"{name} needs {user}" for name in (password, file) if name in given)
        elif self.tls == "none" and self.host and not is_loopback(self.host):
            yield f"{user} needs another GALATEA_SMTP_TLS than none: the password would be readable on the network"


class ReportSettings(Section):
    """Reports."""

    prefix = "reports_"

    file: str = ""
    """YAML file that says who gets which report; if empty, `galatea send-reports` sends nothing."""
    chromium: str = ""
    """Path of the Chromium that makes PDFs; if empty, the first one on the PATH."""
    pdf_seconds: float = Field(default=60.0, gt=0, le=600)
    """Seconds that Chromium may take for a PDF."""

    def resolved(self) -> Self:
        """Make paths absolute."""
        return self.model_copy(update=absolute(self, ("file", "chromium")))
