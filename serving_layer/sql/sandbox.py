"""The database that runs statements: DuckDB in memory, which can reach nothing but the tables that are put into it.

A sandbox serves one visibility scope at a time and one statement at a time, in a process of its own, so that it can
always be ended. It reads no file and no variable of the process, loads no extension and cannot be configured, so even a
statement that slips through the refusals of `statements` finds nothing to read but the caller's own rows.
"""

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from serving_layer.sql.database_process import DatabaseEndedError, DatabaseProcess
from serving_layer.sql.error_messages import (
    LESS_MEMORY,
    MOST_CHARACTERS,
    TOO_LONG,
    ended_error,
    execution_error,
    refuse_large_result,
    stream_error,
)
from serving_layer.sql.held_rows import HeldRows, ResultMemory
from serving_layer.sql.results import MOST_ITEMS, Column, SqlStateError, SqlType, SqlValue

if TYPE_CHECKING:
    from serving_layer.sql.database import Setting

_BOUNDED = (
    ("repeat", "t, n", "t, CASE WHEN n * len(t) > {most} THEN error('{error}') ELSE n END"),
    ("lpad", "t, n, f", "t, CASE WHEN n > {most} THEN error('{error}') ELSE n END, f"),
    ("rpad", "t, n, f", "t, CASE WHEN n > {most} THEN error('{error}') ELSE n END, f"),
)
"""Functions, their parameters, and what they are called with. The macros hide the functions of the same name."""
_MACROS = [
    f"CREATE MACRO {name}({parameters}) AS system.main.{name}({arguments.format(most=MOST_CHARACTERS, error=TOO_LONG)})"
    for name, parameters, arguments in _BOUNDED
]
_OVERHEAD_MB = 512
"""What its process may allocate in addition to the memory that DuckDB counts: tables, texts, and itself."""
_LEAVES_MEMORY = frozenset({"53200", "54000"})
"""Errors after which a process is not kept: it may not give back what it has taken."""
MOST_SANDBOXES = 8
"""Databases that are used or kept. More are used only if more statements may run at once."""
VALUES_AT_ONCE = 20_000
"""How many values become Python values at once. Arrow lets no other thread of the component run meanwhile."""
_WIDEST = 4
"""Bytes of a character in a Python text."""
_OUTSIDE_LATIN, _OUTSIDE_PLANE = 0xC4, 0xF0
"""First bytes, in UTF-8, of characters with which each character of a Python text takes two bytes, or four."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
BEYOND = "A date or an instant is beyond the years 1 to 9999."

_TYPES: Mapping[str, SqlType] = {
    "BOOLEAN": SqlType.BOOL,
    "TINYINT": SqlType.INT2,
    "UTINYINT": SqlType.INT2,
    "SMALLINT": SqlType.INT2,
    "USMALLINT": SqlType.INT4,
    "INTEGER": SqlType.INT4,
    "UINTEGER": SqlType.INT8,
    "BIGINT": SqlType.INT8,
    "UBIGINT": SqlType.NUMERIC,
    "HUGEINT": SqlType.NUMERIC,
    "UHUGEINT": SqlType.NUMERIC,
    "FLOAT": SqlType.FLOAT4,
    "DOUBLE": SqlType.FLOAT8,
    "VARCHAR": SqlType.TEXT,
    "DATE": SqlType.DATE,
    "TIME": SqlType.TIME,
    "TIMESTAMP": SqlType.TIMESTAMP,
    "TIMESTAMP_S": SqlType.TIMESTAMP,
    "TIMESTAMP_MS": SqlType.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": SqlType.TIMESTAMPTZ,
    "INTERVAL": SqlType.INTERVAL,
    "BLOB": SqlType.BYTEA,
    "VARCHAR[]": SqlType.TEXT_ARRAY,
    "SMALLINT[]": SqlType.INT8_ARRAY,
    "INTEGER[]": SqlType.INT8_ARRAY,
    "BIGINT[]": SqlType.INT8_ARRAY,
    "BOOLEAN[]": SqlType.BOOL_ARRAY,
    "FLOAT[]": SqlType.FLOAT8_ARRAY,
    "DOUBLE[]": SqlType.FLOAT8_ARRAY,
    "HUGEINT[]": SqlType.NUMERIC_ARRAY,
    "DATE[]": SqlType.DATE_ARRAY,
    "TIMESTAMP[]": SqlType.TIMESTAMP_ARRAY,
    "TIMESTAMP WITH TIME ZONE[]": SqlType.TIMESTAMPTZ_ARRAY,
    '"NULL"': SqlType.TEXT,
}
_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "INTEGER_LITERAL"})


class Limits(NamedTuple):
    """What one statement may use.

    memory_mb: of the database that runs it.
    rows: of its result.
    result_bytes: of its result in memory, which DuckDB does not count.
    """

    memory_mb: int = 256
    rows: int = 200_000
    result_bytes: int = 100_000_000


class Found(NamedTuple):
    """Columns and rows of a query."""

    columns: Sequence[Column]
    rows: Sequence[tuple[SqlValue, ...]]


class Sandbox:
    """One database. Its methods block, so they are called in a thread; `interrupt` may be called from any."""

    def __init__(self, zone: str, limits: Limits, setup: Sequence[str] = ()) -> None:
        """Start its process, and open it.

        Args:
            zone: the time zone in which dates become instants and instants are cut.
            limits: what a statement may use.
            setup: statements that are run before the configuration is locked.
        """
        self._limits, self._setup = limits, setup
        try:
            self._process = DatabaseProcess(limits.memory_mb + _OVERHEAD_MB)
        except OSError as error:
            raise ended_error(was_killed=False, has_begun=False) from error
        try:
            self.open(zone)
        except BaseException:
            self.close()
            raise

    def open(self, zone: str) -> None:
        """Begin with an empty database, such as for another visibility scope. `zone`: as above."""
        settings: dict[str, Setting] = {
            "access_mode": "automatic",
            "allow_community_extensions": "false",
            "allow_unsigned_extensions": "false",
            "async_threads": "1",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "integer_division": "true",
            "memory_limit": f"{self._limits.memory_mb}MB",
            "python_enable_replacements": "false",
            "temp_directory": "",
            "threads": "1",
        }
        with _errors():
            self._process.open(
                settings, [("SET TimeZone = ?", [zone]), *((each, ()) for each in (*_MACROS, *self._setup))]
            )

    @property
    def is_alive(self) -> bool:
        """Whether it can run another statement."""
        return self._process.is_alive

    def close(self) -> None:
        """End its process."""
        self._process.close()

    def interrupt(self) -> None:
        """Let the running statement fail with 57014. If it does not, its process is ended after a while."""
        self._process.interrupt()

    @contextmanager
    def holding(self, tables: Mapping[str, pa.Table]) -> Iterator[None]:
        """Have these tables, by name, until the end of the block.

        Raises:
            SqlStateError: 57014 if adding or removing them was interrupted. Whoever interrupts closes the sandbox then,
                because it may hold some.
        """
        held: list[str] = []
        try:
            with _errors():
                for name, table in tables.items():
                    self._process.hold(name, table)
                    held.append(name)
            yield
        finally:
            try:
                with _errors():
                    for name in held:
                        self._process.drop(name)
            except BaseException:
                self.close()
                raise

    def describe(self, sql: str) -> Sequence[Column]:
        """The columns of a query, without running it."""
        with _errors():
            return [_column(name, kind) for name, kind in self._process.prepare(sql)]

    def query(self, sql: str, rows: HeldRows | None = None) -> Found:
        """Run a query in the dialect of DuckDB.

        Args:
            sql: the query.
            rows: where its rows are added; None: to a list that nobody counts.

        Raises:
            SqlStateError: 57014 if it was interrupted, 53200 if it needs more memory than there is, 54000 if it has
                more rows or bytes than a result may have, and what else is wrong with it.
        """
        with self._closed_if_large(), _errors():
            described = self._process.prepare(sql)
            if any(_is_shown_as_text(kind) for _, kind in described):
                self._process.prepare(_with_texts(sql, described))
            columns = [_column(name, kind) for name, kind in described]
            rows = rows if rows is not None else ResultMemory(sys.maxsize).rows("")
            try:
                self._add(rows, columns)
            except BaseException:
                rows.release()
                raise
        return Found(columns, rows)

    @contextmanager
    def _closed_if_large(self) -> Iterator[None]:
        try:
            yield
        except SqlStateError as error:
            if error.code in _LEAVES_MEMORY:
                self.close()
            raise

    def _add(self, rows: HeldRows, columns: Sequence[Column]) -> None:
        limits, size = self._limits, 0
        try:
            while (batch := self._process.fetch()) is not None:
                size += batch.nbytes
                refuse_large_result(size, limits.result_bytes)
                values = sum(map(_number_of_values, batch.columns))
                rows.reserve(sum(map(_python_bytes, batch.columns)), values)
                _refuse_many_items(batch)
                at_once = max(1, batch.num_rows * VALUES_AT_ONCE // max(1, values))
                for start in range(0, batch.num_rows, at_once):
                    rows += _rows(batch.slice(start, at_once), columns)
                if len(rows) > limits.rows:
                    break
        except OSError as error:
            raise stream_error(error) from error
        if len(rows) > limits.rows:
            message = f"The result has more than {limits.rows:,} rows."
            raise SqlStateError("54000", message, "Aggregate further, filter, or add a LIMIT.")

    def constant(self, expression: str) -> tuple[date | None, int | None, str | None]:
        """The value of an expression without columns as a date, in microseconds since 1970, and as a text.

        Each is None where it is none: texts are those of texts and whole numbers alone.
        """
        of = f"(SELECT {expression} AS v)"
        casts = "try_cast(v AS DATE)::VARCHAR, epoch_us(try_cast(v AS TIMESTAMPTZ))"
        with _errors():
            try:
                [(kind, text)] = self._process.values(f"SELECT typeof(v), v::VARCHAR FROM {of}")  # noqa: S608 - checked before
                if kind in _WHOLE:
                    return None, None, text
                [(day, micros)] = self._process.values(f"SELECT {casts} FROM {of}")  # noqa: S608 - checked before
            except duckdb.InterruptException:
                raise
            except duckdb.Error:
                return None, None, None
        return _read_date(day), micros, text if kind == "VARCHAR" else None

    def serialized(self, sql: str) -> str:
        """The syntax tree of a text, as JSON."""
        with _errors():
            [(tree,)] = self._process.values("SELECT json_serialize_sql(?)", sql)
        return str(tree)

    def explain(self, sql: str) -> Sequence[str]:
        """The lines of the plan of a query."""
        with _errors():
            found = self._process.values(f"EXPLAIN {sql}")
        return [line for _, text in found for line in str(text).splitlines()]


InThread = Callable[[Callable[[], Any], Callable[[], None]], Awaitable[Any]]
"""Calls something that blocks in a thread; the second function interrupts it if the caller is cancelled."""


class Sandboxes:
    """Databases for statements. Some that nothing uses are kept, because starting one takes a third of a second."""

    def __init__(self, limits: Limits, setup: Sequence[str]) -> None:
        """Start none. Arguments: as of a `Sandbox`."""
        self._limits, self._setup = limits, setup
        self._idle: dict[Sandbox, tuple[str, str]] = {}
        self._used = 0

    @asynccontextmanager
    async def of(self, scope: str, zone: str, in_thread: InThread) -> AsyncIterator[Sandbox]:
        """Have a database for this visibility scope and time zone. All callers are in one event loop.

        Raises:
            SqlStateError: none can be started.
        """
        self._used += 1
        try:
            sandbox, is_open = self._take(scope, zone)
            if sandbox is None:
                sandbox = await in_thread(lambda: Sandbox(zone, self._limits, self._setup), lambda: None)
            elif not is_open:
                await in_thread(partial(self._open, sandbox, zone), sandbox.interrupt)
            try:
                yield sandbox
            except SqlStateError:
                raise
            except BaseException:  # what it holds is not known
                sandbox.close()
                raise
            finally:
                if sandbox.is_alive and len(self._idle) + self._used <= MOST_SANDBOXES:
                    self._idle[sandbox] = scope, zone
                else:
                    sandbox.close()
        finally:
            self._used -= 1

    def close(self) -> None:
        """End all that nothing uses."""
        for sandbox in self._idle:
            sandbox.close()
        self._idle.clear()

    def _take(self, scope: str, zone: str) -> tuple[Sandbox | None, bool]:
        """A kept one, and whether it is open for these; if none is, the one unused for longest. None: start another."""
        for sandbox in [each for each in self._idle if not each.is_alive]:
            del self._idle[sandbox]
            sandbox.close()
        found = next((sandbox for sandbox, of in reversed(self._idle.items()) if of == (scope, zone)), None)
        if found is None and len(self._idle) + self._used > MOST_SANDBOXES:
            found = next(iter(self._idle), None)
        return found, found is not None and self._idle.pop(found) == (scope, zone)

    @staticmethod
    def _open(sandbox: Sandbox, zone: str) -> None:
        try:
            sandbox.open(zone)
        except BaseException:
            sandbox.close()
            raise


def _read_date(text: str | None) -> date | None:
    """None also for a date beyond the years that Python knows."""
    with suppress(ValueError):
        return None if text is None else date.fromisoformat(text)
    return None


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise execution_error(error) from error
    except DatabaseEndedError as error:
        raise ended_error(was_killed=error.was_killed, has_begun=error.has_begun) from error
    except MemoryError as error:
        raise SqlStateError("53200", "The statement needs more memory than there is.", LESS_MEMORY) from error


_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)(\[\])?")


def _column(name: str, kind: str) -> Column:
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return Column(name, _TYPES.get(kind, SqlType.TEXT))
    if decimal[3]:
        return Column(name, SqlType.NUMERIC_ARRAY)
    return Column(name, SqlType.NUMERIC, int(decimal[1]), int(decimal[2]))


def _is_shown_as_text(kind: str) -> bool:
    return kind not in _TYPES and not _DECIMAL.fullmatch(kind)


def _with_texts(sql: str, described: Sequence[tuple[str, str]]) -> str:
    """The query with columns that PostgreSQL has no type for as text."""
    names = [f"c{number}" for number in range(len(described))]
    chosen = (
        f"CAST({name} AS VARCHAR) AS {name}" if _is_shown_as_text(kind) else name
        for name, (_, kind) in zip(names, described, strict=True)
    )
    return f"SELECT {', '.join(chosen)} FROM ({sql}) AS shown({', '.join(names)})"  # noqa: S608 - a query of ours


def _number_of_values(array: pa.Array) -> int:
    return len(array) + (len(array.flatten()) if pa.types.is_list(array.type) else 0)


def _refuse_many_items(batch: pa.RecordBatch) -> None:
    """SqlStateError 54000 if the arrays of a row have more than `MOST_ITEMS` together: a row is sent as a whole."""
    lists = [each for each in batch.columns if pa.types.is_list(each.type)]
    if lists:
        items = sum(pc.fill_null(pc.list_value_length(each), 0).cast(pa.int64()).to_numpy() for each in lists)
        if int(np.max(items, initial=0)) > MOST_ITEMS:
            message = f"The arrays of a row have more than {MOST_ITEMS:,} items."
            raise SqlStateError("54000", message, "Return rows instead of arrays, as with `unnest`.")


def _python_bytes(array: pa.Array) -> int:
    """What Python needs at most for the bytes of these values: one wide character makes a whole text wide."""
    if pa.types.is_nested(array.type):
        return _WIDEST * int(array.nbytes)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)) or array.nbytes == 0:
        return int(array.nbytes)
    _, _, text = array.buffers()
    highest = int(np.frombuffer(text, np.uint8).max()) if text is not None and text.size else 0
    return int(array.nbytes) * (_WIDEST if highest >= _OUTSIDE_PLANE else 2 if highest >= _OUTSIDE_LATIN else 1)


def _rows(batch: pa.RecordBatch, columns: Sequence[Column]) -> list[tuple[SqlValue, ...]]:
    values = [_values(array, column) for array, column in zip(batch.columns, columns, strict=True)]
    return list(zip(*values, strict=True)) if values else [()] * batch.num_rows


def _values(array: pa.Array, column: Column) -> list[SqlValue]:
    if column.type is SqlType.TIMESTAMPTZ:
        micros = array.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
        return [None if at is None else _instant(at) for at in micros]
    try:
        found: list[SqlValue] = array.to_pylist()
    except (OverflowError, ValueError) as error:
        raise SqlStateError("22008", BEYOND, None) from error
    if column.type is SqlType.INTERVAL:
        return [None if each is None else interval_text(*each) for each in found]  # type: ignore[misc]  # a triple
    if column.type is SqlType.NUMERIC and column.scale is None:
        return [None if each is None else Decimal(str(each)) for each in found]
    return found


def _instant(micros: int) -> datetime:
    try:
        return _EPOCH + micros * _MICROSECOND
    except OverflowError as error:
        raise SqlStateError("22008", BEYOND, None) from error


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """An interval as PostgreSQL writes it."""
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts = [
        f"{number} {name}" if abs(number) == 1 else f"{number} {name}s"
        for number, name in ((years, "year"), (months, "mon"), (days, "day"))
        if number
    ]
    micros = abs(nanoseconds) // 1000
    if micros or not parts:
        seconds, micros = divmod(micros, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        fraction = f".{micros:06}".rstrip("0") if micros else ""
        parts.append(f"{'-' if nanoseconds < 0 else ''}{clock}{fraction}")
    return " ".join(parts)
