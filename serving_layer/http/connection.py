"""One HTTP connection: uvicorn's protocol with limits on the size and the arrival time of a request.

uvicorn itself limits neither the head of a request nor the time it takes, and waits forever for a client that sends or
reads nothing. Requests whose length is ambiguous are rejected, as they could be smuggled past a proxy.
"""

import asyncio
import re
import ssl
from collections.abc import Sequence
from contextlib import suppress
from socket import socket
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from master_dataset.errors import GalateaError
from serving_layer.errors import (
    ExpectationUnknownError,
    HeadersTooLargeError,
    RequestTooSlowError,
    RequestUnreadableError,
    TooBusyError,
)
from serving_layer.http.connections import CLOSED
from serving_layer.http.problem_types import PHRASES
from serving_layer.http.problems import SECURITY_HEADERS, problem

if TYPE_CHECKING:
    from serving_layer.http.server import ServerConfig

Fields = Sequence[tuple[bytes, bytes]]
HOST, LENGTH, CODING, EXPECT = b"host", b"content-length", b"transfer-encoding", b"expect"
CREDENTIALS = b"authorization"
CHECKED_HEADERS = frozenset({HOST, CODING, EXPECT, CREDENTIALS})
VALID_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%\[\]:-]+")
ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
"""A target that names a host, which counts then, and not `Host` (RFC 9112, 3.2.2)."""
SEPARATORS = 4
"""Bytes of a header field other than its name and value."""
HTTP_1_0, HTTP_1_1 = "1.0", "1.1"


def refuse_large(target: bytes, fields: Fields, most_bytes: int, most_fields: int) -> None:
    """Raise HeadersTooLargeError if target and header fields exceed a limit."""
    size = len(target) + sum(len(name) + len(value) + SEPARATORS for name, value in fields)
    if size > most_bytes or len(fields) > most_fields:
        raise too_large(most_bytes, most_fields)


def too_large(most_bytes: int, most_fields: int) -> GalateaError:
    """The error for a request head above a limit."""
    message = (
        f"The target and the header fields have more than {most_bytes:,} bytes, or more than {most_fields} fields."
    )
    return HeadersTooLargeError(message, do="Send fewer or shorter ones, or use several requests.")


def refuse_ambiguous(version: str, target: bytes, fields: Fields) -> None:
    """Reject heads that intermediaries could read differently. The parser itself rejects contradicting lengths.

    Raises:
        RequestUnreadableError: the version, `Host` or `Transfer-Encoding` is not valid, the target names another host,
            or there are two keys.
        ExpectationUnknownError: `Expect` is not `100-continue`.
    """
    if version not in (HTTP_1_0, HTTP_1_1):
        raise unreadable("The request is not HTTP/1.1.")
    checked = [field for field in fields if field[0] in CHECKED_HEADERS]
    hosts = [value for name, value in checked if name == HOST]
    if len(hosts) > 1 or (version == HTTP_1_1 and not hosts):
        raise unreadable("A request needs exactly one header field `Host`.")
    if hosts and not VALID_HOST.fullmatch(hosts[0]):
        raise unreadable("`Host` is not a valid host name.")
    if hosts and (named := ABSOLUTE.match(target)) and named[1].lower() != hosts[0].lower():
        raise unreadable("The target and `Host` name different hosts.")
    codings = [value.strip().lower() for name, value in checked if name == CODING]
    if codings and (version == HTTP_1_0 or codings != [b"chunked"]):
        raise unreadable("`Transfer-Encoding` must be `chunked`, in HTTP/1.1.")
    if sum(name == CREDENTIALS for name, _ in checked) > 1:
        raise unreadable("A request has at most one header field `Authorization`.")
    if any(name == EXPECT and value.strip().lower() != b"100-continue" for name, value in checked):
        raise ExpectationUnknownError("`Expect` supports only `100-continue`.", do="Leave `Expect` out.")


def unreadable(message: str = "The data is not HTTP/1.1.") -> GalateaError:
    """The error for a request that cannot be parsed."""
    do = "Send requests that conform to RFC 9112, each with one length and one `Host`."
    return RequestUnreadableError(message, do=do)


def error_bytes(error: GalateaError) -> bytes:
    """A complete response for a request that never reached the app; the connection closes after it."""
    response = problem(error.status, error.code, error.message, error.do)
    headers = dict(response.raw_headers) | dict(SECURITY_HEADERS) | {b"connection": b"close"}
    fields = b"".join(b"%b: %b\r\n" % field for field in headers.items())
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (
        error.status,
        PHRASES[error.status].encode(),
        fields,
        bytes(response.body),
    )


GRACE_SECONDS = 2.0
"""Extra time for slow bodies: the app reports those itself, with a better message."""
LINGER_SECONDS, LINGER_BYTES = 2.0, 1_000_000
"""How long, and how much, is read and discarded after an error: a reset might discard the error response."""
SHUTDOWN_SECONDS = 1.0
"""How long the end of TLS may take: a client that reads nothing never confirms it."""
GRACEFUL = frozenset({"idle", "too_many"})
"""Reasons to close a connection gracefully: no response is outstanding."""


class _DiscardedTrailers(list[tuple[bytes, bytes]]):
    """Trailers are discarded: they must not be added to the headers of a request in progress."""

    def append(self, _: tuple[bytes, bytes]) -> None:
        """Discard the field."""


class _BodyAfterUpgrade:
    """Takes the body of one request from a parser of its own, and nothing after it."""

    def __init__(self, connection: "Connection") -> None:
        self._connection: Connection | None = connection

    def on_body(self, body: bytes) -> None:
        if self._connection is not None:
            self._connection.on_body(body)

    def on_message_complete(self) -> None:
        if self._connection is not None:
            self._connection.on_last_complete()
            self._connection = None


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits; uvicorn makes one per connection."""

    config: "ServerConfig"

    def __init__(
        self,
        config: "ServerConfig",
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Take the arguments that uvicorn passes to a protocol."""
        super().__init__(config, server_state, app_state, _loop)
        self._connections, self._limits = config.open, config.open.limits
        self._rejection: GalateaError | None = None
        self._is_in_head = False
        self._unparsed = 0  # bytes since a request, or a part of its body, last made progress
        self._began: float | None = None  # when the request that is arriving began
        self._idle_since = self._progress_at = self.loop.time()
        self._has_answered = False
        self._unsent = 0
        self._discards = False  # whatever arrives after a rejected request
        self._lingers_since: float | None = None
        self._handshake: asyncio.Task[None] | None = None
        self._is_last = False  # after the body of a request that asked for another protocol

    def encrypt(self, accepted: socket, context: ssl.SSLContext) -> asyncio.Task[None]:
        """Begin the TLS handshake of a connection, which counts as open from now on. Return its task.

        asyncio's servers do not report a connection until its handshake is complete, which they allow a minute for. So
        whoever opened thousands and sent nothing would take all files of the process.
        """
        self._handshake = self.loop.create_task(self._encrypt(accepted, context))
        self._handshake.add_done_callback(lambda _: self._end_handshake(accepted))
        self._connections.enter(self)
        return self._handshake

    async def _encrypt(self, accepted: socket, context: ssl.SSLContext) -> None:
        seconds = self._limits.receive_seconds
        with suppress(OSError):  # it failed, or took too long
            await self.loop.connect_accepted_socket(
                lambda: self,
                accepted,
                ssl=context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )

    def _end_handshake(self, accepted: socket) -> None:
        if self._handshake is not None:  # it did not become a connection
            accepted.close()
            self._connections.leave(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Register the connection."""
        self._handshake = None
        super().connection_made(transport)
        self._connections.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._connections.leave(self)
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio has it
        """Keep the connection open for a client that has sent its request and still waits for the response."""
        cycle = self.cycle
        waits = cycle is not None and not cycle.response_started and not cycle.more_body and self._began is None
        if not waits or self._discards:
            return None
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Parse the data, which may be a part of a request or several requests."""
        self._unset_keepalive_if_required()
        self._unparsed += len(data)
        if self._discards or self._is_last:
            if self._unparsed > LINGER_BYTES:
                self.close("refused")
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as asked:
            self.cycle.keep_alive = False  # no other protocol is supported
            if not self._is_last:
                self._read_body(data[asked.args[0] :])
        except httptools.HttpParserError:
            self._reject(self._rejection or unreadable())
        else:
            if self._unparsed > self._limits.header_bytes and not self.flow.read_paused:
                self._reject(self._too_large() if self._is_in_head else unreadable("The request is empty."))

    def _read_body(self, rest: bytes) -> None:
        """Read the body of a request that asks for another protocol as well, as Java's HttpClient does.

        The parser ends such a request with its head, and its events would be lost. RFC 9110, 7.8, lets a server ignore
        the upgrade. `rest` is what has arrived after the head.
        """
        framing = [b"%b: %b\r\n" % field for field in self.scope["headers"] if field[0] in {LENGTH, CODING}]
        if not framing:
            return
        if not self.pipeline and not self.cycle.response_started:
            self._connections.wait(self)
        self._began, self.cycle.more_body = self.loop.time(), True
        self.cycle.message_event.clear()
        self.parser = httptools.HttpRequestParser(_BodyAfterUpgrade(self))
        self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % b"".join(framing))
        if rest:
            self.data_received(rest)

    def on_message_begin(self) -> None:
        """A request begins to arrive."""
        super().on_message_begin()
        self._is_in_head = True
        self._began = self.loop.time()

    def on_headers_complete(self) -> None:
        """Check the head of the request. The parser wraps the error, so the original is kept in `_rejection`."""
        try:
            refuse_large(self.url, self.headers, self._limits.header_bytes, self._limits.header_fields)
            refuse_ambiguous(self.parser.get_http_version(), self.url, self.headers)
        except GalateaError as error:
            self._rejection = error
            raise
        super().on_headers_complete()
        self._unparsed, self._is_in_head = 0, False
        self.headers = _DiscardedTrailers()

    def on_body(self, body: bytes) -> None:
        """A part of the body has arrived."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived completely."""
        super().on_message_complete()
        self._unparsed, self._began = 0, None
        if self.cycle.response_complete:
            self._wait_for_request()
        else:
            self._connections.work(self)

    def on_last_complete(self) -> None:
        """The last request of this connection has arrived completely."""
        self._is_last = True
        self.on_message_complete()

    def on_response_complete(self) -> None:
        """The response is complete."""
        super().on_response_complete()
        self._has_answered = True
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait_for_request()

    def check(self, now: float) -> int:
        """Close the connection if a time limit has passed; see `ManagedConnection.check`."""
        if self._handshake is not None:
            return 0  # it has a limit of its own
        limits, unsent = self._limits, self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._progress_at = now
        self._unsent = unsent
        if now - self._progress_at > limits.idle_seconds:
            self.close("not_read")
        elif self._lingers_since is not None:
            if now - self._lingers_since > LINGER_SECONDS:
                self.close("refused")
        elif self._began is not None:
            self._check_arrival(now, self._began)
        elif (self.cycle is None or self.cycle.response_complete) and now - self._idle_since > self._idle_limit():
            self.close("idle")
        return 0 if self.transport.is_closing() else unsent

    def _idle_limit(self) -> float:
        return self._limits.idle_seconds if self._has_answered else self._limits.receive_seconds

    def close(self, why: str) -> None:
        """Close the connection for this reason; see `ManagedConnection.close`."""
        CLOSED.labels(why).inc()
        if self._handshake is not None:
            self._handshake.cancel()
            return
        if why == "too_many" and not self._has_answered:
            self.transport.write(error_bytes(TooBusyError("Too many connections are open.", do="Try again.")))
        if why in GRACEFUL:
            self.transport.close()
            if why == "too_many":  # it does not count any more
                self.loop.call_later(SHUTDOWN_SECONDS, self.transport.abort)
        else:
            self.transport.abort()

    def _wait_for_request(self) -> None:
        self._idle_since = self.loop.time()
        self._connections.wait(self)

    def _check_arrival(self, now: float, began: float) -> None:
        seconds = self._limits.receive_seconds
        if self.flow.read_paused:
            self._began = now  # the client waits for the app to read
        elif now - began > seconds + (0 if self._is_in_head else GRACE_SECONDS):
            message = f"The request did not arrive within {seconds:g} seconds."
            self._reject(RequestTooSlowError(message, do="Send it faster, or send less at a time."))

    def _reject(self, error: GalateaError) -> None:
        """Send the error and close the connection; a response in progress is finished first."""
        cycle, self._discards = self.cycle, True
        if self.pipeline or (cycle is not None and not cycle.response_complete and not cycle.more_body):
            cycle.keep_alive = False
            return
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.close("refused")
                return
            cycle.disconnected = True  # the app receives no more, and its response is discarded
            cycle.message_event.set()
        self._lingers_since = self.loop.time()
        self.transport.write(error_bytes(error))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _too_large(self) -> GalateaError:
        return too_large(self._limits.header_bytes, self._limits.header_fields)
