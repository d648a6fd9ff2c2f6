"""What is acknowledged before what: a process that is killed in between leaves no row without what it relies on."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from master_dataset.visits.visit import RULES
from speed_layer import parser
from speed_layer.cassandra_batches import Wait
from speed_layer.micro_batch import MicroBatch
from speed_layer.parser import BEGUN, Parser
from tests.fast.laws.delivery.speed_law import TIMINGS
from tests.fast.laws.delivery.tables import Batch, Tables, in_memory
from tests.support.arrivals import Given, Stated, arrival, arrived
from views.control.generation import Generation
from views.control.speed_layout import SpeedLayout
from views.core.cells import WAITING

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)
LAYOUT = SpeedLayout.for_stores(100)


class Noting(Tables):
    """Notes when requests to a table are sent, and when their acknowledgement has been waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, str]] = []

    def execute_async(self, batch: Batch) -> Any:
        super().execute_async(batch)
        table = batch[0][0].table
        self.noted.append(("sent", table))
        return SimpleNamespace(result=lambda: self.noted.append(("acknowledged", table)))


def test_events_are_remembered_before_they_are_counted_and_counted_before_progress_is_recorded() -> None:
    tables, given = Noting(), list[Given]([(WAITING.name, 900, ["t"], [1])])
    rows = [
        arrival(f"{store}/{number}", number, NOON, given, store=f"{store}") for number in range(9) for store in "ab"
    ]

    with in_memory():
        counter = MicroBatch(
            lambda: tables, Stated((), TIMINGS.oldest, RULES), TIMINGS, Generation(1, NOON, {}, {}, layout=LAYOUT), 0
        )
        list(counter(iter([arrived(rows)])))

    def places(what: str, table: str) -> list[int]:
        return [at for at, noted in enumerate(tables.noted) if noted == (what, table)]

    order = [LAYOUT.first_deliveries, LAYOUT.cells, "speed_stores"]
    assert all(places("sent", table) for table in order)
    assert all(len(places("sent", table)) == len(places("acknowledged", table)) for table in order)
    for earlier, later in pairwise(order):
        assert max(places("acknowledged", earlier)) < min(places("sent", later))


class Writer:
    """Counts what it has begun, and what has been waited for."""

    columns = ()

    def __init__(self) -> None:
        self.begun = self.acknowledged = self.most = 0

    def __call__(self, parsed: pa.RecordBatch) -> Wait:
        assert parsed.num_rows
        self.begun += 1
        self.most = max(self.most, self.begun - self.acknowledged)

        def wait() -> None:
            self.acknowledged += 1

        return wait


def test_a_parser_ends_when_everything_is_acknowledged_and_never_leaves_much_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parsed(
        _source: object, batches: Iterator[pa.RecordBatch], *_: object, **__: object
    ) -> Iterator[pa.RecordBatch]:
        return batches

    monkeypatch.setattr(parser, "rows", parsed)
    monkeypatch.setattr(parser, "events_and_positions", lambda rows, _: [rows])
    batch, writer = pa.RecordBatch.from_pydict({"topic": ["t"] * 3}), Writer()
    own = Parser({"t": None}, {"t": frozenset()}, batch.schema, lambda: None, {"t": [writer]})  # type: ignore[arg-type, dict-item, return-value]

    read = list(own(iter([batch] * 20)))

    assert len(read) == writer.begun == writer.acknowledged == 20
    assert writer.most == BEGUN + 1
