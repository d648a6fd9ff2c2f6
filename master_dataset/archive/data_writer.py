"""Parses the records of a micro-batch and writes them as data files, in one pass of Spark's tasks.

    records -> parsed rows -> data files of events, and of dead letters -> the driver, which commits them

What a task returns belongs to the attempt that Spark accepts. Files of other attempts are never committed; a compaction
removes them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.delta.data_files import DATA_FILES, FileWriter
from master_dataset.kafka.partition_progress import (
    PartitionProgress,
    Progress,
    combined,
    count_received,
    progress_of,
)
from master_dataset.kafka.trace_contexts import TraceContexts, trace_contexts_of
from master_dataset.parsing.arrow import released
from master_dataset.parsing.rows import DEAD_LETTER, EVENT, INSTANT, rows

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame

    from master_dataset.registry.terms_history import TermsUntil
    from master_dataset.source import Source

HELD_BYTES = 64 * 1024 * 1024
"""Parsed rows that a task holds before it writes them: the rows of a day are in one file, unless there are more."""
_PROGRESS = "progress"
_MICROSECOND = timedelta(microseconds=1)
WRITTEN = pa.schema(
    [
        ("kind", pa.string()),
        *DATA_FILES,
        ("kafka_partition", pa.int32()),
        ("offset", pa.int64()),
        ("received_at", INSTANT),
        ("events", pa.int64()),
        ("dead_letters", pa.map_(pa.string(), pa.int64())),
        ("oldest_at", INSTANT),
        ("step_back_us", pa.int64()),
        ("received", pa.int64()),
    ]
)
"""What a task returns. A row of kind `event` or `dead_letter` is a data file; `progress` is that of a partition."""
Place = tuple[int, int]
"""Partition and offset."""


class WrittenFiles(NamedTuple):
    """What a micro-batch contains, and its data files by kind, as `DATA_FILES`."""

    progress: Progress
    files: Mapping[str, pa.Table]


@dataclass(frozen=True)
class DataWriter:
    """Runs in Spark's workers: writes records of one source.

    Attributes:
        source: The source.
        terms: Creates the look-up of stores.
        files: By kind, what writes its files.
        written: Places of records that the tables hold already, of a micro-batch that is repeated.
        traces: Collects the traces of the records; None: nobody asks for them.
    """

    source: "Source[Any]"
    terms: "Callable[[], TermsUntil]"
    files: Mapping[str, FileWriter]
    written: frozenset[Place] = field(default_factory=frozenset)
    traces: "Accumulator[TraceContexts] | None" = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Records in, `WRITTEN` out. Every file is complete when its row is returned."""
        newest: dict[int, int] = {}
        received: list[Counter[int]] = []

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                received.append(count_received(batch))
                if self.traces is not None and (found := trace_contexts_of(batch)):
                    self.traces.add(found)
                yield batch

        progress: Progress = {}
        held: list[pa.RecordBatch] = []
        for parsed in rows(self.source, counted(), self.terms()):  # yields one batch for each that it takes
            progress = combined(progress, progress_of(parsed, newest, received.pop()))
            held.append(parsed)
            if sum(each.nbytes for each in held) >= HELD_BYTES:
                yield from self._written(held)
                held = []
        yield from self._written(held)
        yield from _progress_rows(progress)

    def _written(self, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not held:
            return
        parsed = self._missing(pa.Table.from_batches(held))
        for kind, writer in self.files.items():
            own = parsed.filter(pc.equal(parsed["kind"], kind)).select(writer.layout.schema.names)
            ordered = own.sort_by(writer.layout.partitioned_by) if writer.layout.partitioned_by else own
            for file in writer(ordered.to_batches()):
                yield from _rows([{"kind": kind, **row} for row in file.to_pylist()])

    def _missing(self, parsed: pa.Table) -> pa.Table:
        if not self.written:
            return parsed
        places = zip(parsed["partition"].to_pylist(), parsed["offset"].to_pylist(), strict=True)
        return parsed.filter(pa.array([place not in self.written for place in places], pa.bool_()))


def write_files(records: "DataFrame", writer: DataWriter) -> WrittenFiles:
    """Parse and write records, in one Spark job. Nothing is visible before its files are committed."""
    rows = records.mapInArrow(lambda batches: released(writer(batches)), from_arrow_schema(WRITTEN))
    found = rows.toArrow().cast(WRITTEN)
    files = {
        kind: found.filter(pc.equal(found["kind"], kind)).select(DATA_FILES.names) for kind in (EVENT, DEAD_LETTER)
    }
    parts = (_progress(row) for row in found.filter(pc.equal(found["kind"], _PROGRESS)).to_pylist())
    return WrittenFiles(reduce(combined, parts, {}), files)


def _progress_rows(progress: Progress) -> Iterator[pa.RecordBatch]:
    return _rows(
        {
            "kind": _PROGRESS,
            "kafka_partition": partition,
            "offset": each.offset,
            "received_at": each.received_at,
            "events": each.events,
            "dead_letters": list(each.dead_letters.items()),
            "oldest_at": each.oldest_at,
            "step_back_us": each.step_back // _MICROSECOND,
            "received": each.received,
        }
        for partition, each in progress.items()
    )


def _progress(row: Mapping[str, Any]) -> Progress:
    names = ("offset", "received_at", "events", "oldest_at", "received")
    own = {name: row[name] for name in names}
    own["dead_letters"] = Counter(dict(row["dead_letters"]))
    return {row["kafka_partition"]: PartitionProgress(**own, step_back=row["step_back_us"] * _MICROSECOND)}


def _rows(some: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    listed = [{**dict.fromkeys(WRITTEN.names), **row} for row in some]
    return iter([pa.RecordBatch.from_pylist(listed, WRITTEN)] if listed else [])
