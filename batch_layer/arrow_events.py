"""The events of a few days in Arrow, in this process: what `archived`, `deliveries` and `visits` do in Spark.

A rebuild that is small ends before Spark has started. The rules are the same, and so are the blocks, bit for bit:
`tests/integration/test_small_rebuilds.py` compares both.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from batch_layer.deliveries import DEAD_LETTER_PLACE, LATER, PLACE, SENTENCE, Repeats
from batch_layer.master import files_at
from batch_layer.visits import SIGHTING, WHOSE, bundled_visits, visits_of_late
from master_dataset.delta.dataset import arrow_dataset, check_files, report_lost_files, scan
from master_dataset.delta.tables import CONFLICTS, MasterTables, dead_letter_schema, event_schema
from master_dataset.storage import open_table
from master_dataset.visits.rows import VISITS
from master_dataset.visits.visit import VisitRules
from views.arrow.contributions import EVENT_ROW, contributions, whole_stores
from views.arrow.expressions import Rows, evaluate, is_true
from views.core.cells import WINDOW_KEY
from views.core.view import View, fresh_sql

if TYPE_CHECKING:
    from batch_layer.master import Master
    from master_dataset.kafka.growth import Move
    from master_dataset.source import Source

KEYS = frozenset(
    {"topic", "partition", "offset", "received_at", "store", "happened_at", "day"}
    | {"identity", "identity_hash", "payload_hash"}
)
"""The columns that are always read."""
WHOSE_SEEN = frozenset({*WHOSE, "is_inside"})
"""The columns of a sighting that visits are made of, beside its place and times."""
MOST_BYTES = 2**30
"""Of columns of events in this process."""
ROWS_AT_ONCE = 50_000
"""Rows of a batch that a writer is given."""
_DAY_SECONDS = 86_400
_NO_FLAGS = {"is_conflict": pa.array([], pa.bool_()), "is_miskeyed": pa.array([], pa.bool_())}

Read = TypeVar("Read")


class TooManyBytesError(Exception):
    """There are few events, but they are large, so Spark has to read them."""


def unless_too_large(read: Callable[[], Read]) -> Read | None:
    """Return what `read` returns; None if it raises TooManyBytesError, once the memory that it took is free again."""
    try:
        return read()
    except TooManyBytesError:
        pass  # what was read is held until here
    pa.default_memory_pool().release_unused()
    return None


def columns_of(views: Iterable[View]) -> frozenset[str]:
    """The columns of events that views are computed from: of views of visits those of sightings."""
    return frozenset().union(*(WHOSE_SEEN if view.counts_visits else view.columns_read for view in views))


def archived_table(
    source: "Source[Any]",
    master: "Master",
    days: Collection[date],
    columns: Collection[str],
    where: pc.Expression | None = None,
) -> pa.Table:
    """Rows of these days: `KEYS`, and these columns of `event_schema`; null in those that their version lacks.

    Raises:
        TooManyBytesError: They need more memory than this process may take, although they are few. Never of one row.
        MasterFileLostError: A file of them is missing, has another size than the log says, or cannot be read.
    """
    table, wanted = open_table(master.path, master.version), {*KEYS, *columns}
    schema = pa.schema([field for field in event_schema(source) if field.name in wanted])
    of_days = pc.field("day").isin(sorted(days))
    with report_lost_files(table):
        own = [file for file in files_at(master.path, master.version) if file.day in days]
        check_files(master.path, {unquote(file.path): file.size for file in own})
        dataset = arrow_dataset(table, days)
        names = [name for name in schema.names if name in dataset.schema.names]
        scanner = scan(dataset, names, of_days if where is None else of_days & where)
        found = pa.Table.from_batches(_bounded(scanner.to_batches()), scanner.projected_schema)
    arrays, number = [], found.num_rows
    for field in schema:
        if field.name in names:
            arrays.append(found[field.name].cast(field.type).combine_chunks())
            found = found.drop_columns([field.name])  # so that never more than one column is in memory twice
        else:
            arrays.append(pa.nulls(number, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > MOST_BYTES and rows > 1:
            raise TooManyBytesError
        yield batch


class Delivered(NamedTuple):
    """`first`: a row per event. `repeats`: a narrow row for every later delivery, with its flags, as in Spark."""

    first: pa.Table
    repeats: pa.Table


def delivered(archived: pa.Table, moves: "Sequence[Move]" = ()) -> Delivered:
    """Separate first deliveries from repeats, for whole days of one source's table; see `batch_layer.deliveries`."""
    suspects = archived.select(["day", "identity_hash"]).append_column("row", _numbers(archived.num_rows))
    grouped = suspects.group_by(["day", "identity_hash"], use_threads=False).aggregate([("row", "list")])
    several = pc.greater(pc.list_value_length(grouped["row_list"]), 1)
    candidates = pc.list_flatten(grouped["row_list"].filter(several)).combine_chunks()
    if not len(candidates):
        nothing = archived.slice(0, 0).select(LATER)
        return Delivered(archived, _with(nothing, _NO_FLAGS))
    left_out: list[int] = []
    repeats: dict[tuple[int, int, int], tuple[int, bool, bool]] = {}  # by place, each once
    for same in _same_identity(archived, candidates):
        first, *later = same
        left_out += [each.row for each in later]
        for each in later:
            if each.place != first.place:
                flags = _differ(each.payload_hash, first.payload_hash), _is_miskeyed(each, first, moves)
                repeats.setdefault((each.identity_hash, *each.place), (each.row, *flags))
    is_later = pc.is_in(_numbers(archived.num_rows), value_set=pa.array(left_out, pa.int64()))
    rows, conflicts, miskeyed = zip(*repeats.values(), strict=True) if repeats else ((), (), ())
    narrow = archived.select(LATER).take(pa.array(rows, pa.int64()))
    said = {"is_conflict": pa.array(conflicts, pa.bool_()), "is_miskeyed": pa.array(miskeyed, pa.bool_())}
    return Delivered(archived.filter(pc.invert(is_later)), _with(narrow, said))


class _Met(NamedTuple):
    """One delivery. `met`: when the first one of its partition was received."""

    row: int
    identity_hash: int
    partition: int
    offset: int
    met: datetime
    payload_hash: int | None

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.offset


def _same_identity(archived: pa.Table, candidates: pa.Array) -> Iterator[list[_Met]]:
    """The deliveries of each identity that has several, the one that counts first (R3)."""
    columns = archived.select(["identity", "identity_hash", "partition", "offset", "received_at", "payload_hash"])
    columns = columns.take(candidates).append_column("row", candidates).sort_by([("offset", "ascending")])
    by_identity: dict[str, list[_Met]] = {}
    met: dict[tuple[str, int], datetime] = {}
    names = ("identity", "row", "identity_hash", "partition", "offset", "received_at", "payload_hash")
    for identity, row, hash_, partition, offset, received, payload in zip(
        *(columns[name].to_pylist() for name in names), strict=True
    ):
        at = met.setdefault((identity, partition), received)
        by_identity.setdefault(identity, []).append(_Met(row, hash_, partition, offset, at, payload))
    for same in by_identity.values():
        if len(same) > 1:  # a hash alone decides nothing
            yield sorted(same, key=lambda each: (each.met, each.partition, each.offset))


def _differ(one: int | None, other: int | None) -> bool:
    """Of a payload without a hash nothing is known."""
    return None not in (one, other) and one != other


def _is_miskeyed(each: _Met, first: _Met, moves: "Sequence[Move]") -> bool:
    here, there = each.partition, first.partition
    return here != there and all(here % before != there or first.met >= at for before, at in moves)


def repeats_counted(repeats: pa.Table) -> Repeats:
    """As `batch_layer.deliveries.count_repeats`."""
    flags = (pc.sum(repeats[name]).as_py() or 0 for name in ("is_conflict", "is_miskeyed"))
    return Repeats(repeats.num_rows, *flags)


def keep_conflicts_of(tables: MasterTables, source: "Source[Any]", master: "Master", repeats: pa.Table) -> None:
    """Keep the conflicts among these repeats that are not kept yet.

    Each may have a megabyte. Those that are not read together are read in halves, with a commit for each.
    """
    conflicts = repeats.filter(repeats["is_conflict"])
    waiting = [conflicts] if conflicts.num_rows else []
    while waiting:
        part = waiting.pop()
        try:
            _keep(tables, source, master, part)
        except TooManyBytesError:
            half = part.num_rows // 2
            if not half:
                raise
            waiting += [part.slice(half), part.slice(0, half)]


def _keep(tables: MasterTables, source: "Source[Any]", master: "Master", conflicts: pa.Table) -> None:
    places = set(zip(*(conflicts[name].to_pylist() for name in PLACE), strict=True))
    whole = archived_table(source, master, set(conflicts["day"].to_pylist()), ("key", "value"), _at(conflicts))
    kept = _positions(tables.position_table(CONFLICTS, source.topic))
    chosen: dict[tuple[Any, ...], int] = {}
    keys = zip(*(whole[name].to_pylist() for name in (*PLACE, "topic")), strict=True)
    for row, (hash_, partition, offset, topic) in enumerate(keys):
        if (hash_, partition, offset) in places and (topic, partition, offset) not in kept:
            chosen.setdefault((topic, partition, offset), row)
    rows = whole.take(pa.array(list(chosen.values()), pa.int64()))
    said = {"reason": "conflicting_duplicate", "field": "", "sentence": SENTENCE}
    columns = [
        rows[field.name]
        if field.name in rows.schema.names
        else pa.repeat(pa.scalar(said.get(field.name), field.type), rows.num_rows)
        for field in dead_letter_schema(source)
    ]
    if rows.num_rows:
        tables.append_conflict_rows(source, pa.Table.from_arrays(columns, schema=dead_letter_schema(source)))


def _at(conflicts: pa.Table) -> pc.Expression:
    """Rows of the same partition and offset."""
    found = conflicts.group_by("partition", use_threads=False).aggregate([("offset", "list")])
    of_each = (
        (pc.field("partition") == each["partition"]) & pc.field("offset").isin(each["offset_list"])
        for each in found.to_pylist()
    )
    return reduce(or_, of_each)


def _positions(kept: pa.Table) -> set[tuple[Any, ...]]:
    return set(zip(*(kept[name].to_pylist() for name in DEAD_LETTER_PLACE), strict=True))


@dataclass(frozen=True)
class CountedTables:
    """Rows that views count; see `batch_layer.visits.CountedRows`, of which this is the form in Arrow.

    `archived`: every delivery, which only views of visits need.
    """

    archived: pa.Table
    first: pa.Table
    rules: VisitRules
    late_until: datetime

    def of(self, view: View, days: Collection[date]) -> pa.Table:
        """The events that the view counts, or the visits that they make (`VISITS`)."""
        read = view.days_read(days)
        first = _of_days(self.first, read)
        if not view.counts_visits:
            return first
        near = _of_days(self.archived, read)
        fresh = near.filter(is_true(fresh_sql(self.rules), Rows.of(near)))
        sightings = _sightings(fresh, ("partition", "offset"))
        made = list(bundled_visits(self.rules)(iter(sightings.to_batches())))
        return pa.concat_tables(
            [pa.Table.from_batches(made, VISITS), late_visits_of(first, self.rules, self.late_until)]
        )


def _of_days(rows: pa.Table, days: Collection[date]) -> pa.Table:
    """The rows of these days; the table itself, not a copy, if it has no others."""
    if set(pc.unique(rows["day"]).to_pylist()) <= set(days):
        return rows
    return rows.filter(pc.is_in(rows["day"], value_set=pa.array(sorted(days), pa.date32())))


def late_visits_of(first: pa.Table, rules: VisitRules, until: datetime) -> pa.Table:
    """As `batch_layer.visits.late_visits`."""
    is_late = pc.invert(is_true(fresh_sql(rules), Rows.of(first)))
    late = first.filter(pc.and_(is_late, pc.less(first["received_at"], until)))
    made = list(visits_of_late(rules)(iter(_sightings(late, ("happened_ms",)).to_batches())))
    return pa.Table.from_batches(made, VISITS)


def _sightings(rows: pa.Table, order: tuple[str, ...]) -> pa.Table:
    """Sightings grouped by store, device and business day; those of a partition keep its order."""
    columns = Rows.of(rows)
    instants = (evaluate(f"unix_millis({name})", columns) for name in ("received_at", "happened_at"))
    narrow = rows.select([*WHOSE, "partition", "offset", "is_inside"])
    narrow = _with(narrow, dict(zip(SIGHTING[:2], instants, strict=True)))
    return narrow.sort_by([(name, "ascending") for name in (*WHOSE, *order)])


def cell_batches(view: View, rows: pa.Table, cut: datetime, days: Collection[date]) -> Iterator[pa.RecordBatch]:
    """What each row adds to its cell, as `batch_layer.blocks.cell_rows` has it: sorted by store and day."""
    for some in whole_stores(rows):
        counted = some.filter(pc.less(some["received_at"], cut))
        yield from _cell_table(view, counted, days).to_batches(max_chunksize=ROWS_AT_ONCE)


def _cell_table(view: View, counted: pa.Table, days: Collection[date]) -> pa.Table:
    found = contributions(view, Rows.of(counted))
    found = pa.table(
        {
            "store": counted["store"].take(found[EVENT_ROW]),
            "day": days_of(found[WINDOW_KEY]),
            **{name: found[name] for name in found.column_names if name != EVENT_ROW},
        }
    )
    found = found.filter(pc.is_in(found["day"], value_set=pa.array(sorted(days), pa.date32())))
    return found.sort_by([("store", "ascending"), ("day", "ascending")])


def days_of(windows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The UTC day of each window."""
    return pc.floor(pc.divide(windows.cast(pa.float64()), _DAY_SECONDS)).cast(pa.int32()).cast(pa.date32())


def _numbers(number: int) -> pa.Array:
    return pa.array(range(number), pa.int64())


def _with(table: pa.Table, columns: Mapping[str, Iterable[Any]]) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table
