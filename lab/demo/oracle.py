"""The oracle: every cell recomputed by DuckDB from the raw bytes of the master files, to compare with what is shown.

It is independent on purpose: it shares no parsing, deduplication or sums with the product (`oracle.sql`). From the
product it takes only the list of files in the Delta log, and which records are events at all.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core.view import View
from views.registry import registered_views

SQL = (Path(__file__).parent / "oracle.sql").read_text()
RECORD = {"partition": pa.int32(), "offset": pa.int64(), "received_at": pa.timestamp("us", "UTC"), "value": pa.binary()}
EXAMPLES = 10


@dataclass(frozen=True)
class DeliveryCounts:
    """How the records of the master dataset divide into events and others.

    `old`: events that the speed layer leaves to the next publication; `old_deliveries` adds their repeats and those of
    older events, which the speed layer may no longer remember.
    """

    events: int
    duplicates: int
    conflicts: int
    old: int
    old_deliveries: int


@dataclass(frozen=True)
class ViewComparison:
    """The comparison of one view. `cells`: of both sides. `examples`: the first differences as text."""

    view: str
    cells: int
    differing: int
    examples: Sequence[str]


class Oracle:
    """A DuckDB database in memory. Use it as a context manager."""

    def __init__(self, currencies: Mapping[str, str], oldest: timedelta, *, memory: str = "600MB") -> None:
        """`currencies`: store to ISO 4217 code, EUR where there is none. `oldest`: A of R5."""
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory,
            "temp_directory": tempfile.gettempdir(),  # its default is the working directory
            "threads": 2,
            "preserve_insertion_order": False,
        }
        self._db = duckdb.connect(config=config)
        self._db.execute("SET TimeZone = 'UTC'")
        self._set("oldest_us", oldest // timedelta(microseconds=1))
        self._db.execute("CREATE TABLE shop (store VARCHAR, currency VARCHAR)")
        listed = pa.table({"store": list(currencies), "currency": list(currencies.values())})
        self._db.from_arrow(listed).insert_into("shop")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self._db.close()

    def recompute(self, records: duckdb.DuckDBPyRelation, cut: datetime, store: str | None = None) -> None:
        """Recompute all cells, or those of one store, from these records (columns of RECORD) at a published cut."""
        records.create_view("record", replace=True)
        self._set("cut_us", int(cut.timestamp() * 1_000_000))
        self._set("only_store", store)
        self._db.execute(SQL)

    def master(self, table: DeltaTable, days: Iterable[date] | None = None) -> duckdb.DuckDBPyRelation:
        """Return the records of the files in the Delta log, of all UTC days or some."""
        chosen = None if days is None else [("day", "in", [day.isoformat() for day in days])]
        files = table.file_uris(chosen)
        return self._db.read_parquet(files, hive_partitioning=False) if files else self.records([])

    def records(self, rows: Sequence[tuple[int, int, datetime, bytes]]) -> duckdb.DuckDBPyRelation:
        """Return records given as rows: partition, offset, received_at, value."""
        columns = [[row[place] for row in rows] for place in range(len(RECORD))]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, RECORD.values(), strict=True)]
        return self._db.from_arrow(pa.Table.from_arrays(arrays, names=list(RECORD)))

    def deliveries(self) -> DeliveryCounts:
        """Return how the records divide."""
        counts = self._db.execute(
            "SELECT count_if(nth = 1), count_if(nth > 1 AND NOT is_conflict), count_if(nth > 1 AND is_conflict), "
            "count_if(nth = 1 AND is_old), count_if(is_old) FROM delivery"
        ).fetchone()
        return DeliveryCounts(*(counts or (0, 0, 0, 0, 0)))

    def cells(self, view: View) -> dict[tuple[object, ...], tuple[int, ...]]:
        """Return the states by (store, window in seconds since 1970, dimensions), in the order of the view."""
        keys = _keys(view)
        names = ", ".join(f'"{name}"' for name in (*keys, *view.columns))
        rows = self._db.execute(f"SELECT {names} FROM {view.name}").fetchall()  # noqa: S608 - names of our own views
        return {row[: len(keys)]: tuple(int(value) for value in row[len(keys) :]) for row in rows}

    def show(self, view: View, cells: Iterable[pa.Table]) -> None:
        """Load what the product shows: columns store, window, dimensions, states."""
        self._db.execute(f"CREATE OR REPLACE TABLE shown_{view.name} AS FROM {view.name} LIMIT 0")
        for part in cells:
            self._db.from_arrow(part).insert_into(f"shown_{view.name}")

    def compare(self, view: View) -> ViewComparison:
        """Compare every cell of both sides. A cell that only one side has differs, as does one shown twice."""
        keys = ", ".join(f'"{name}"' for name in _keys(view))
        mine, theirs = (", ".join(f'{side}."{name}"' for name in view.columns) for side in ("o", "s"))
        self._db.execute(
            f"CREATE OR REPLACE VIEW compared AS SELECT {keys}, [{mine}]::BIGINT[] AS recomputed, "  # noqa: S608 - names of our own views
            f"[{theirs}]::BIGINT[] AS shown FROM {view.name} o FULL JOIN shown_{view.name} s USING ({keys})"
        )
        row = self._db.execute(
            "SELECT count(*), count(*) FILTER (recomputed IS DISTINCT FROM shown), "  # noqa: S608 - names of our own views
            f"count(*) - count(DISTINCT ({keys})) FROM compared"
        ).fetchone()
        cells, differing, repeated = row or (0, 0, 0)
        found = self._db.execute(
            f"SELECT {keys}, shown, recomputed FROM compared WHERE recomputed IS DISTINCT FROM shown "  # noqa: S608 - names of our own views
            f"ORDER BY {keys} LIMIT {EXAMPLES}"
        ).fetchall()
        examples = [_example(view, each) for each in found]
        if repeated:
            examples.append(f"{view.name}: {repeated} cells are shown twice")
        return ViewComparison(view.name, cells, differing + repeated, examples)

    def _set(self, name: str, value: object) -> None:
        self._db.execute(f"SET VARIABLE {name} = ?", [value])


def _keys(view: View) -> tuple[str, ...]:
    return ("store", "window", *view.dimensions)


def _example(view: View, row: tuple[object, ...]) -> str:
    *key, shown, recomputed = row
    where = " ".join(f"{name}={value}" for name, value in zip(_keys(view), key, strict=True))
    return f"{view.name} {where}: shown {shown}, recomputed {recomputed} ({', '.join(view.columns)})"


def receipt_views() -> Sequence[View]:
    """Return the views over receipts. The simulated sensors are not compared."""
    return [view for view in registered_views() if view.source.topic == POS_TRANSACTIONS.topic]
