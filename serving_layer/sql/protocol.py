"""The messages of the PostgreSQL protocol, version 3: what clients send is read, what the server answers is written.

Pure functions over bytes. https://www.postgresql.org/docs/16/protocol-message-formats.html names every field.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from serving_layer.sql.results import Column, SqlStateError
from serving_layer.sql.types import TEXT_FORMAT, WIRE_TYPES, modifier

STARTUP_BYTES = 10_000
"""Of the first message and of a password: PostgreSQL has the same limit."""
PROTOCOL_MAJOR = 3
_CANCEL, _SSL, _GSS = 80877102, 80877103, 80877104
_LENGTH = struct.Struct("!i")
_SHORT = struct.Struct("!h")
_UNSIGNED = struct.Struct("!I")


class ProtocolError(SqlStateError):
    """Bytes that are no message, or a message that makes no sense here. The connection ends."""

    def __init__(self, message: str) -> None:
        """`message`: what is wrong."""
        super().__init__("08P01", message, "Use a client that speaks version 3 of the PostgreSQL protocol.")


# --- from the client --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Startup:
    """Begins a session. `minor`: of the protocol's version; `parameters`: `user`, `database` and settings."""

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class CancelRequest:
    """Ends the statement that runs in another connection, which is named by its numbers."""

    process: int
    secret: int


@dataclass(frozen=True)
class EncryptionRequest:
    """Asks for TLS or, if not `is_tls`, for GSS encryption."""

    is_tls: bool


@dataclass(frozen=True)
class PasswordMessage:
    """The answer to a request for a password."""

    password: str = field(repr=False)


@dataclass(frozen=True)
class Query:
    """Statements to run at once."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """A statement to prepare. `parameter_oids`: types of its parameters; 0: not said."""

    statement: str
    sql: str
    parameter_oids: Sequence[int]


@dataclass(frozen=True)
class Bind:
    """Parameters for a prepared statement, which make a portal. `formats`: 0 text, 1 binary."""

    portal: str
    statement: str
    formats: Sequence[int]
    values: Sequence[bytes | None]
    result_formats: Sequence[int]


@dataclass(frozen=True)
class Describe:
    """Asks for parameters and columns of a prepared statement, or for the columns of a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Execute:
    """Runs a portal. `most_rows`: rows to send before it pauses; 0: all."""

    portal: str
    most_rows: int


@dataclass(frozen=True)
class Close:
    """Forgets a prepared statement or a portal."""

    is_portal: bool
    name: str


@dataclass(frozen=True)
class Sync:
    """Ends a series of extended-protocol messages."""


@dataclass(frozen=True)
class Flush:
    """Asks for the answers so far."""


@dataclass(frozen=True)
class Terminate:
    """Ends the session."""


@dataclass(frozen=True)
class Unsupported:
    """A message of a part of the protocol that is not offered."""

    what: str


Opening = Startup | CancelRequest | EncryptionRequest
Message = Query | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | PasswordMessage | Unsupported


class _Body:
    """Reads the fields of a message, one after the other. Every method raises ProtocolError at a broken one."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _unpack(self, form: struct.Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise ProtocolError("A message ends in the middle of a number.") from error
        self._at += form.size
        return int(value)

    def short(self) -> int:
        return self._unpack(_SHORT)

    def integer(self) -> int:
        return self._unpack(_LENGTH)

    def unsigned(self) -> int:
        return self._unpack(_UNSIGNED)

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("A text in a message has no end.")
        data, self._at = self._data[self._at : end], end + 1
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("A text in a message is not valid UTF-8.") from error

    def octet(self) -> bytes:
        self._at += 1
        return self._data[self._at - 1 : self._at]

    def value(self) -> bytes | None:
        size = self.integer()
        if size == -1:
            return None
        if size < 0 or self._at + size > len(self._data):
            raise ProtocolError("A parameter is longer than its message.")
        self._at += size
        return self._data[self._at - size : self._at]

    def count(self, least_bytes: int) -> int:
        """The number of the items that follow, each of at least so many bytes."""
        count = self.short() & 0xFFFF
        if count * least_bytes > len(self._data) - self._at:
            raise ProtocolError("A message has fewer items than it says.")
        return count

    def formats(self) -> Sequence[int]:
        formats = [self.short() for _ in range(self.count(_SHORT.size))]
        if any(each not in (0, 1) for each in formats):
            raise ProtocolError("A format is neither 0 (text) nor 1 (binary).")
        return formats

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def end(self) -> None:
        if self._at != len(self._data):
            raise ProtocolError("A message has more bytes than fields.")


def read_opening(data: bytes) -> Opening:
    """Read the first message of a connection, without its length. ProtocolError."""
    body = _Body(data)
    code = body.unsigned()
    if code == _CANCEL:
        request = CancelRequest(body.unsigned(), body.unsigned())
        body.end()
        return request
    if code in (_SSL, _GSS):
        body.end()
        return EncryptionRequest(code == _SSL)
    if code >> 16 != PROTOCOL_MAJOR:
        raise ProtocolError(f"Version {code >> 16}.{code & 0xFFFF} of the protocol is not spoken here.")
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    body.end()
    return Startup(code & 0xFFFF, parameters)


def read_message(kind: bytes, data: bytes) -> Message:
    """Read a message by its first byte, and its content without the length. ProtocolError."""
    body = _Body(data)
    read = _READERS.get(kind)
    if read is None:
        raise ProtocolError(f"There is no message of the type {kind!r}.")
    message = read(body)
    body.end()
    return message


def _read_parse(body: _Body) -> Parse:
    name, sql = body.text(), body.text()
    return Parse(name, sql, [body.unsigned() for _ in range(body.count(_UNSIGNED.size))])


def _read_bind(body: _Body) -> Bind:
    portal, statement, formats = body.text(), body.text(), body.formats()
    values = [body.value() for _ in range(body.count(_LENGTH.size))]
    if len(formats) > 1 and len(formats) != len(values):
        raise ProtocolError(f"A Bind message has {len(formats)} formats for {len(values)} parameters.")
    return Bind(portal, statement, formats, values, body.formats())


def _read_name(body: _Body) -> tuple[bool, str]:
    kind, name = body.octet(), body.text()
    if kind not in (b"S", b"P"):
        raise ProtocolError("A name is neither of a statement nor of a portal.")
    return kind == b"P", name


def _read_unsupported(what: str, body: _Body) -> Unsupported:
    while not body.is_at_end:
        body.octet()
    return Unsupported(what)


_READERS: Mapping[bytes, Callable[[_Body], Message]] = {
    b"Q": lambda body: Query(body.text()),
    b"P": _read_parse,
    b"B": _read_bind,
    b"D": lambda body: Describe(*_read_name(body)),
    b"E": lambda body: Execute(body.text(), max(0, body.integer())),
    b"C": lambda body: Close(*_read_name(body)),
    b"S": lambda _: Sync(),
    b"H": lambda _: Flush(),
    b"X": lambda _: Terminate(),
    b"p": lambda body: PasswordMessage(body.text()),
    b"F": lambda body: _read_unsupported("function calls", body),
    b"d": lambda body: _read_unsupported("COPY", body),
    b"c": lambda body: _read_unsupported("COPY", body),
    b"f": lambda body: _read_unsupported("COPY", body),
}

# --- to the client ----------------------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of the server."""
    return kind + _LENGTH.pack(len(body) + _LENGTH.size) + body


def _text(value: str) -> bytes:
    return value.replace("\0", "").encode(errors="replace") + b"\0"


ENCRYPTION_REFUSED, ENCRYPTION_ACCEPTED = b"N", b"S"
AUTHENTICATION_OK = message(b"R", _LENGTH.pack(0))
PASSWORD_WANTED = message(b"R", _LENGTH.pack(3))
"""In clear text: the keys are random and only their digests are kept, from which no challenge can be made."""
PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY_QUERY, PORTAL_SUSPENDED = message(b"n"), message(b"I"), message(b"s")
_STATUS = {"idle": b"I", "open": b"T", "failed": b"E"}


def ready_for_query(transaction: str) -> bytes:
    """The server waits for a message. `transaction`: `idle`, `open` or `failed`."""
    return message(b"Z", _STATUS[transaction])


def parameter_status(name: str, value: str) -> bytes:
    """The value of a setting that clients want to know."""
    return message(b"S", _text(name) + _text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a client needs to cancel a statement."""
    return message(b"K", _UNSIGNED.pack(process) + _UNSIGNED.pack(secret))


def negotiated_version(unknown: Sequence[str]) -> bytes:
    """Only version 3.0 is spoken. `unknown`: options of the protocol that the client asked for."""
    return message(b"v", _LENGTH.pack(0) + _LENGTH.pack(len(unknown)) + b"".join(map(_text, unknown)))


def command_complete(tag: str) -> bytes:
    """A statement has ended."""
    return message(b"C", _text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of the parameters of a prepared statement."""
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[Column], formats: Sequence[int] = ()) -> bytes:
    """The columns of a result. `formats`: one of each column; none: text."""
    parts = [struct.pack("!H", len(columns))]
    for number, column in enumerate(columns):
        wire = WIRE_TYPES[column.type]
        format_ = formats[number] if formats else TEXT_FORMAT
        parts += (_text(column.name), struct.pack("!IhIhih", 0, 0, wire.oid, wire.size, modifier(column), format_))
    return message(b"T", b"".join(parts))


def error_response(error: SqlStateError, severity: str = "ERROR") -> bytes:
    """What is wrong. `severity`: FATAL if the connection ends with it."""
    fields = {b"S": severity, b"V": severity, b"C": error.code, b"M": error.message, b"H": error.hint}
    return message(b"E", b"".join(key + _text(value) for key, value in fields.items() if value) + b"\0")
