"""Runs: a run writes cells under its own name and deletes nothing. A publication makes them visible (R11)."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType, Statement

from batch_layer.blocks import Blocks, made_schema
from batch_layer.day_cells import DayCells, PartBuffer, calendar_of
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.registry.registry import Registry
from views.core.cut import month_of
from views.core.day_cells import DayParts, DayShape
from views.core.large_blocks import days_of_parts, note_of, parts_of
from views.core.local_time import BusinessDays
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from cassandra.query import PreparedStatement

Manifest = Mapping[tuple[str, date], str]
"""(view, day) to the run that wrote its cells."""

_IN_FLIGHT = 32
_LARGE = 100_000
"""Characters or bytes of a row. Larger ones are written one after another: the driver refuses a message while its
socket has no room, which happens with megabytes under way."""
_ROWS_TOGETHER = 100
"""Rows of a manifest that one request writes."""
_REQUEST_CHARACTERS = 30_000
"""Cassandra rejects batches of more than 50 KiB by default. A larger block is written without a batch."""

Row = dict[str, Any]
_SELECT = "SELECT block FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ? AND day = ?"
BlockKey = tuple[str, str, date, str, date]
"""View, store, month, run and day."""


class Digest(NamedTuple):
    """Of a block: equal texts, equal cells. `sums`: of each state over its cells; None where a state has no value."""

    text: str
    cells: int
    sums: Sequence[int | None]


Digests = dict[str, Digest]
"""By store."""


def written_schema(view: View) -> pa.Schema:
    """A row per block that was written: store, day, cells, the sum of each state, digest."""
    return pa.schema([*made_schema(view), ("digest", pa.string())]).remove(2)


def run_schema(view: View) -> pa.Schema:
    """`written_schema`, and the names of the parts that hold the day cells of the block, separated by blanks."""
    return pa.schema([*written_schema(view), ("parts", pa.string())])


@dataclass(frozen=True)
class BlockWriter:
    """Runs in Spark's workers: writes blocks, and returns `written_schema` for each."""

    connect: "Callable[[], Session]"
    view: str
    run: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every block is acknowledged before its row is yielded. Fastest if the days of a store are adjacent."""
        session = self.connect()
        insert = session.prepare(
            "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
        )
        for batch in batches:
            rows = batch.to_pylist()
            kept = [{**row, "block": note_of(row["block"])} for row in rows]
            statements = [
                (self._statement(insert, month, own), sum(len(row["block"]) for row in own))
                for month, own in requests(kept)
            ]
            statements += [
                (insert.bind((self.view, row["store"], month_of(row["day"]), self.run, kept_under, part)), len(part))
                for row in rows
                for kept_under, part in parts_of(row["day"], row["block"])
            ]
            write_rows(session, statements)
            failpoint(Failpoint.REBUILD_BLOCKS)
            digests = [digest_of(block) for block in batch.column("block").to_pylist()]
            yield batch.drop_columns(["block"]).append_column("digest", pa.array(digests, pa.string()))

    def _statement(self, insert: "PreparedStatement", month: date, rows: Sequence[Row]) -> Statement:
        values = [(self.view, row["store"], month, self.run, row["day"], row["block"]) for row in rows]
        return insert.bind(values[0]) if len(values) == 1 else _of_one_partition(insert, values)


@dataclass(frozen=True)
class RunWriter:
    """Writes blocks and the day cells beside them, and returns `run_schema` for each block.

    Runs in Spark's workers, or in the process of a small rebuild.
    """

    make: Blocks
    blocks: BlockWriter
    days: DayCells

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of `cell_rows` in. Everything is acknowledged before the row of a block is yielded."""
        buffer, written = PartBuffer(), list[pa.RecordBatch]()
        for made, cells in self.make.with_cells(rows):
            written += self.blocks(iter(made))
            buffer.add(self.days.of(cells))
            if buffer.is_full:
                yield from self._with_parts(written, buffer)
                written = []
        yield from self._with_parts(written, buffer)

    def _with_parts(self, written: Sequence[pa.RecordBatch], buffer: PartBuffer) -> Iterator[pa.RecordBatch]:
        session, statements, names = self.blocks.connect(), [], dict[tuple[str, Any], list[str]]()
        insert = session.prepare("INSERT INTO day_cells (run, view_name, day, part, block) VALUES (?, ?, ?, ?, ?)")
        for day, name, block, stores in buffer.parts():
            statements.append((insert.bind((self.blocks.run, self.blocks.view, day, name, block)), len(block)))
            for store in stores:
                names.setdefault((store, day), []).append(name)
        write_rows(session, statements)
        failpoint(Failpoint.REBUILD_BLOCKS)
        for batch in written:
            keys = zip(batch.column("store").to_pylist(), batch.column("day").to_pylist(), strict=True)
            parts = [" ".join(names[key]) if key in names else None for key in keys]
            yield batch.append_column("parts", pa.array(parts, pa.string()))


Apply = Callable[[RunWriter], Iterable[pa.RecordBatch]]
"""Applies a writer to rows of `cell_rows`, and returns what it yields."""


def write_rows(session: "Session", statements: Iterable[tuple[Statement, int]]) -> None:
    """Write rows, until all are acknowledged. `statements`: each with the characters or bytes that it writes."""
    small, large = list[tuple[Statement, None]](), list[tuple[Statement, None]]()
    for statement, size in statements:
        (large if size > _LARGE else small).append((statement, None))
    for some, at_once in ((small, _IN_FLIGHT), (large, 1)):
        execute_concurrent(session, some, concurrency=at_once, raise_on_first_error=True)


def read_blocks(session: "Session", keys: Sequence[BlockKey]) -> list[str | None]:
    """The blocks of these keys, in order; None: there is none, or only a part of it."""
    select = session.prepare(_SELECT)
    found = execute_concurrent_with_args(session, select, keys, concurrency=_IN_FLIGHT, raise_on_first_error=True)
    return [_whole(session, key, rows.one()) for key, (_, rows) in zip(keys, found, strict=True)]


def read_one_block(session: "Session", key: BlockKey) -> str | None:
    """The block of this key; None as of `read_blocks`."""
    return _whole(session, key, session.execute(session.prepare(_SELECT), key).one())


def _whole(session: "Session", key: BlockKey, row: Any) -> str | None:  # noqa: ANN401 - the driver has no types
    if row is None:
        return None
    kept: str = row.block
    if not (days := days_of_parts(key[-1], kept)):
        return kept
    select = session.prepare(_SELECT)
    parts = [session.execute(select, (*key[:-1], day)).one() for day in days]
    return None if None in parts else "".join(part.block for part in parts)


def digest_of(block: str) -> str:
    """Of a block's text, 64 bits."""
    return blake2b(block.encode(), digest_size=8).hexdigest()


def requests(rows: Iterable[Row]) -> Iterator[tuple[date, list[Row]]]:
    """Adjacent blocks of one Cassandra partition, as many as a request may hold."""
    for (_, month), own in groupby(rows, key=lambda row: (row["store"], month_of(row["day"]))):
        request: list[Row] = []
        size = 0
        for row in own:
            if request and size + len(row["block"]) > _REQUEST_CHARACTERS:
                yield month, request
                request, size = [], 0
            request.append(row)
            size += len(row["block"])
        yield month, request


class Run:
    """One run's cells, and the manifest that a publication may name."""

    def __init__(self, connect: "Callable[[], Session]", name: str) -> None:
        """`connect` is also called in Spark's workers; `name` is unique."""
        self._connect, self._session, self.name = connect, connect(), name

    def write(self, view: View, days: set[date], apply: "Apply") -> int:
        """Write the blocks of these days, and for each day which stores have one. Returns the number of blocks.

        `apply`: applies a writer to the rows of `cell_rows`, here or in Spark's workers.
        """
        day_cells = DayCells(DayShape.of(view), self._calendar)
        writer = RunWriter(Blocks.of(view), BlockWriter(self._connect, view.name, self.name), day_cells)
        stores: dict[date, Digests] = {day: {} for day in days}
        parts: dict[date, dict[str, str | None]] = {day: {} for day in days}
        for batch in apply(writer):
            for store, day, cells, *sums, digest, named in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                stores[day][store] = Digest(digest, cells, sums)
                parts[day][store] = named
        insert = self._session.prepare(
            "INSERT INTO run_days (run, view_name, day, stores, digests, day_cells) VALUES (?, ?, ?, ?, ?, ?)"
        )
        values = [
            (self.name, view.name, day, *_listed(own), _day_parts(parts[day]).to_json()) for day, own in stores.items()
        ]
        execute_concurrent_with_args(self._session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)
        return sum(map(len, stores.values()))

    @cached_property
    def _calendar(self) -> Mapping[str, BusinessDays]:
        """The business days of every registered store, as they are now."""
        return calendar_of(Registry(self._session).stores())

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the whole manifest under this run's name; it never changes afterwards."""
        insert = self._session.prepare("INSERT INTO manifests (manifest, view_name, day, run) VALUES (?, ?, ?, ?)")
        values = [(self.name, view, day, run) for (view, day), run in manifest.items()]
        together = (values[at : at + _ROWS_TOGETHER] for at in range(0, len(values), _ROWS_TOGETHER))
        statements = [(_of_one_partition(insert, some), None) for some in together]
        execute_concurrent(self._session, statements, concurrency=_IN_FLIGHT, raise_on_first_error=True)


def _of_one_partition(insert: "PreparedStatement", rows: Iterable[Sequence[Any]]) -> Statement:
    statement = BatchStatement(BatchType.UNLOGGED)
    for row in rows:
        statement.add(insert, row)
    return statement


def _listed(digests: Digests) -> tuple[str, str]:
    ordered = {store: tuple(digest) for store, digest in sorted(digests.items())}
    return orjson.dumps(list(ordered)).decode(), orjson.dumps(ordered).decode()


def _day_parts(stores: Mapping[str, str | None]) -> DayParts:
    """`stores`: each with the names of the parts that hold its day cells."""
    names = {name for named in stores.values() if named for name in named.split(" ")}
    return DayParts(tuple(sorted(names)), tuple(sorted(store for store, named in stores.items() if not named)))


def read_digests(
    session: "Session", run: str, view: str, days: Container[date]
) -> dict[date, dict[str, Digest | None]]:
    """Of these days, as far as the run computed them: store to its digest; None if none was kept."""
    query = session.prepare("SELECT day, stores, digests FROM run_days WHERE run = ? AND view_name = ?")
    found: dict[date, dict[str, Digest | None]] = {}
    for row in session.execute(query, (run, view)):
        if (day := row.day.date()) in days:
            kept = orjson.loads(row.digests) if row.digests else dict.fromkeys(orjson.loads(row.stores))
            found[day] = {store: Digest(*own) if own else None for store, own in kept.items()}
    return found


def read_manifest(session: "Session", manifest: str) -> dict[tuple[str, date], str]:
    """The entries of a manifest; none for publication 0, whose manifest is ""."""
    if not manifest:
        return {}
    query = session.prepare("SELECT view_name, day, run FROM manifests WHERE manifest = ?")
    return {(row.view_name, row.day.date()): row.run for row in session.execute(query, (manifest,))}
