"""What a worker writes for a run, without Spark and without Cassandra: blocks, day cells, and what the driver gets."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from batch_layer import day_cells, run
from batch_layer.blocks import Blocks
from batch_layer.day_cells import DayCells
from batch_layer.run import BlockWriter, Run, RunWriter, requests, run_schema, write_rows
from master_dataset.compressed_blocks import unpack
from views import view_named
from views.core.cells import read_block
from views.core.day_cells import DayShape, state_column

SALES = view_named("sales")
FIRST = date(2026, 1, 1)
MIDNIGHT = 1767225600


Row = dict[str, Any]


class Statement:
    """A prepared statement that remembers what it was bound to."""

    def __init__(self, cql: str, values: Sequence[Any] = ()) -> None:
        self.cql, self.values = cql, values

    def bind(self, values: Sequence[Any]) -> "Statement":
        return Statement(self.cql, values)


class Session:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[str, date], str] = {}
        self.parts: dict[tuple[date, str], bytes] = {}

    def prepare(self, cql: str) -> Statement:
        return Statement(cql)

    def write(self, _: object, statements: Sequence[tuple[Any, Any]], **__: object) -> None:
        for request, _values in statements:
            for statement in request if isinstance(request, list) else [request]:
                if "day_cells" in statement.cql:
                    _run, _view, day, name, block = statement.values
                    self.parts[day, name] = block
                else:
                    _view, store, _month, _run, day, block = statement.values
                    self.blocks[store, day] = block


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    found = Session()
    monkeypatch.setattr(run, "execute_concurrent", found.write)
    monkeypatch.setattr(run, "_of_one_partition", lambda insert, rows: [insert.bind(row) for row in rows])
    return found


def rows(stores: int, days: int) -> list[pa.RecordBatch]:
    """Two receipts in the same window and one in another, of every store and day."""
    found = [
        {
            "store": str(store),
            "day": FIRST + timedelta(days=day),
            "window": MIDNIGHT + 86_400 * day + window,
            "d0": "EUR",
        }
        | {state_column(place): 1 + store for place, _ in enumerate(SALES.columns)}
        for store in range(stores)
        for day in range(days)
        for window in (900, 900, 4500)
    ]
    batches: list[pa.RecordBatch] = pa.Table.from_pylist(found).to_batches(max_chunksize=7)
    return batches


def test_every_block_has_its_day_cells_and_names_the_parts_that_hold_them(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_cells, "ROWS_AT_ONCE", 5)
    writer = RunWriter(
        Blocks.of(SALES),
        BlockWriter(lambda: session, "sales", "a-run"),
        DayCells(DayShape.of(SALES), {}),
    )

    written = pa.Table.from_batches(list(writer(iter(rows(stores=4, days=3)))), run_schema(SALES)).to_pylist()

    assert [(row["store"], row["day"]) for row in written] == list(session.blocks)
    assert len(written) == 12
    kept: dict[tuple[str, date], list[int]] = {}
    for (day, _), block in session.parts.items():
        for row in unpack(block).to_pylist():
            kept[row["store"], day] = [row[state_column(place)] for place, _ in enumerate(SALES.columns)]
    for row in written:
        place = (row["store"], row["day"])
        cells = list(read_block(SALES, session.blocks[place]))
        assert kept[place] == [sum(int(states[at] or 0) for _, states in cells) for at, _ in enumerate(SALES.columns)]
        stores = [unpack(session.parts[row["day"], name])["store"].to_pylist() for name in row["parts"].split(" ")]
        assert any(row["store"] in each for each in stores)


def test_blocks_of_a_store_and_month_share_requests_up_to_the_limit() -> None:
    def row(store: str, day: date, characters: int) -> Row:
        return {"store": store, "day": day, "block": "x" * characters}

    third = run._REQUEST_CHARACTERS // 3  # noqa: SLF001 - the limit
    blocks = [
        *(row("1", FIRST + timedelta(days=day), third) for day in range(5)),
        row("1", date(2026, 2, 1), 1),
        row("2", date(2026, 2, 1), 1),
        row("2", date(2026, 2, 2), 10 * third),
        row("2", date(2026, 2, 3), 1),
    ]

    found = list(requests(blocks))

    assert [row for _, own in found for row in own] == blocks
    assert [(month.month, len(own)) for month, own in found] == [(1, 3), (1, 2), (2, 1), (2, 1), (2, 1), (2, 1)]


def test_a_manifest_is_written_whole_however_many_requests_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr(run, "execute_concurrent", lambda _, statements, **__: written.extend(statements))
    monkeypatch.setattr(run, "_of_one_partition", lambda _, rows: list(rows))
    manifest = {("sales", FIRST + timedelta(days=day)): f"run {day % 3}" for day in range(250)}

    Run(Session, "new").write_manifest(manifest)

    rows = [row for statement, _ in written for row in statement]
    assert sorted(rows) == sorted(("new", view, day, of) for (view, day), of in manifest.items())
    assert [len(statement) for statement, _ in written] == [100, 100, 50]


def test_large_rows_are_written_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int]] = []

    def write(_: object, statements: Sequence[tuple[Statement, Any]], *, concurrency: int, **__: object) -> None:
        written.extend((statement.cql, concurrency) for statement, _values in statements)

    monkeypatch.setattr(run, "execute_concurrent", write)
    sizes = {"small": 100_000, "large": 100_001, "empty": 0}

    write_rows(Session(), [(Statement(cql), size) for cql, size in sizes.items()])

    at_once = dict(written)
    assert at_once.keys() == sizes.keys()
    assert at_once["large"] == 1 < at_once["small"] == at_once["empty"]
