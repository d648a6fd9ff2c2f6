"""Verification's workers with real Cassandra: they read the speed rows of a place themselves, and find what differs."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from batch_layer.blocks import StoreDay
from batch_layer.ledger.compare import LedgerComparer
from batch_layer.speed_span import SpeedSpan, StoreDayFinder
from batch_layer.verify.totals import TotalsRule
from batch_layer.verify.verification import CellComparer
from speed_layer.additions import AdditionKey, Cells
from speed_layer.contributions import shapes_of
from speed_layer.micro_batch import SpeedRows
from views.control.generation import Generation, Generations
from views.control.speed_layout import BY_VIEW, SpeedLayout, layout_of
from views.core.cells import WAITING, CellKey, write_block
from views.core.cut import month_of, seconds
from views.payments import PAYMENTS
from views.sales_by_till import SALES_BY_TILL

CUT = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)
UNTIL = CUT + timedelta(minutes=10)
TODAY = CUT.date()
YESTERDAY = TODAY - timedelta(days=1)
BEFORE, WITHIN = CUT - timedelta(minutes=5), CUT + timedelta(minutes=5)
NUMBERS = itertools.count(1)


@pytest.fixture(params=[BY_VIEW, SpeedLayout.for_stores(100)], ids=["by view", "by store"])
def span(shared_cassandra: Session, request: pytest.FixtureRequest) -> SpeedSpan:
    """Of a generation of its own for each test."""
    begun = Generation(next(NUMBERS), CUT, {}, {}, layout=request.param)
    Generations(shared_cassandra).begin(begun, CUT)
    return SpeedSpan(lambda: shared_cassandra, begun.number, CUT, UNTIL)


def key(day: date, till: str = "1") -> CellKey:
    return CellKey(seconds(datetime(day.year, day.month, day.day, 8, 45, tzinfo=UTC)), ("EUR", till))


def speed_rows(span: SpeedSpan, generation: int) -> SpeedRows:
    layout = layout_of(span.connect(), span.generation)
    return SpeedRows(span.connect(), generation, layout, timedelta(days=3650), shapes_of([PAYMENTS, SALES_BY_TILL]))


def write(span: SpeedSpan, shape: str, epoch: datetime, cells: Cells, generation: int | None = None) -> None:
    own = span.generation if generation is None else generation
    speed_rows(span, own).write(next(NUMBERS), [(AdditionKey(shape, "7", epoch), cells)])


def found(span: SpeedSpan) -> list[tuple[str, date, date | None, int | None]]:
    partition_rows = pa.RecordBatch.from_pylist([each._asdict() for each in span.partitions()])
    rows = [row for batch in StoreDayFinder(span)(iter([partition_rows])) for row in batch.to_pylist()]
    return sorted((row["view"], row["received_day"], row["day"], row["waiting"]) for row in rows)


def compared(
    span: SpeedSpan, recomputed: Mapping[date, Cells], received: Mapping[StoreDay, Sequence[date]]
) -> list[tuple[date, int, int]]:
    """Day, cells, how many differ; nothing is published."""
    blocks = [{"store": "7", "day": day, "block": write_block(SALES_BY_TILL, own)} for day, own in recomputed.items()]
    batch = pa.RecordBatch.from_pylist(blocks)
    rule = TotalsRule.of(SALES_BY_TILL, [], {}, by_part=False)
    rows = CellComparer(span.connect, SALES_BY_TILL, {}, span, received, rule)(iter([batch]))
    return [(row["day"], row["cells"], row["differing"]) for each in rows for row in each.to_pylist()]


def test_a_worker_says_which_days_a_partition_shows_and_leaves_its_cells_where_they_are(span: SpeedSpan) -> None:
    write(span, SALES_BY_TILL.name, WITHIN, [(key(YESTERDAY), (1, 1, 218)), (key(TODAY), (1, 1, 218))])
    write(span, SALES_BY_TILL.name, BEFORE, [(key(TODAY - timedelta(days=2)), (1, 1, 218))])  # is in batch
    write(span, SALES_BY_TILL.name, UNTIL, [(key(TODAY + timedelta(days=1)), (1, 1, 218))])  # is not closed yet
    write(span, SALES_BY_TILL.name, WITHIN, [(key(TODAY), (9, 9, 9))], generation=span.generation + 1_000_000)
    write(span, WAITING.name, WITHIN, [(CellKey(0, ("pos_transactions",)), (3,))])

    places = found(span)

    assert places == [
        (SALES_BY_TILL.name, TODAY, YESTERDAY, None),
        (SALES_BY_TILL.name, TODAY, TODAY, None),
        (WAITING.name, TODAY, None, 3),
    ]


def test_the_days_of_all_views_are_found_together(span: SpeedSpan) -> None:
    write(span, SALES_BY_TILL.name, WITHIN, [(key(YESTERDAY), (1, 1, 218)), (key(TODAY), (1, 1, 218))])
    write(span, SALES_BY_TILL.name, BEFORE, [(key(TODAY - timedelta(days=2)), (1, 1, 218))])  # is in batch
    write(span, PAYMENTS.name, WITHIN, [(key(TODAY, "cash"), (218, 1, 1))])
    write(span, WAITING.name, WITHIN, [(CellKey(0, ("pos_transactions",)), (3,))])

    assert span.days() == {
        SALES_BY_TILL.name: {("7", YESTERDAY): [TODAY], ("7", TODAY): [TODAY]},
        PAYMENTS.name: {("7", TODAY): [TODAY]},
    }
    assert replace(span, until=span.since).days() == {}


def test_a_worker_adds_up_the_rows_of_a_place_and_names_no_difference_where_there_is_none(span: SpeedSpan) -> None:
    write(span, SALES_BY_TILL.name, WITHIN, [(key(YESTERDAY), (1, 1, 218)), (key(TODAY), (1, 1, 218))])
    write(span, SALES_BY_TILL.name, WITHIN, [(key(TODAY), (2, 1, 109)), (key(TODAY, "2"), (1, 0, -5))])
    recomputed: dict[date, Cells] = {
        YESTERDAY: [(key(YESTERDAY), (1, 1, 218))],
        TODAY: [(key(TODAY), (3, 2, 327)), (key(TODAY, "2"), (1, 0, -5))],
    }

    results = compared(span, recomputed, {("7", YESTERDAY): [TODAY], ("7", TODAY): [TODAY]})

    assert results == [(YESTERDAY, 1, 0), (TODAY, 2, 0)]


def test_a_cent_too_many_a_missing_cell_and_one_that_should_not_be_there_differ(span: SpeedSpan) -> None:
    write(span, SALES_BY_TILL.name, WITHIN, [(key(TODAY), (1, 1, 219)), (key(TODAY, "2"), (1, 1, 1))])
    recomputed: dict[date, Cells] = {TODAY: [(key(TODAY), (1, 1, 218)), (key(TODAY, "3"), (1, 1, 1))]}

    results = compared(span, recomputed, {("7", TODAY): [TODAY]})

    assert results == [(TODAY, 3, 3)]


def test_stores_that_a_ledger_compares_together_get_the_lines_that_each_would_get_alone(span: SpeedSpan) -> None:
    session, run = span.connect(), f"together-{next(NUMBERS)}"
    insert = session.prepare(
        "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
    )
    for number, store in enumerate(("7", "8", "9"), 1):
        for day in (YESTERDAY, TODAY):
            block = write_block(SALES_BY_TILL, [(key(day), (number, number, 100 * number))])
            session.execute(insert, (SALES_BY_TILL.name, store, month_of(day), run, day, block))
        added = [(AdditionKey(SALES_BY_TILL.name, store, WITHIN), [(key(TODAY), (1, 1, 100))])]
        speed_rows(span, span.generation).write(next(NUMBERS), added)
    units = [
        {"store": store, "month": month_of(TODAY), "days": [YESTERDAY, TODAY], "received": [TODAY]}
        for store in ("7", "8", "9")
    ]

    def lines(
        subject: str, calls: Sequence[Sequence[Mapping[str, object]]]
    ) -> tuple[Sequence[object], Sequence[object]]:
        empty = replace(span, since=UNTIL)
        after = dict.fromkeys((YESTERDAY, TODAY), run)
        comparer = LedgerComparer(span.connect, subject, SALES_BY_TILL, {}, after, span, empty, None, 1)
        totals = [row for own in calls for row in comparer.compare([(unit, None) for unit in own])]
        select = session.prepare("SELECT store, day, block FROM corrections WHERE subject = ? AND view_name = ?")
        return totals, list(session.execute(select, (subject, SALES_BY_TILL.name)))

    together, alone = lines(f"{run}-a", [units]), lines(f"{run}-b", [[unit] for unit in units])

    assert together == alone
    totals, written = together
    assert len(totals) == 3
    assert len(written) == 5  # what store 7 shows today is right
