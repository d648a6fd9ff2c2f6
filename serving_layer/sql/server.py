"""The server of the SQL component: connections, their login, their limits, and cancel requests.

One event loop serves all connections; an idle one costs a task and its buffers. Whatever a client sends, only its own
connection ends.
"""

import asyncio
import hmac
import re
import secrets
import ssl
import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import cast

import structlog
from prometheus_client import Counter, Histogram

from serving_layer.keys.throttle import network_of
from serving_layer.sql.authentication import Login, LoginService
from serving_layer.sql.conversation import PIECE_BYTES, Conversation, ConversationLimits, KeyLostError
from serving_layer.sql.names import DATABASE, SERVER_VERSION
from serving_layer.sql.protocol import (
    AUTHENTICATION_OK,
    ENCRYPTION_ACCEPTED,
    ENCRYPTION_REFUSED,
    PASSWORD_WANTED,
    STARTUP_BYTES,
    CancelRequest,
    EncryptionRequest,
    PasswordMessage,
    ProtocolError,
    Startup,
    Terminate,
    backend_key,
    error_response,
    negotiated_version,
    parameter_status,
    read_message,
    read_opening,
    ready_for_query,
)
from serving_layer.sql.results import QueryResult, SqlSession, SqlSessions, SqlStateError

SETTINGS: Mapping[str, str] = {
    "server_version": f"{SERVER_VERSION} (Galatea)",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
}
"""Sent to every client at its login, with its user and time zone."""
MESSAGE_COST = 100
"""Bytes of memory that a message takes besides its content."""
MOST_OPENINGS = 3
"""Messages until a login begins: a request for each kind of encryption, and the one that begins it."""
LINGER_SECONDS = 5.0
"""How long the last message of a closed connection may take to leave."""
PENDING = 100
"""Connections beyond the limit that may be open without a login: for the error that says so, and for cancellation.

If even these are open, a new one takes the place of another one without a login.
"""

CONNECTIONS_ENDED = Counter("galatea_sql_connections_ended", "SQL connections that have ended, by reason.", ("why",))
LOGINS = Counter("galatea_sql_logins", "Logins to the SQL component, by SQLSTATE; 00000 for success.", ("sqlstate",))
STATEMENTS = Counter("galatea_sql_statements", "SQL statements, by SQLSTATE; 00000 for success.", ("sqlstate",))
SECONDS = Histogram("galatea_sql_statement_seconds", "Seconds that an SQL statement took.")
ROWS = Counter("galatea_sql_rows", "Rows of the results of SQL statements.")

log = structlog.get_logger()


@dataclass(frozen=True)
class ServerLimits:
    """Limits of one process.

    Args:
        connections: logged in at the same time.
        connections_per_tenant: of one tenant.
        startup_seconds: until a login is complete.
        idle_seconds: between two messages of a client.
        unread_seconds: without the client reading anything of a result.
        message_bytes: of one message.
        conversation: of each connection.
    """

    connections: int = 500
    connections_per_tenant: int = 300
    startup_seconds: float = 10.0
    idle_seconds: float = 1800.0
    unread_seconds: float = 60.0
    message_bytes: int = 1_000_000
    conversation: ConversationLimits = field(default_factory=ConversationLimits)


class SqlServer:
    """Listens, and knows all connections. One per process and event loop."""

    def __init__(
        self,
        sessions: SqlSessions,
        logins: LoginService,
        limits: ServerLimits | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            sessions: makes a session for each login.
            logins: checks users and passwords.
            limits: of this process.
            tls: for encryption, without which there is no login then; None if there is none.
        """
        self.sessions, self.logins, self.limits, self.tls = sessions, logins, limits or ServerLimits(), tls
        self.running = 0
        """Statements that run now."""
        self._open: dict[int, Connection] = {}
        self._without_login: dict[str, dict[int, None]] = {}
        """By network the numbers of connections without a login, oldest first."""
        self._tenants: Tally[str] = Tally()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many connections are logged in."""
        return self._tenants.total()

    async def listen(self, host: str, port: int) -> int:
        """Accept connections, and return the port: a free one for 0. OSError if the address is taken."""
        loop = asyncio.get_running_loop()
        backlog = self.limits.connections + PENDING
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=backlog)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self, grace_seconds: float = 5.0) -> None:
        """Stop to listen, end all statements and tell the clients. Wait so long for them to end."""
        if self._server is not None:
            self._server.close()
        tasks = [each.shut_down() for each in list(self._open.values())]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_seconds)
            for each in late:
                each.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def enter(self, connection: "Connection") -> int:
        """Add a connection, and return its number. If that is one too many, abort another one without a login.

        That is the oldest of the network that has most of them, so that no network keeps the others out.
        """
        if len(self._open) >= self.limits.connections + PENDING:
            self._abort_one()
        number = secrets.randbits(31)
        while number in self._open:
            number = secrets.randbits(31)
        self._open[number] = connection
        self._without_login.setdefault(connection.network, {})[number] = None
        return number

    def _abort_one(self) -> None:
        waiting = self._without_login
        if waiting:
            largest = max(waiting, key=lambda network: len(waiting[network]))
            oldest = next(iter(waiting[largest]))
            self._open[oldest].abort("too_many")
            self._forget_waiting(oldest, largest)

    def _forget_waiting(self, number: int, network: str) -> None:
        """Count a connection no longer among those without a login, if it is there."""
        own = self._without_login.get(network, {})
        own.pop(number, None)
        if not own:
            self._without_login.pop(network, None)

    def log_in(self, number: int | None, tenant: str) -> None:
        """Count a login. SqlStateError 53300 if there are too many, in all or of the tenant."""
        limits = self.limits
        if self.connections >= limits.connections:
            raise _too_many(f"{limits.connections} connections are open.")
        if self._tenants[tenant] >= limits.connections_per_tenant:
            raise _too_many(f"{limits.connections_per_tenant} connections of this tenant are open.")
        self._tenants[tenant] += 1
        if number is not None:
            self._forget_waiting(number, self._open[number].network)

    def leave(self, number: int, tenant: str | None) -> None:
        """Remove a connection. `tenant`: None if it was not logged in."""
        connection = self._open.pop(number, None)
        if connection is not None:
            self._forget_waiting(number, connection.network)
        if tenant is not None:
            self._tenants[tenant] -= 1
            if not self._tenants[tenant]:
                del self._tenants[tenant]

    def cancel(self, request: CancelRequest) -> None:
        """End the statement of the connection that the request names, if it knows its secret."""
        connection = self._open.get(request.process)
        if connection is not None and hmac.compare_digest(str(connection.secret), str(request.secret)):
            connection.interrupt()


def _too_many(what: str) -> SqlStateError:
    return SqlStateError("53300", what, "Close connections that are idle, or use a smaller pool.")


class EndedError(SqlStateError):
    """The server ends the connection. `why`: for the metrics."""

    def __init__(self, code: str, message: str, hint: str, why: str) -> None:
        """`why`: the reason for metrics; the rest as for `SqlStateError`."""
        super().__init__(code, message, hint)
        self.why = why


class Connection(asyncio.Protocol):
    """One connection. Messages are framed as they arrive, and answered one by one in a task."""

    def __init__(self, server: SqlServer) -> None:
        """`server`: knows the other connections."""
        self._server, self._limits = server, server.limits
        self.secret = secrets.randbits(32)
        self._number: int | None = None
        self._tenant: str | None = None
        self._session: SqlSession | None = None
        self._incoming, self._messages = bytearray(), deque[tuple[bytes, bytes]]()
        self._queued = 0  # bytes of the messages that wait
        self._has_types = False  # the first message has no byte for its type
        self._most_bytes = STARTUP_BYTES
        self._outgoing = bytearray()
        self._arrived, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._end: Exception | None = None  # why no message will be read any more, after those that have arrived
        self._is_paused, self._is_encrypted = False, False

    # --- transport ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to answer."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=4 * PIECE_BYTES)
        self.network = network_of(self.address)
        self._number = self._server.enter(self)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def connection_lost(self, exc: Exception | None) -> None:
        """End the statement that runs, whose result nobody would read."""
        if self._end is None:
            self._end = ConnectionResetError("the client has gone") if exc is None else exc
        self._messages.clear()
        self._wake()
        self.interrupt()

    def data_received(self, data: bytes) -> None:
        """Cut the data into messages."""
        if self._end is not None:
            return
        self._incoming += data
        try:
            at = 0
            while (end := self._message_end(at)) is not None:
                head = 1 if self._has_types else 0
                kind, body = bytes(self._incoming[at : at + head]), bytes(self._incoming[at + head + 4 : end])
                self._messages.append((kind, body))
                self._queued += len(body) + MESSAGE_COST
                self._has_types = self._has_types or not isinstance(read_opening(body), EncryptionRequest)
                at = end
            del self._incoming[:at]
        except ProtocolError as error:
            self._end = error
            self._incoming.clear()
        if self._queued > self._most_queued and not self._is_paused:
            self._transport.pause_reading()
            self._is_paused = True
        self._wake()

    @property
    def _most_queued(self) -> int:
        """Bytes of messages that may wait: a login has two short ones, and strangers hold no more."""
        has_logged_in = self._most_bytes != STARTUP_BYTES
        return self._limits.message_bytes if has_logged_in else 2 * STARTUP_BYTES

    def _message_end(self, at: int) -> int | None:
        """Where the message that begins there ends; None if it has not arrived yet. ProtocolError."""
        head = 1 if self._has_types else 0
        if len(self._incoming) < at + head + 4:
            return None
        length = int.from_bytes(self._incoming[at + head : at + head + 4], "big")
        if not 4 <= length <= self._most_bytes:  # noqa: PLR2004 - the length counts itself
            raise ProtocolError(f"A message has {length:,} bytes; between 4 and {self._most_bytes:,} are possible.")
        end = at + head + length
        return end if len(self._incoming) >= end else None

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client has read."""
        self._writable.set()

    def interrupt(self) -> None:
        """End what the session does, if it does anything."""
        if self._session is not None:
            self._session.interrupt()

    def abort(self, why: str) -> None:
        """End the connection at once. `why`: for the metrics."""
        self._end = ConnectionAbortedError(why)
        self._messages.clear()
        self._wake()
        self._transport.abort()

    def shut_down(self) -> "asyncio.Task[None]":
        """Let the connection end, and return the task that ends then."""
        if self._end is None:
            self._end = EndedError("57P01", "The server shuts down.", "Connect again in a moment.", "shutdown")
        self._wake()
        self.interrupt()
        return self._task

    def _wake(self) -> None:
        self._arrived.set()
        self._writable.set()

    # --- messages ---

    async def _receive(self) -> tuple[bytes, bytes]:
        """The next message: its type, and its content. Raises why there is none."""
        if not self._messages:
            await self._flush()
        while not self._messages:
            if self._end is not None:
                raise self._end
            self._arrived.clear()
            await self._arrived.wait()
        found = self._messages.popleft()
        self._queued -= len(found[1]) + MESSAGE_COST
        if self._is_paused and not self._messages and not self._transport.is_closing():
            self._transport.resume_reading()
            self._is_paused = False
        return found

    async def _write(self, data: bytes) -> None:
        self._outgoing += data
        while len(self._outgoing) >= PIECE_BYTES:
            await self._flush_piece()
            await asyncio.sleep(0)  # other connections get a turn

    async def _flush(self) -> None:
        """Send what was collected, and wait while the client does not read. ConnectionError."""
        await self._flush_piece()
        while self._outgoing:
            await self._flush_piece()

    async def _flush_piece(self) -> None:
        if self._transport.is_closing():
            raise ConnectionResetError
        if self._outgoing:
            self._transport.write(bytes(memoryview(self._outgoing)[:PIECE_BYTES]))
            del self._outgoing[:PIECE_BYTES]
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(self._limits.unread_seconds):
                    await self._writable.wait()
            except TimeoutError as error:
                self._transport.abort()
                raise ConnectionAbortedError("not_read") from error

    # --- the life of a connection ---

    async def _serve(self) -> None:
        why = "client"
        try:
            await self._live()
        except EndedError as error:
            why = error.why
            await self._say_last(error)
        except KeyLostError as error:
            why = "key"
            await self._say_last(error)
        except ProtocolError as error:
            why = "protocol"
            await self._say_last(error)
        except SqlStateError as error:
            why = "refused"
            await self._say_last(error)
        except ConnectionError as error:
            why = str(error) if isinstance(error, ConnectionAbortedError) else "lost"
        except Exception:
            why = "failed"
            log.exception("sql.connection_failed")
        finally:
            CONNECTIONS_ENDED.labels(why).inc()
            if self._session is not None:
                self._session.close()
            if self._number is not None:
                self._server.leave(self._number, self._tenant)
            self._transport.close()
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)

    async def _say_last(self, error: SqlStateError) -> None:
        self._outgoing += error_response(error, "FATAL")
        if not self._transport.is_closing():
            self._transport.write(bytes(self._outgoing))

    async def _live(self) -> None:
        try:
            async with asyncio.timeout(self._limits.startup_seconds):
                startup = await self._opening()
                if startup is None:
                    return
                login = await self._log_in(startup)
        except TimeoutError as error:
            late = f"The login was not complete within {self._limits.startup_seconds:g} seconds."
            raise EndedError("57014", late, "Send the password at once.", "startup_timeout") from error
        self._session = session = self._server.sessions(login.caller)
        await self._apply(startup, session)
        await self._greet(login.user, session)
        talk = Conversation(
            session,
            self._write,
            lambda: self._server.logins.require(login),
            self._execute,
            self._limits.conversation,
        )
        while True:
            kind, body = await self._within_idle_time()
            message = read_message(kind, body)
            if isinstance(message, Terminate):
                return
            await talk.answer(message)

    async def _within_idle_time(self) -> tuple[bytes, bytes]:
        if self._messages:
            return await self._receive()
        await self._flush()
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                return await self._receive()
        except TimeoutError as error:
            message = f"The connection was idle for {self._limits.idle_seconds:g} seconds."
            raise EndedError("57P05", message, "Connect again.", "idle") from error

    async def _opening(self) -> Startup | None:
        """Read the first message; None if it was a cancel request, which has no answer."""
        for _ in range(MOST_OPENINGS):
            _, body = await self._receive()
            opening = read_opening(body)
            if isinstance(opening, Startup):
                return opening
            if isinstance(opening, CancelRequest):
                self._server.cancel(opening)
                return None
            if opening.is_tls and self._server.tls is not None and not self._is_encrypted:
                await self._encrypt(self._server.tls)
            else:
                await self._write(ENCRYPTION_REFUSED)
        raise ProtocolError("A client asks for TLS once, and for GSS encryption once.")

    async def _encrypt(self, tls: ssl.SSLContext) -> None:
        """Continue with TLS. Whatever arrived before the handshake could have been sent by anybody."""
        if self._messages or self._incoming:
            raise ProtocolError("There is data between a request for TLS and the handshake.")
        self._transport.write(ENCRYPTION_ACCEPTED)
        try:
            encrypted = await asyncio.get_running_loop().start_tls(self._transport, self, tls, server_side=True)
        except (OSError, asyncio.IncompleteReadError) as error:  # of which `ssl.SSLError` is a kind
            raise ConnectionAbortedError("tls") from error
        if encrypted is None:
            raise ConnectionAbortedError("tls")
        self._transport, self._is_encrypted = encrypted, True
        self._transport.set_write_buffer_limits(high=4 * PIECE_BYTES)

    async def _log_in(self, startup: Startup) -> Login:
        if self._server.tls is not None and not self._is_encrypted:
            raise SqlStateError("28000", "Logins need encryption here.", "Set sslmode=verify-full in the client.")
        unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
        if startup.minor or unknown:
            await self._write(negotiated_version(unknown))
        try:
            user = _user_of(startup)
            await self._write(PASSWORD_WANTED)
            login = await self._server.logins.log_in(self.address, user, await self._password())
            _require_database(startup.parameters.get("database") or user)
            self._server.log_in(self._number, user)
        except SqlStateError as error:
            LOGINS.labels(error.code).inc()
            raise
        LOGINS.labels("00000").inc()
        self._tenant = user
        return login

    async def _password(self) -> str:
        kind, body = await self._receive()
        message = read_message(kind, body)
        if not isinstance(message, PasswordMessage):
            raise ProtocolError("A password was expected.")
        return message.password

    @property
    def address(self) -> str:
        """The address of the client."""
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else "local"

    async def _apply(self, startup: Startup, session: SqlSession) -> None:
        """Apply the settings of the first message, as the statement SET does."""
        for name, value in _settings_of(startup.parameters).items():
            quoted = value.replace("'", "''")
            await session.execute(f"SET {name} TO '{quoted}'")

    async def _greet(self, user: str, session: SqlSession) -> None:
        await self._write(AUTHENTICATION_OK)
        own = {"session_authorization": user, "TimeZone": session.zone.key}
        for name, value in {**SETTINGS, **own}.items():
            await self._write(parameter_status(name, value))
        await self._write(backend_key(self._number or 0, self.secret))
        await self._write(ready_for_query("idle"))
        self._most_bytes = self._limits.message_bytes

    async def _execute(self, work: Awaitable[QueryResult]) -> QueryResult:
        began, code = time.monotonic(), "00000"
        self._server.running += 1
        try:
            result = await work
        except SqlStateError as error:
            code = error.code
            raise
        except BaseException:
            code = "XX000"
            raise
        else:
            ROWS.inc(len(result.rows))
            return result
        finally:
            self._server.running -= 1
            STATEMENTS.labels(code).inc()
            SECONDS.observe(time.monotonic() - began)


def _user_of(startup: Startup) -> str:
    user = startup.parameters.get("user", "")
    if not user:
        raise SqlStateError("28000", "The login has no user.", "The user is a tenant, such as `default`.")
    return user


def _require_database(name: str) -> None:
    if name != DATABASE:
        hint = f"The database is `{DATABASE}`; the user is the tenant."
        raise SqlStateError("3D000", f'There is no database "{name[:100]}".', hint)


_OPTION = re.compile(r"(?<!\S)(?:-c\s*+|--)([A-Za-z_][A-Za-z0-9_.-]*+)=((?:\\.|\S)*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NO_SETTINGS = frozenset({"user", "database", "options", "replication"})


def _settings_of(parameters: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of the first message: its parameters, and those in `options`, such as `-c timezone=UTC`.

    Raises:
        SqlStateError: replication, another encoding than UTF-8, or a name that cannot be one.
    """
    if parameters.get("replication", "false") not in ("false", "off", "no", "0"):
        raise SqlStateError("0A000", "There is no replication here.", "Only queries are answered.")
    settings = {
        name: value for name, value in parameters.items() if name not in _NO_SETTINGS and not name.startswith("_pq_.")
    }
    for name, value in _OPTION.findall(parameters.get("options", "")):
        settings[name.replace("-", "_")] = re.sub(r"\\(.)", r"\1", value)
    for name in settings:
        if not _NAME.fullmatch(name):
            raise SqlStateError("42704", f'There is no setting "{name[:100]}".', "Leave it out.")
    return settings
