"""What a table of the SQL component is: columns, and how the rows that a statement may need are read."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple, Protocol

import pyarrow as pa

from master_dataset.registry.products import ProductMaster
from master_dataset.registry.stores import Store, currency
from serving_layer.keys.key import Caller
from serving_layer.sql.cursors import Cursor
from serving_layer.sql.results import SqlStateError, SqlType
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadVersion
from views.core import View

ColumnValues = Sequence[object]
TEXT, WHOLE, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
DATE, INSTANT = pa.date32(), pa.timestamp("us", "UTC")
SQL_TYPES: Mapping[pa.DataType, SqlType] = {
    TEXT: SqlType.TEXT,
    WHOLE: SqlType.INT8,
    REAL: SqlType.FLOAT8,
    FLAG: SqlType.BOOL,
    DATE: SqlType.DATE,
    INSTANT: SqlType.TIMESTAMPTZ,
}
"""All others are decimals."""
MOST_TEXT_BYTES = 128_000_000
"""Of texts that a statement gathers before DuckDB, which limits its own memory, has them. They are in it twice."""
STORES_AT_ONCE = 8
"""How many stores of a table are read side by side."""
_OVERHEAD_BYTES = 1_000
"""What a table and each of its columns take beside their values."""
PRECISION = 38
LEAST_DIGITS = 2


class TableColumn(NamedTuple):
    """A column of a table. `about`: what it says, as `pg_description` has it."""

    name: str
    type: pa.DataType
    about: str = ""


class Span(NamedTuple):
    """What a statement needs of the column of time of a table: from `first` to `last`, both inclusive; None: no bound.

    Dates for a column of dates, instants for one of instants.
    """

    first: date | datetime | None = None
    last: date | datetime | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be in it."""
        return self.first is not None and self.last is not None and self.first > self.last


EVERYTHING = Span()


@dataclass(frozen=True)
class Needed:
    """What a statement needs of a table: never less than it uses.

    Attributes:
        columns: the names of its columns, in the order of the table.
        span: of the column of time.
        values: by the name of another column the values that count; a column that is not in it has no bounds.
    """

    columns: tuple[str, ...]
    span: Span = EVERYTHING
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal needs, and of what JSON can say."""
        return self.columns, self.span, sorted((name, sorted(values)) for name, values in self.values.items())


class RowBudget:
    """Counts what a statement reads, over all of its tables. Also where a reader finds out that it is over."""

    def __init__(self, most: int) -> None:
        """`most`: rows."""
        self._most, self._read, self._text, self._stopped = most, 0, 0, threading.Event()

    def stop(self) -> None:
        """Let the reading end."""
        self._stopped.set()

    def add(self, rows: int, table: str, hint: str, text: int = 0) -> None:
        """Count rows of a table, and the bytes of their long texts.

        Raises:
            SqlStateError: 54000 if they are more than a statement may read, 53200 if the texts are, 57014 if it was
                stopped.
        """
        self._read += rows
        self._text += text
        if self._stopped.is_set():
            raise SqlStateError("57014", "The statement was canceled.")
        if self._read > self._most:
            message = f"The statement reads more than {self._most:,} rows; the last ones are of `{table}`."
            raise SqlStateError("54000", message, hint)
        if self._text > MOST_TEXT_BYTES:
            message = f"The statement reads more than {MOST_TEXT_BYTES // 1_000_000} MB of texts of `{table}`."
            raise SqlStateError("53200", message, hint)


@dataclass(frozen=True)
class Reading:
    """What the tables of a statement are read from.

    Attributes:
        caller: who reads.
        version: the state of both layers, and the version of the registry.
        stores: the stores that the caller sees, by id; no table holds anything of others.
        cells: the merged cells of both layers, as they are in this transaction.
        now: the time of the transaction.
        masters: by tenant the product master that is read in this transaction, from its first use on.
        budget: how much the statement may read.
        settings: of the session.
        cursors: of the session, by name.
    """

    caller: Caller
    version: ReadVersion
    stores: Mapping[str, Store]
    cells: MergedCells
    now: datetime
    masters: dict[str, ProductMaster | None]
    budget: RowBudget
    settings: Mapping[str, str] = field(default_factory=dict)
    cursors: Mapping[str, Cursor] = field(default_factory=dict)

    def chosen(self, needed: Needed) -> list[Store]:
        """The stores that a statement needs, in order."""
        ids = needed.values.get("store")
        return [self.stores[id_] for id_ in sorted(self.stores if ids is None else ids & self.stores.keys())]


class Table(Protocol):
    """A table. What it reads of, and for whom, is in `Reading`."""

    @property
    def name(self) -> str:
        """Its name in the schema `public`."""

    @property
    def columns(self) -> Sequence[TableColumn]:
        """Its columns, in order."""

    @property
    def key(self) -> Sequence[str]:
        """The columns that no two rows agree in, and that are never null; none if there are none."""

    @property
    def about(self) -> str:
        """What it holds, in a sentence."""

    @property
    def time(self) -> str | None:
        """The name of the column by whose bounds it is read; None if it has none."""

    @property
    def bounded(self) -> frozenset[str]:
        """Other columns by whose values it is read; those of whole numbers as texts."""

    @property
    def is_of_version(self) -> bool:
        """Whether equal versions of what is read have equal rows."""

    @property
    def reads_speed(self) -> bool:
        """Whether rows of the speed layer are part of it, so that it cannot be read without that layer."""

    def views(self, needed: Needed) -> Collection[View]:
        """The views whose merged cells it reads then."""

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """At least the rows that a statement needs, with these columns.

        Raises:
            SqlStateError: 54000, 53200 or 57014, see `RowBudget`.
            GalateaError: what it is read from cannot be read.
        """


class ListTable:
    """What most tables have in common: they have no key, and are read as a whole, for each statement again."""

    key: Sequence[str] = ()
    time: str | None = None
    bounded: frozenset[str] = frozenset()
    is_of_version = False
    reads_speed = False

    def views(self, needed: Needed) -> Collection[View]:  # noqa: ARG002 - those of view tables depend on it
        """None."""
        return ()


class Rows:
    """Rows of a table that are gathered column by column."""

    def __init__(self, columns: Sequence[TableColumn], needed: Needed) -> None:
        """`columns`: of the table; those that are not needed are left out."""
        self._columns = [each for each in columns if each.name in needed.columns]
        self._values: dict[str, list[object]] = {each.name: [] for each in self._columns}

    def has(self, name: str) -> bool:
        """Whether this column is needed."""
        return name in self._values

    def add(self, values: Mapping[str, object]) -> None:
        """Add a row."""
        for name, into in self._values.items():
            into.append(values[name])

    def table(self) -> pa.Table:
        """All rows as a table."""
        return arrow_table(self._columns, self._values)


def arrow_table(columns: Sequence[TableColumn], values: Mapping[str, ColumnValues]) -> pa.Table:
    """A table of columns of values."""
    arrays = [pa.array(values[each.name], each.type) for each in columns]
    return pa.Table.from_arrays(arrays, names=[each.name for each in columns])


async def store_by_store(
    stores: Iterable[Store], read: Callable[[Store], Awaitable[Sequence[pa.Table]]]
) -> list[pa.Table]:
    """What `read` gives of each store, in their order; `STORES_AT_ONCE` are read side by side."""
    turns = asyncio.Semaphore(STORES_AT_ONCE)

    async def of_store(store: Store) -> Sequence[pa.Table]:
        async with turns:
            return await read(store)

    reads = [asyncio.ensure_future(of_store(store)) for store in stores]
    try:
        return [table for tables in await asyncio.gather(*reads) for table in tables]
    finally:  # if one fails, the others need not go on
        for each in reads:
            each.cancel()


def table_size(table: pa.Table) -> int:
    """Bytes, for caches. Also of a table without rows: statements may read any number of those."""
    return int(table.nbytes) + _OVERHEAD_BYTES * (1 + int(table.num_columns))


def empty_table(columns: Sequence[TableColumn]) -> pa.Table:
    """The table without rows."""
    return pa.schema([(each.name, each.type) for each in columns]).empty_table()


def money_type(stores: Mapping[str, Store]) -> pa.DataType:
    """The type of amounts in the major unit: it has the decimals of the currency with the most of them."""
    codes = {store.currency.code for store in stores.values()}
    return pa.decimal128(PRECISION, max((currency(code).digits for code in codes), default=LEAST_DIGITS))
