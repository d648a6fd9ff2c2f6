"""Micro-batches counted into real Cassandra: each event once, however often it is delivered or a batch is replayed."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from master_dataset.visits.visit import RULES
from speed_layer.cassandra_batches import ROWS_AT_ONCE
from speed_layer.first_deliveries import FirstDeliveries
from speed_layer.micro_batch import MAX_CELLS, MicroBatch, SpeedTimings
from tests.support.arrivals import Arrival, Given, Stated, arrival, arrived, position
from views.control.generation import Generation, Generations
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cells import WAITING, number_of, read_block

EPOCH = timedelta(seconds=10)
NOW = datetime(2026, 3, 7, 9, 0, 3, tzinfo=UTC)
LATER = NOW + EPOCH
TIMINGS = SpeedTimings(
    epoch=EPOCH,
    oldest=timedelta(hours=23),
    remembered=timedelta(hours=24),
    ttl=timedelta(days=7),
    visits=RULES,
    skew=timedelta(seconds=1),
)
SHOWN_FROM = NOW - timedelta(minutes=1)
NUMBERS = itertools.count(1)
ONE: list[Given] = [(WAITING.name, 900, ["t"], [1])]  # a shape of one column, so that a sum is a number of events
OTHER: list[Given] = [(WAITING.name, 1800, ["t"], [1])]


@pytest.fixture(params=[BY_VIEW, SpeedLayout.for_stores(100)], ids=["by view", "by store"])
def generation(shared_cassandra: Session, request: pytest.FixtureRequest) -> Generation:
    """A generation of its own for each test."""
    begun = Generation(next(NUMBERS), SHOWN_FROM, {}, {}, layout=request.param)
    Generations(shared_cassandra).begin(begun, NOW)
    return begun


@pytest.fixture
def counter(shared_cassandra: Session, generation: Generation) -> MicroBatch:
    return MicroBatch(lambda: shared_cassandra, Stated((), TIMINGS.oldest, RULES), TIMINGS, generation, number=0)


def count(counter: MicroBatch, *rows: Arrival, batch: int) -> list[dict[str, object]]:
    """The positions that a micro-batch of these arrivals gives back."""
    own = replace(counter, number=batch)
    return [row for each in own(iter([arrived([row]) for row in rows])) for row in each.to_pylist()]


def rows_of(counter: MicroBatch, table: str) -> list[Any]:
    """What the generation has in a table."""
    rows = counter.connect().execute(f"SELECT * FROM {table}")  # noqa: S608 - the names below
    return [row for row in rows if row.generation == counter.generation.number]


def counted(counter: MicroBatch) -> dict[int, int]:
    """Seconds after the full minute at which the epoch begins, to the number of events counted in it."""
    found: dict[int, int] = {}
    for row in rows_of(counter, counter.generation.layout.cells):
        events = sum(number_of(states) for _, states in read_block(WAITING, row.block))
        found[row.epoch.second] = found.get(row.epoch.second, 0) + events
    return found


def test_an_event_delivered_again_is_counted_where_it_came_first(counter: MicroBatch) -> None:
    count(counter, arrival("a", 0, NOW, ONE), arrival("a", 1, LATER, ONE), arrival("b", 2, LATER, ONE), batch=0)

    count(counter, arrival("a", 3, LATER, ONE), arrival("c", 4, LATER, ONE), batch=1)

    assert counted(counter) == {0: 1, 10: 2}


def test_a_batch_that_had_only_remembered_its_events_when_it_crashed_counts_them_when_it_is_replayed(
    counter: MicroBatch,
) -> None:
    rows = [arrival("a", 0, NOW, ONE), arrival("b", 1, NOW, ONE)]
    remembering = FirstDeliveries(counter.connect(), counter.generation, TIMINGS.oldest, TIMINGS.ttl)
    _, are_remembered = remembering.filter_first(pa.Table.from_batches([arrived(rows)]))
    are_remembered()

    count(counter, *rows, batch=0)

    assert counted(counter) == {0: 2}


def test_a_replay_lets_its_first_deliveries_live_as_long_as_its_rows(counter: MicroBatch) -> None:
    count(counter, arrival("a", 0, NOW, ONE), batch=0)
    session, number, layout = counter.connect(), counter.generation.number, counter.generation.layout
    session.execute(
        f"UPDATE {layout.first_deliveries} USING TTL 5 SET partition = 0, offset = 0 WHERE generation = %s "  # noqa: S608 - our own names
        f"AND topic = 'pos_transactions' AND {layout.place_column} = %s AND day = '2026-03-07' AND identity = 'a'",
        (number, layout.place("1")),
    )

    count(counter, arrival("a", 0, NOW, ONE), batch=0)

    found = session.execute(f"SELECT generation, TTL(offset) AS left FROM {layout.first_deliveries}")  # noqa: S608 - likewise
    assert [row.left > TIMINGS.ttl.total_seconds() for row in found if row.generation == number] == [True]


def test_a_replayed_batch_writes_the_same_rows_also_where_only_some_were_written(counter: MicroBatch) -> None:
    rows = [arrival("b", 1, NOW, ONE), arrival("a", 2, NOW, ONE), arrival("c", 3, LATER, OTHER)]
    count(counter, arrival("a", 0, NOW, ONE), batch=0)
    count(counter, rows[0], batch=1)  # as if it had crashed before its second row was written

    count(counter, *rows, batch=1)
    count(counter, *rows, batch=1)

    assert counted(counter) == {0: 2, 10: 1}


def test_of_deliveries_in_two_partitions_of_one_batch_the_one_received_first_counts(counter: MicroBatch) -> None:
    second, first = arrival("a", 0, LATER, ONE), arrival("a", 5, NOW, ONE, partition=1)

    count(counter, second, first, batch=0)

    assert counted(counter) == {0: 1}


def test_an_identity_of_another_source_is_another_event(counter: MicroBatch) -> None:
    other = arrival("a", 0, LATER, ONE)
    other["topic"] = "another"

    count(counter, arrival("a", 0, NOW, ONE), other, batch=0)

    assert counted(counter) == {0: 1, 10: 1}


def test_what_waits_for_batch_is_not_looked_up_and_waits_every_time(counter: MicroBatch) -> None:
    old = TIMINGS.oldest + timedelta(milliseconds=1)

    count(counter, arrival("a", 0, NOW, ONE, age=old), arrival("a", 1, NOW, ONE, age=old), batch=0)

    assert counted(counter) == {0: 2}
    assert rows_of(counter, counter.generation.layout.first_deliveries) == []


def test_epochs_before_the_generation_are_remembered_but_not_written(counter: MicroBatch) -> None:
    before = SHOWN_FROM - timedelta(minutes=1)

    count(counter, arrival("a", 0, before, ONE), arrival("a", 1, NOW, ONE), batch=0)

    assert counted(counter) == {}


def test_generations_count_by_themselves(counter: MicroBatch) -> None:
    other = replace(counter, generation=replace(counter.generation, number=next(NUMBERS)))
    count(counter, arrival("a", 0, NOW, ONE), batch=7)

    count(other, arrival("a", 0, NOW, ONE), batch=0)

    assert (counted(counter), counted(other)) == ({0: 1}, {0: 1})


def test_positions_are_given_back_for_every_partition_also_without_an_event(counter: MicroBatch) -> None:
    arrivals = [position(0, 9, NOW), arrival("a", 9, NOW, ONE), position(1, 4, NOW)]

    found = count(counter, *arrivals, batch=0)

    assert [(row["partition"], row["offset"]) for row in found] == [(0, 9), (1, 4)]
    assert {row["received_micros"] for row in found} == {int(NOW.timestamp() * 1_000_000)}


def test_more_cells_than_a_row_may_have_are_written_as_several_rows(counter: MicroBatch) -> None:
    many: list[Given] = [(WAITING.name, window * 900, ["t"], [1]) for window in range(MAX_CELLS + 1)]

    count(counter, arrival("a", 0, NOW, many), arrival("b", 1, NOW, many, store="2"), batch=0)

    rows = rows_of(counter, counter.generation.layout.cells)
    assert sorted((row.store, row.part) for row in rows) == [("1", 0), ("1", 1), ("2", 0), ("2", 1)]
    assert counted(counter) == {0: 2 * (MAX_CELLS + 1)}


def test_more_events_of_a_store_and_day_than_one_request_holds_are_all_remembered(counter: MicroBatch) -> None:
    many = [arrival(str(n), n, NOW, ONE) for n in range(2 * ROWS_AT_ONCE + 1)]
    again = [arrival(str(n), len(many) + n, LATER, ONE) for n in range(len(many))]

    count(counter, *many, batch=0)
    count(counter, *again, batch=1)

    assert counted(counter) == {0: len(many)}


def test_each_store_has_its_own_progress(counter: MicroBatch) -> None:
    count(counter, arrival("a", 0, NOW, ONE, store="1"), arrival("b", 1, LATER, ONE, store="2"), batch=0)
    count(counter, arrival("c", 2, NOW, ONE, store="1"), batch=1)

    progress = {row.store: (row.mark, row.received_at) for row in rows_of(counter, "speed_stores")}

    assert progress == {"1": (2, NOW.replace(tzinfo=None)), "2": (0, LATER.replace(tzinfo=None))}
