"""What a session answers to the server: typed columns, rows of Python values, and errors with a SQLSTATE."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from zoneinfo import ZoneInfo

from serving_layer.keys.key import Caller

SqlValue = object
"""None, bool, int, float, str, Decimal, date, datetime with zone, bytes, or a list of these, as the column says."""


class SqlType(StrEnum):
    """The types of columns, by their names in PostgreSQL."""

    BOOL = "bool"
    INT2 = "int2"
    INT4 = "int4"
    INT8 = "int8"
    FLOAT4 = "float4"
    FLOAT8 = "float8"
    NUMERIC = "numeric"
    TEXT = "text"
    NAME = "name"
    CHAR = "char"
    OID = "oid"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    INTERVAL = "interval"
    BYTEA = "bytea"
    TEXT_ARRAY = "_text"
    INT8_ARRAY = "_int8"
    BOOL_ARRAY = "_bool"
    FLOAT8_ARRAY = "_float8"
    NUMERIC_ARRAY = "_numeric"
    DATE_ARRAY = "_date"
    TIMESTAMP_ARRAY = "_timestamp"
    TIMESTAMPTZ_ARRAY = "_timestamptz"
    UUID = "uuid"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Column:
    """A column of a result. `precision` and `scale`: of NUMERIC; None if it has no limits."""

    name: str
    type: SqlType
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True)
class QueryResult:
    """The result of one statement.

    Attributes:
        tag: the command tag, such as `SELECT 3` or `BEGIN`.
        columns: None for a statement without rows, such as `BEGIN`.
        rows: one tuple a row, one value a column.
    """

    tag: str
    columns: Sequence[Column] | None = None
    rows: Sequence[tuple[SqlValue, ...]] = ()


@dataclass(frozen=True)
class Prepared:
    """A statement that was looked at, but not run. `parameters`: the type of `$1`, `$2`, ...; `columns`: as above."""

    sql: str
    parameters: Sequence[SqlType]
    columns: Sequence[Column] | None


class SqlStateError(Exception):
    """A statement that is not answered.

    Attributes:
        code: the SQLSTATE, five characters.
        message: what happened.
        hint: what to do next; None if there is nothing to say.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        """Set the attributes that the class describes."""
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class SqlSession(Protocol):
    """What the server needs of a session: one per connection, and one call at a time, except for `interrupt`."""

    @property
    def transaction(self) -> str:
        """`idle`, `open`, or `failed` after an error inside a transaction."""

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which instants are shown as text."""

    def hold(self, size: int) -> object:
        """Count memory that the connection holds for its client, in bytes, as long as something refers to the result.

        SqlStateError 53200 if the tenant, or all of them together, hold too much.
        """

    def split(self, sql: str) -> Sequence[str]:
        """The statements of a text, without those that are empty or only comments. SqlStateError if it is no SQL."""

    async def prepare(self, sql: str, parameter_types: Sequence[SqlType]) -> Prepared:
        """Look at one statement without running it.

        Args:
            sql: the statement.
            parameter_types: what the client says about `$1`, `$2`, ...; it may say nothing of the last ones, and
                UNKNOWN of any.

        Returns:
            The types of all parameters, and the columns.

        Raises:
            SqlStateError: the statement cannot be answered.
        """

    async def execute(
        self, sql: str, parameters: Sequence[SqlValue] = (), types: Sequence[SqlType] = ()
    ) -> QueryResult:
        """Run one statement.

        Args:
            sql: the statement.
            parameters: the values of `$1`, `$2`, ...
            types: their types, as the statement was prepared.

        Raises:
            SqlStateError: it cannot be answered, takes too long, or was interrupted (57014).
        """

    def cursor_columns(self, name: str) -> Sequence[Column] | None:
        """The columns of a cursor, which clients describe as a portal; None if there is none of this name."""

    def interrupt(self) -> None:
        """End the statement that runs now, if any. Called from the event loop, while `execute` waits."""

    def close(self) -> None:
        """Free what the session holds. Nothing runs any more."""


class SqlSessions(Protocol):
    """Makes sessions."""

    def __call__(self, caller: Caller) -> SqlSession:
        """A session that sees what the caller sees. `caller.tenant` is never None."""


SHORT = 4_000
"""Characters of a statement that is split and read at once; a longer one is in a thread, and is not remembered."""
MOST_DIGITS, MOST_ITEMS = 38, 20_000
"""Digits of a decimal, and items of an array that is given as a parameter or a text, or of all arrays of a row."""


def bounded(digits: str) -> int:
    """The number that is written with digits. Of one with more than `MOST_DIGITS`, its first ones, and one more."""
    return int(digits.lstrip("0")[: MOST_DIGITS + 1] or "0")


def require_few(items: Sequence[object]) -> None:
    """SqlStateError 54000 if an array of these items has no room for another."""
    if len(items) == MOST_ITEMS:
        raise SqlStateError("54000", f"An array has more than {MOST_ITEMS:,} items.", "Send several shorter ones.")
