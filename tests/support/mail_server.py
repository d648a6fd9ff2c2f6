"""A mail server on loopback that keeps what it receives, with TLS, a login and refusals where a test asks for them."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

HOST = "127.0.0.1"
USER, PASSWORD = "reports", "a password that no log may show"


@dataclass
class ReceivedMails:
    """What a handler of aiosmtpd has kept.

    `refused`: recipients, with the answer. `sender`: the answer to one that is refused. `answer`: to the mail itself;
    `answers`: to the mail to some recipients.
    """

    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    sender: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    answer: str = "250 taken"
    port: int = 0

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.sender or "250 taken"

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 taken"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - likewise
        assert isinstance(envelope.content, bytes)
        self.envelopes.append(envelope)
        answer = self.answers.get(envelope.rcpt_tos[0], self.answer)
        if answer.startswith("250"):
            self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return answer

    def of(self, recipient: str) -> list[EmailMessage]:
        """The mails that somebody has received."""
        return [mail for mail in self.mails if mail["To"] == recipient]


def _authenticate(_server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
    known = isinstance(given, LoginPassword) and (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


@contextmanager
def mail_server(
    context: ssl.SSLContext | None = None, *, needs_login: bool = False, is_implicit: bool = False
) -> Iterator[ReceivedMails]:
    """A server that offers STARTTLS if there is a context; `is_implicit`: it speaks TLS from the start instead."""
    kept, loop = ReceivedMails(), asyncio.new_event_loop()
    login: dict[str, Any] = {"authenticator": _authenticate, "auth_required": True} if needs_login else {}
    starttls, implicit = (None, context) if is_implicit else (context, None)

    def session() -> SMTP:
        return SMTP(kept, hostname=HOST, loop=loop, tls_context=starttls, auth_require_tls=bool(context), **login)

    # `Controller` of aiosmtpd cannot listen on a port that the system chooses.
    server = loop.run_until_complete(loop.create_server(session, HOST, 0, ssl=implicit))
    kept.port = server.sockets[0].getsockname()[1]
    serving = Thread(target=loop.run_forever)
    serving.start()
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(loop.stop)
        serving.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
