"""Processes that commit to the same tables at once, as the archive, replays, a compaction and an export do."""

from datetime import date, timedelta

import pyarrow as pa

from batch_layer.maintenance.export import CorrectedTable
from master_dataset.delta.append import Writer, append, commit_files
from master_dataset.delta.compaction import Compaction
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import DATA_FILES, FileWriter, TableLayout
from master_dataset.object_store import ObjectStore, use
from views.registry import registered_views

LAYOUT = TableLayout(
    pa.schema([("number", pa.int64()), ("received_at", pa.timestamp("us", tz="UTC")), ("day", pa.date32())]), "day"
)
DAYS = 3
_US = 1_000_000
_DAY_US = 86_400 * _US


def rows_of(number: int) -> pa.Table:
    """One row a day; each with a number of its own."""
    at = [1_790_000_000 * _US + number + day * _DAY_US for day in range(DAYS)]
    days = [each // _DAY_US for each in at]
    numbers = [number * DAYS + day for day in range(DAYS)]
    arrays = [pa.array(numbers), pa.array(at, LAYOUT.schema.field("received_at").type)]
    return pa.table([*arrays, pa.array(days, pa.int32()).cast(pa.date32())], schema=LAYOUT.schema)


def create(store: ObjectStore, table: str) -> None:
    """Create the table of these writers."""
    use(store)
    create_table(table, LAYOUT)


def archive(store: ObjectStore, table: str, query: str, numbers: range) -> None:
    """Commit micro-batches of one query."""
    use(store)
    for batch, number in enumerate(numbers):
        written = FileWriter(table, LAYOUT, store)(rows_of(number).to_batches())
        files = pa.Table.from_batches(written, DATA_FILES)
        commit_files(table, LAYOUT, files, Writer(query, batch), f"{query} {batch}")


def append_small(store: ObjectStore, table: str, numbers: range) -> None:
    """Commit small appends, of which several processes take turns."""
    use(store)
    for number in numbers:
        append(table, rows_of(number), LAYOUT)


def compact(store: ObjectStore, table: str, times: int) -> None:
    """Compact again and again, as the one process that holds the lease."""
    use(store)
    for _ in range(times):
        Compaction(lambda: None, 7).run(table, lambda *_: None)


EXPORTED, FIRST_DAY, EXPORTED_DAYS = registered_views()[0], date(2026, 9, 21), 3


def exported_day(publication: int) -> date:
    """The day that an export of this publication writes again."""
    return FIRST_DAY + timedelta(days=publication % EXPORTED_DAYS)


def export(store: ObjectStore, root: str, publications: range) -> None:
    """Write one day of one view for each publication, as the one process that holds the lease of exports."""
    use(store)
    table = CorrectedTable(None, root, EXPORTED)  # cells come from here, not from Cassandra
    for publication in publications:
        day = exported_day(publication)
        values = {"day": day, "run": f"run-{publication}"}
        arrays = [
            pa.array([values.get(field.name, 0 if pa.types.is_integer(field.type) else None)], field.type)
            for field in table._schema  # noqa: SLF001 - of the product
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=table._schema)  # noqa: SLF001 - likewise
        days = None if publication == publications.start else {day}
        table._write(pa.RecordBatchReader.from_batches(table._schema, [batch]), days, publication)  # noqa: SLF001 - likewise
