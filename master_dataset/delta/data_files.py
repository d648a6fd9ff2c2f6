"""Data files of a Delta table, written by Arrow. The same on a disk and an object store.

Spark's workers import this module. It imports no engine: each worker would load delta-rs anew, 28 MB.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem
from pyarrow.parquet import ParquetWriter

from master_dataset.object_store import ObjectStore, is_remote, object_store, use
from master_dataset.storage import filesystem, open_table, region

if TYPE_CHECKING:
    from datetime import datetime

STATISTICS = "received_at"
"""The one column with statistics: what readers filter by."""
DATA_FILES = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("partition", pa.string()),
        ("rows", pa.int64()),
        ("oldest", pa.timestamp("us", tz="UTC")),
        ("newest", pa.timestamp("us", tz="UTC")),
    ]
)
"""One row for each data file: relative path, bytes, value of the partition column, and bounds of STATISTICS."""
_GROUP_ROWS, _GROUP_BYTES = 100_000, 64 * 1024 * 1024
"""Of a row group, which is in memory while it is written, with raw bytes."""


class TableLayout(NamedTuple):
    """The columns of a table, and the one that it is partitioned by; empty for none, as earlier releases made some."""

    schema: pa.Schema
    partitioned_by: str

    @property
    def partition_columns(self) -> list[str]:
        """The list that Delta Lake expects."""
        return [self.partitioned_by] if self.partitioned_by else []

    def as_made(self, table: str) -> Self:
        """The same with the partitioning that the table has."""
        return self._replace(partitioned_by="".join(open_table(table).metadata().partition_columns))


@dataclass(frozen=True)
class FileWriter:
    """Writes rows as data files of a table. Picklable: Spark's tasks write with it, each its own files.

    Files that no commit adds, for example of a task that failed, are deleted by a later compaction.
    """

    table: str
    layout: TableLayout
    store: ObjectStore

    @classmethod
    def of(cls, table: str, layout: TableLayout) -> "FileWriter":
        """Create the writer for a table that this process can reach. Workers may have no region of their own."""
        store = object_store()
        return cls(table, layout, replace(store, region=region()) if is_remote(table) else store)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write rows, those of one partition after each other. Yields the files as rows of DATA_FILES."""
        use(self.store)  # Spark's worker is another process
        file: _DataFile | None = None
        for value, rows in self._runs(batches):
            if file is None or file.value != value:
                if file is not None:
                    yield file.close()
                file = _DataFile(self, value)
            file.append(rows)
        if file is not None:
            yield file.close()

    def _runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Cut batches where the partition changes."""
        for batch in batches:
            start = 0
            if batch.num_rows and not self.layout.partitioned_by:
                yield "", batch
                continue
            if batch[self.layout.partitioned_by].null_count:
                raise ValueError(f"a row for `{self.table}` has no {self.layout.partitioned_by}")
            runs = pc.run_end_encode(batch[self.layout.partitioned_by]) if batch.num_rows else None
            for value, end in zip(runs.values, runs.run_ends, strict=True) if runs is not None else ():
                yield str(value.as_py()), batch.slice(start, end.as_py() - start)
                start = end.as_py()


class _DataFile:
    """One data file while it is written."""

    def __init__(self, of: FileWriter, value: str) -> None:
        by = of.layout.partition_columns
        self.value = value
        self._path = "/".join([*(f"{name}={value}" for name in by), f"part-{uuid4()}.zstd.parquet"])
        self._schema = pa.schema([field for field in of.layout.schema if field.name not in by])
        files, place = filesystem(f"{of.table}/{self._path}")
        if isinstance(files, LocalFileSystem):
            files.create_dir(place.rpartition("/")[0])
        self._sink = files.open_output_stream(place)
        self._writer = ParquetWriter(
            self._sink, self._schema, compression="zstd", compression_level=3, write_page_checksum=True
        )
        self._kept: list[pa.RecordBatch] = []
        self._rows = self._kept_rows = self._kept_bytes = 0
        self._bounds: list[datetime] = []

    def append(self, rows: pa.RecordBatch) -> None:
        self._kept.append(rows.select(self._schema.names).cast(self._schema))
        self._kept_rows += rows.num_rows
        self._kept_bytes += rows.nbytes
        if STATISTICS in self._schema.names:
            found = pc.min_max(rows[STATISTICS]).as_py()
            self._bounds = sorted(each for each in (*self._bounds, *found.values()) if each is not None)
            self._bounds = self._bounds[:1] + self._bounds[-1:]
        if self._kept_rows >= _GROUP_ROWS or self._kept_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> pa.RecordBatch:
        """Finish it. Returns its row of DATA_FILES."""
        self._flush()
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        oldest, newest = self._bounds or (None, None)
        row = {"path": self._path, "size": size, "partition": self.value, "rows": self._rows}
        return pa.RecordBatch.from_pylist([{**row, "oldest": oldest, "newest": newest}], DATA_FILES)

    def _flush(self) -> None:
        if self._kept:
            self._writer.write_table(pa.Table.from_batches(self._kept))
        self._rows += self._kept_rows
        self._kept, self._kept_rows, self._kept_bytes = [], 0, 0
