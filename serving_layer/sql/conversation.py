"""What is said on a connection after the login: statements at once, and prepared ones with portals."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from sys import getsizeof
from typing import NamedTuple

import structlog

from master_dataset.errors import DependencyUnavailableError, GalateaError, RequestError
from serving_layer.sql.error_messages import refuse_large_result
from serving_layer.sql.protocol import (
    BIND_COMPLETE,
    CLOSE_COMPLETE,
    EMPTY_QUERY,
    NO_DATA,
    PARSE_COMPLETE,
    PORTAL_SUSPENDED,
    Bind,
    Close,
    Describe,
    Execute,
    Flush,
    Message,
    Parse,
    ProtocolError,
    Query,
    Sync,
    Unsupported,
    command_complete,
    error_response,
    parameter_description,
    parameter_status,
    ready_for_query,
    row_description,
)
from serving_layer.sql.results import SHORT, Column, Prepared, QueryResult, SqlSession, SqlStateError, SqlType, SqlValue
from serving_layer.sql.settings import require_short_name
from serving_layer.sql.types import TEXT_FORMAT, WIRE_TYPES, decode, encoder, parameter_type

PIECE_BYTES = 65_536
"""Bytes that are collected before they are sent. Between two pieces of a result, other connections get a turn."""

_DEALLOCATE = re.compile(
    r"""\s*+(?:deallocate\s++(?:prepare\s++)?(?P<name>"(?:[^"]|"")+"|\w+)|discard\s+all)\s*+;?\s*+$""", re.IGNORECASE
)

log = structlog.get_logger()


_TEXTS_OF_STATEMENT = 2
"""As the client wrote it, and as DuckDB reads it."""
_MEMORY_OF_BYTE = 4
"""What a byte of a parameter takes at most: in Python, one character outside of the basic plane makes all four wide."""
_MEMORY_OF_NUMBER = 40
"""What a number, or a parameter that is NULL, takes in the lists that are made of it."""


class ConversationLimits(NamedTuple):
    """Limits of one connection.

    Attributes:
        statements: prepared statements, and portals.
        statement_bytes: text of all prepared statements.
        result_bytes: of one result, as it is sent.
    """

    statements: int = 500
    statement_bytes: int = 2_000_000
    result_bytes: int = 100_000_000


@dataclass
class Statement:
    """A prepared statement; `prepared` is None for an empty one. `oids`: of parameters, as the client knows them.

    `held` counts its memory.
    """

    prepared: Prepared | None
    oids: Sequence[int] = ()
    size: int = 0
    held: object = None


@dataclass
class Portal:
    """A statement with its parameters, whose memory `held` counts. `result`: once it has been run."""

    statement: Statement
    parameters: Sequence[SqlValue]
    held: object
    result_formats: Sequence[int]
    result: QueryResult | None = None
    sent: int = 0
    size: int = 0
    formats: Sequence[int] = field(default=())


class Conversation:
    """Answers the messages of one client. One at a time."""

    def __init__(
        self,
        session: SqlSession,
        write: Callable[[bytes], Awaitable[None]],
        authorize: Callable[[], Awaitable[None]],
        run: Callable[[Awaitable[QueryResult]], Awaitable[QueryResult]],
        limits: ConversationLimits | None = None,
    ) -> None:
        """Begin with nothing prepared.

        Args:
            session: runs the statements.
            write: sends bytes, and waits while the client does not read.
            authorize: called before each statement; SqlStateError if the key is no longer valid, which is fatal.
            run: awaits a running statement, which may be cancelled meanwhile.
            limits: of this connection.
        """
        self._session, self._write, self._authorize, self._run = session, write, authorize, run
        self._limits = limits or ConversationLimits()
        self._statements: dict[str, Statement] = {}
        self._portals: dict[str, Portal] = {}
        self._zone = session.zone
        self._is_skipping = False  # after an error, until Sync

    async def answer(self, message: Message) -> None:
        """Answer one message.

        Raises:
            ProtocolError: it makes no sense here.
            KeyLostError: the key of the connection is no longer valid.
        """
        if isinstance(message, Query):
            self._is_skipping = False
            await self._guarded(self._query(message.sql))
            await self._ready()
        elif isinstance(message, Sync):
            self._is_skipping = False
            if self._session.transaction == "idle":
                self._portals.clear()
            await self._ready()
        elif not self._is_skipping:
            self._is_skipping = not await self._guarded(self._extended(message))

    async def _ready(self) -> None:
        await self._write(ready_for_query(self._session.transaction))

    async def _guarded(self, work: Awaitable[None]) -> bool:
        """Do the work; whether it raised no error. An error is sent to the client."""
        try:
            await work
        except (ProtocolError, KeyLostError, ConnectionError):
            raise
        except SqlStateError as error:
            await self._write(error_response(error))
        except GalateaError as error:
            await self._write(error_response(as_sql_error(error)))
        except Exception:
            log.exception("sql.statement_failed")
            unknown = SqlStateError("XX000", "The server has failed.", "The log of the component `sql` says why.")
            await self._write(error_response(unknown))
        else:
            return True
        return False

    # --- simple protocol ---

    async def _query(self, text: str) -> None:
        await self._authorize()
        self._statements.pop("", None)
        self._portals.pop("", None)
        statements = await self._split(text)
        if not statements:
            await self._write(EMPTY_QUERY)
        for number, sql in enumerate(statements):
            if number:
                await self._authorize()  # the key may have been revoked while those before it ran
            result = await self._run(self._session.execute(sql))
            self._forget(sql)
            if result.columns is not None:
                await self._write(row_description(result.columns))
                await self._rows(result.columns, result.rows, (TEXT_FORMAT,) * len(result.columns), 0)
            await self._write(command_complete(result.tag))
            await self._report_zone()

    async def _split(self, text: str) -> Sequence[str]:
        """The statements of a text; those of a long one are found in a thread, so that other connections go on."""
        return await asyncio.to_thread(self._session.split, text) if len(text) > SHORT else self._session.split(text)

    # --- extended protocol ---

    async def _extended(self, message: Message) -> None:
        match message:
            case Parse():
                await self._parse(message)
            case Bind():
                await self._bind(message)
            case Describe():
                await self._describe(message)
            case Execute():
                await self._execute(message)
            case Close():
                (self._portals if message.is_portal else self._statements).pop(message.name, None)
                await self._write(CLOSE_COMPLETE)
            case Flush():
                await self._write(b"")
            case Unsupported():
                raise SqlStateError("0A000", f"There are no {message.what} here.", "Only queries are answered.")
            case _:
                raise ProtocolError(f"A {type(message).__name__} message makes no sense here.")

    async def _parse(self, message: Parse) -> None:
        await self._authorize()
        self._statements.pop("", None)
        if message.statement in self._statements:
            hint = "Close it first, or use another name."
            raise SqlStateError("42P05", f'The prepared statement "{message.statement}" exists already.', hint)
        require_short_name(message.statement)
        size = len(message.sql)
        self._require_room(size)
        lists = _MEMORY_OF_NUMBER * len(message.parameter_oids)
        held = self._session.hold(_TEXTS_OF_STATEMENT * getsizeof(message.sql) + lists)
        statements = await self._split(message.sql)
        if len(statements) > 1:
            raise SqlStateError("42601", "A prepared statement is one statement.", "Prepare each one by itself.")
        if not statements:
            self._statements[message.statement] = Statement(None, (), size, held)
        else:
            types = [parameter_type(oid) for oid in message.parameter_oids]
            prepared = await self._session.prepare(statements[0], types)
            oids = [WIRE_TYPES[_announced(each)].oid for each in prepared.parameters]
            oids[: len(message.parameter_oids)] = [
                given or found for given, found in zip(message.parameter_oids, oids, strict=False)
            ]
            self._statements[message.statement] = Statement(prepared, oids, size, held)
        await self._write(PARSE_COMPLETE)

    def _require_room(self, size: int) -> None:
        held = sum(each.size for each in self._statements.values())
        if len(self._statements) >= self._limits.statements or held + size > self._limits.statement_bytes:
            raise SqlStateError(
                "54000",
                f"A connection keeps at most {self._limits.statements} prepared statements, "
                f"of {self._limits.statement_bytes:,} bytes together.",
                "Close those that are no longer needed (DEALLOCATE, or the setting of the client).",
            )

    async def _bind(self, message: Bind) -> None:
        statement = self._statement(message.statement)
        require_short_name(message.portal)
        if message.portal and message.portal in self._portals:
            raise SqlStateError("42P03", f'The portal "{message.portal}" exists already.', "Close it first.")
        if len(self._portals) >= self._limits.statements and message.portal not in self._portals:
            raise SqlStateError(
                "54000", f"A connection keeps at most {self._limits.statements} portals.", "Close some of them."
            )
        types = [parameter_type(oid) for oid in statement.oids]
        if len(types) != len(message.values):
            raise ProtocolError(f"A statement of {len(types)} parameters was given {len(message.values)}.")
        formats = _one_each(message.formats, len(types))
        values = sum(_MEMORY_OF_BYTE * len(value) for value in message.values if value is not None)
        numbers = len(message.values) + len(message.result_formats)
        held = self._session.hold(values + _MEMORY_OF_NUMBER * numbers)
        parameters = [
            None if value is None else decode(type_, format_, value)
            for type_, format_, value in zip(types, formats, message.values, strict=True)
        ]
        self._portals[message.portal] = Portal(statement, parameters, held, message.result_formats)
        await self._write(BIND_COMPLETE)

    async def _describe(self, message: Describe) -> None:
        formats: Sequence[int] = ()
        if message.is_portal and message.name not in self._portals:
            columns = self._session.cursor_columns(message.name)
            if columns is None:
                self._portal(message.name)
        elif message.is_portal:
            portal = self._portal(message.name)
            columns = portal.statement.prepared.columns if portal.statement.prepared else None
            formats = () if columns is None else _one_each(portal.result_formats, len(columns))
        else:
            statement = self._statement(message.name)
            columns = statement.prepared.columns if statement.prepared else None
            await self._write(parameter_description(statement.oids))
        await self._write(NO_DATA if columns is None else row_description(columns, formats))

    async def _execute(self, message: Execute) -> None:
        await self._authorize()
        portal = self._portal(message.portal)
        prepared = portal.statement.prepared
        if prepared is None:
            await self._write(EMPTY_QUERY)
            return
        if portal.result is None:
            portal.result = await self._run(self._session.execute(prepared.sql, portal.parameters, prepared.parameters))
            portal.formats = _one_each(portal.result_formats, len(portal.result.columns or ()))
        result = portal.result
        self._forget(prepared.sql)
        if result.columns is None:
            await self._write(command_complete(result.tag))
            await self._report_zone()
            return
        _require_same(prepared.columns, result.columns)
        before, most = portal.sent, message.most_rows or len(result.rows)
        portal.sent = min(before + most, len(result.rows))
        rows = (result.rows[number] for number in range(before, portal.sent))
        portal.size = await self._rows(result.columns, rows, portal.formats, portal.size)
        if message.most_rows and portal.sent - before == message.most_rows:
            await self._write(PORTAL_SUSPENDED)
        elif before:
            await self._write(command_complete(f"SELECT {portal.sent - before}"))
        else:
            await self._write(command_complete(result.tag))

    def _forget(self, sql: str) -> None:
        """Forget prepared statements that a statement has deallocated."""
        if found := _DEALLOCATE.match(sql):
            name = found["name"]
            if name is None or name.lower() == "all":
                self._statements.clear()
            else:
                self._statements.pop(name[1:-1].replace('""', '"') if name.startswith('"') else name.lower(), None)

    async def _report_zone(self) -> None:
        """Tell the client of a changed time zone."""
        if self._session.zone != self._zone:
            self._zone = self._session.zone
            await self._write(parameter_status("TimeZone", self._zone.key))

    def _statement(self, name: str) -> Statement:
        if name not in self._statements:
            raise SqlStateError("26000", f'There is no prepared statement "{name}".', "Prepare it again.")
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            hint = "A portal ends with its transaction: begin one to fetch rows in several parts."
            raise SqlStateError("34000", f'There is no portal "{name}".', hint)
        return self._portals[name]

    async def _rows(
        self, columns: Sequence[Column], rows: Iterable[Sequence[SqlValue]], formats: Sequence[int], size: int
    ) -> int:
        """Send rows. `size`: bytes of the result so far; the same after these rows is returned."""
        encode = row_encoder(columns, formats, self._session.zone)
        data = bytearray()
        for row in rows:
            data += encode(row)
            if len(data) >= PIECE_BYTES:
                size = await self._piece(data, size)
        return await self._piece(data, size)

    async def _piece(self, data: bytearray, size: int) -> int:
        """Send a part of a result, and empty it. `size`: as of `_rows`."""
        size += len(data)
        refuse_large_result(size, self._limits.result_bytes)
        await self._write(bytes(data))
        data.clear()
        return size


class KeyLostError(SqlStateError):
    """The key of a connection is no longer valid, so the connection ends."""


def as_sql_error(error: GalateaError) -> SqlStateError:
    """The same error with a SQLSTATE: of the request, of something that is down for now, or of the system."""
    if isinstance(error, RequestError):
        return SqlStateError("22023", error.message, error.do)
    if isinstance(error, DependencyUnavailableError):
        return SqlStateError("57P03", error.message, error.do)
    return SqlStateError("58000", error.message, error.do)


def row_encoder(
    columns: Sequence[Column], formats: Sequence[int], zone: tzinfo
) -> Callable[[Sequence[SqlValue]], bytes]:
    """What writes a row as a DataRow message."""
    encoders = [encoder(column, format_, zone) for column, format_ in zip(columns, formats, strict=True)]
    count = len(columns).to_bytes(2, "big")

    def encode(row: Sequence[SqlValue]) -> bytes:
        parts = [count]
        for write, value in zip(encoders, row, strict=True):
            if value is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                data = write(value)
                parts += (len(data).to_bytes(4, "big"), data)
        body = b"".join(parts)
        return b"D" + (len(body) + 4).to_bytes(4, "big") + body

    return encode


def _announced(type_: SqlType) -> SqlType:
    """A parameter of which nothing is known is a text."""
    return SqlType.TEXT if type_ is SqlType.UNKNOWN else type_


def _one_each(formats: Sequence[int], count: int) -> Sequence[int]:
    """One format for each of so many items: none given means text, one is for all."""
    if len(formats) <= 1:
        return (formats[0] if formats else TEXT_FORMAT,) * count
    if len(formats) != count:
        raise ProtocolError(f"A message has {len(formats)} formats for {count} columns.")
    return formats


def _require_same(announced: Sequence[Column] | None, columns: Sequence[Column]) -> None:
    """The client reads the rows by the columns that were described to it."""
    if announced is not None and [each.type for each in announced] != [each.type for each in columns]:
        raise SqlStateError("0A000", "The columns of the statement have changed.", "Prepare it again.")
