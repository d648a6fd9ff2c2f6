"""One HTTP connection: uvicorn's protocol with limits on the size and the arrival time of a request."""

import asyncio
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from master_dataset.errors import GalateaError
from serving_layer.api.problems import SECURITY_HEADERS, problem
from serving_layer.errors import (
    ExpectationUnknownError,
    HeadersTooLargeError,
    RequestTooSlowError,
    RequestUnreadableError,
    TooBusyError,
)
from serving_layer.http.connections import ENDED

if TYPE_CHECKING:
    from serving_layer.http.server import ServerConfig

Fields = Sequence[tuple[bytes, bytes]]
HOST, CODING, EXPECT = b"host", b"transfer-encoding", b"expect"
LOOKED_AT = frozenset({HOST, CODING, EXPECT})
A_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%\[\]:-]+")
SEPARATORS = 4
"""Bytes of a field beside its name and value."""
OLD, NEW = "1.0", "1.1"


def refuse_large(target: bytes, fields: Fields, most_bytes: int, most_fields: int) -> None:
    """HeadersTooLargeError."""
    size = len(target) + sum(len(name) + len(value) + SEPARATORS for name, value in fields)
    if size > most_bytes or len(fields) > most_fields:
        raise too_large(most_bytes, most_fields)


def too_large(most_bytes: int, most_fields: int) -> GalateaError:
    """What is said of a head that is larger."""
    message = f"The target and the header fields are more than {most_bytes:,} bytes, or than {most_fields} fields."
    return HeadersTooLargeError(message, do="Send fewer or shorter ones, or ask in several requests.")


def refuse_ambiguous(version: str, fields: Fields) -> None:
    """RequestUnreadableError, ExpectationUnknownError. Two lengths, or one that is no number, the parser finds by itself."""
    if version not in (OLD, NEW):
        raise unreadable("The request is not HTTP/1.1.")
    said = [field for field in fields if field[0] in LOOKED_AT]
    hosts = [value for name, value in said if name == HOST]
    if len(hosts) > 1 or (version == NEW and not hosts):
        raise unreadable("A request needs one header field `Host`.")
    if hosts and not A_HOST.fullmatch(hosts[0]):
        raise unreadable("`Host` cannot be the name of a host.")
    codings = [value.strip().lower() for name, value in said if name == CODING]
    if codings and (version == OLD or codings != [b"chunked"]):
        raise unreadable("`Transfer-Encoding` has to be `chunked`, in HTTP/1.1.")
    if any(name == EXPECT and value.strip().lower() != b"100-continue" for name, value in said):
        raise ExpectationUnknownError("Nothing but `100-continue` can be expected.", do="Leave `Expect` out.")


def unreadable(message: str = "What came is no HTTP/1.1.") -> GalateaError:
    """What is said of a request whose framing is lost."""
    return RequestUnreadableError(
        message, do="Send requests as RFC 9112 has them, each with one length and one `Host`."
    )


def error_bytes(error: GalateaError) -> bytes:
    """A whole response; the connection ends behind it."""
    said = problem(error.status, error.code, error.message, error.do)
    headers = dict(said.raw_headers) | dict(SECURITY_HEADERS) | {b"connection": b"close"}
    fields = b"".join(b"%b: %b\r\n" % field for field in headers.items())
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (
        error.status,
        HTTPStatus(error.status).phrase.encode(),
        fields,
        bytes(said.body),
    )


GRACE_SECONDS = 2.0
"""The app itself says it better of a body that comes too slowly."""
LINGER_SECONDS, LINGER_BYTES = 2.0, 1_000_000
"""For how long, and how much, is read and thrown away behind a refusal: a reset might take it from its client."""
GENTLY = frozenset({"idle", "too_many"})
"""Why a connection may end that owes its client nothing."""


class _Nowhere(list[tuple[bytes, bytes]]):
    """Trailers: nobody reads them, and they must not join the headers of a request that is worked on already."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Forget it."""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol; made by it, one for each connection."""

    config: "ServerConfig"

    def __init__(
        self,
        config: "ServerConfig",
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """As uvicorn has it."""
        super().__init__(config, server_state, app_state, _loop)
        self._all, self._limits = config.open, config.open.limits
        self._refusal: GalateaError | None = None
        self._is_in_head = False
        self._loose = 0  # bytes since a request, or a part of its body, last made progress
        self._began: float | None = None  # of the request that is arriving
        self._rests_since = self._moved_at = self.loop.time()
        self._has_answered = False
        self._unsent = 0
        self._is_deaf = False  # to whatever comes behind what was refused
        self._lingers_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has come."""
        super().connection_made(transport)
        self._all.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._all.leave(self)
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio has it
        """A client that has said all it has to say may wait for its answer yet."""
        cycle = self.cycle
        waits = cycle is not None and not cycle.response_started and not cycle.more_body and self._began is None
        if not waits or self._is_deaf:
            return None
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Some of a request, of several, or of none."""
        self._unset_keepalive_if_required()
        self._loose += len(data)
        if self._is_deaf:
            if self._loose > LINGER_BYTES:
                self.end("refused")
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # what comes behind it is of no protocol that is spoken here
        except httptools.HttpParserError:
            self._refuse(self._refusal or unreadable())
        else:
            if self._loose > self._limits.header_bytes and not self.flow.read_paused:
                self._refuse(self._too_large() if self._is_in_head else unreadable("The request says nothing."))

    def on_message_begin(self) -> None:
        """A request begins to arrive."""
        super().on_message_begin()
        self._is_in_head = True
        self._began = self.loop.time()

    def on_headers_complete(self) -> None:
        """Its head is there. What is raised here the parser hands back as an error of its own."""
        try:
            refuse_large(self.url, self.headers, self._limits.header_bytes, self._limits.header_fields)
            refuse_ambiguous(self.parser.get_http_version(), self.headers)
        except GalateaError as error:
            self._refusal = error
            raise
        super().on_headers_complete()
        self._loose, self._is_in_head = 0, False
        self.headers = _Nowhere()

    def on_body(self, body: bytes) -> None:
        """Some of its body is there."""
        self._loose = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is there."""
        super().on_message_complete()
        self._loose, self._began = 0, None
        if self.cycle.response_complete:
            self._rest()
        else:
            self._all.work(self)

    def on_response_complete(self) -> None:
        """It is answered."""
        super().on_response_complete()
        self._has_answered = True
        if self.cycle.response_complete and not self.transport.is_closing():
            self._rest()

    def look(self, now: float) -> int:
        """See `ManagedConnection`."""
        limits, unsent = self._limits, self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._moved_at = now
        self._unsent = unsent
        if now - self._moved_at > limits.idle_seconds:
            self.end("not_read")
        elif self._lingers_since is not None:
            if now - self._lingers_since > LINGER_SECONDS:
                self.end("refused")
        elif self._began is not None:
            self._look_at_arrival(now, self._began)
        elif (self.cycle is None or self.cycle.response_complete) and now - self._rests_since > self._patience():
            self.end("idle")
        return 0 if self.transport.is_closing() else unsent

    def _patience(self) -> float:
        return self._limits.idle_seconds if self._has_answered else self._limits.receive_seconds

    def end(self, why: str) -> None:
        """See `ManagedConnection`."""
        ENDED.labels(why).inc()
        if why == "too_many" and not self._has_answered:
            self.transport.write(error_bytes(TooBusyError("Too many connections are open.", do="Ask again.")))
        if why in GENTLY:
            self.transport.close()
        else:
            self.transport.abort()

    def _rest(self) -> None:
        self._rests_since = self.loop.time()
        self._all.wait(self)

    def _look_at_arrival(self, now: float, began: float) -> None:
        seconds = self._limits.receive_seconds
        if self.flow.read_paused:
            self._began = now  # the client waits for us
        elif now - began > seconds + (0 if self._is_in_head else GRACE_SECONDS):
            message = f"The request did not arrive within {seconds:g} seconds."
            self._refuse(RequestTooSlowError(message, do="Send it faster, or send less at a time."))

    def _refuse(self, error: GalateaError) -> None:
        """Say so, unless an answer is under way, which comes first; then the connection ends."""
        cycle, self._is_deaf = self.cycle, True
        if self.pipeline or (cycle is not None and not cycle.response_complete and not cycle.more_body):
            cycle.keep_alive = False
            return
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.end("refused")
                return
            cycle.disconnected = True  # for the app nothing more will come, and nobody hears what it says
            cycle.message_event.set()
        self._lingers_since = self.loop.time()
        self.transport.write(error_bytes(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _too_large(self) -> GalateaError:
        return too_large(self._limits.header_bytes, self._limits.header_fields)
