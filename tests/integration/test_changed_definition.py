"""The ledger of a view whose definition was changed: its cells are compared by the names of what they have."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from cassandra.cluster import Session

from batch_layer.ledger.change import Change, PublishedState
from batch_layer.ledger.correction import Ledgers
from batch_layer.ledger.events import ExplainingRules
from batch_layer.ledger.ledger import Ledger
from batch_layer.run import digest_of
from deploy.cassandra import session_of
from master_dataset.visits.visit import RULES
from tests.integration.conftest import Stack
from views.core.cells import CellKey, States, write_block
from views.core.cut import UNIX_EPOCH, month_of, seconds
from views.core.view import View
from views.sales_by_till import SALES_BY_TILL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY, NEW_DAY = date(2026, 3, 7), date(2026, 3, 8)
OLD = replace(
    SALES_BY_TILL,
    dimensions={"currency": "currency"},
    metrics={name: each for name, each in SALES_BY_TILL.metrics.items() if name != "sale_tx"},
)
CUT = datetime(2026, 3, 9, tzinfo=UTC)


def at(day: date) -> int:
    return seconds(datetime(day.year, day.month, day.day, 8, 45, tzinfo=UTC))


def write(session: Session, run: str, view: View, day: date, cells: Sequence[tuple[CellKey, States]]) -> None:
    """A block as a run has written it."""
    block = write_block(view, cells)
    sums = [sum(value or 0 for value in column) for column in zip(*(states for _, states in cells), strict=True)]
    session.execute(
        "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (%s, '7', %s, %s, %s, %s)",
        (view.name, month_of(day), run, day, block),
    )
    session.execute(
        "INSERT INTO run_days (run, view_name, day, stores, digests) VALUES (%s, %s, %s, %s, %s)",
        (run, view.name, day, '["7"]', json.dumps({"7": [digest_of(block), len(cells), sums]})),
    )


@pytest.fixture
def ledger(stack: Stack, cassandra: Session, spark: "SparkSession") -> Ledger:
    """Before: receipts and sales of a day by currency. After: by till, and of another day besides."""
    write(cassandra, "old", OLD, DAY, [(CellKey(at(DAY), ("EUR",)), (3, 654))])
    write(
        cassandra,
        "new",
        SALES_BY_TILL,
        DAY,
        [
            (CellKey(at(DAY), ("EUR", "1")), (1, 1, 218)),
            (CellKey(at(DAY), ("EUR", "2")), (2, 2, 436)),
        ],
    )
    write(cassandra, "new", SALES_BY_TILL, NEW_DAY, [(CellKey(at(NEW_DAY), ("EUR", "1")), (1, 1, 100))])
    name = SALES_BY_TILL.name
    change = Change(
        PublishedState(UNIX_EPOCH, {(name, DAY): "old"}, 1, {name: OLD.definition_hash}),
        PublishedState(CUT, {(name, DAY): "new", (name, NEW_DAY): "new"}, 2, {name: SALES_BY_TILL.definition_hash}),
    )
    connect = partial(session_of, replace(stack.settings.cassandra.address, keyspace=cassandra.keyspace))
    return Ledger(connect, "new", change, {}, ExplainingRules(timedelta(hours=23), RULES), lambda: spark)


def test_all_that_a_changed_definition_changes_has_that_cause(ledger: Ledger, cassandra: Session) -> None:
    totals = ledger.write([SALES_BY_TILL], 3, lambda *_: None)

    blocks: dict[date, Any] = {
        row.day.date(): orjson.loads(row.block)
        for row in cassandra.execute("SELECT * FROM corrections")
        if row.view_name == SALES_BY_TILL.name
    }
    shown = {
        (line["dimensions"].get("till"), line["state"]): (line["shown"], line["corrected"]) for line in blocks[DAY]
    }
    assert shown == {
        (None, "receipts"): (3, None),
        (None, "net_sales"): (654, None),
        ("1", "receipts"): (None, 1),
        ("1", "sale_tx"): (None, 1),
        ("1", "net_sales"): (None, 218),
        ("2", "receipts"): (None, 2),
        ("2", "sale_tx"): (None, 2),
        ("2", "net_sales"): (None, 436),
    }
    assert {line["cause"] for line in blocks[DAY]} == {"definition changed"}
    assert blocks[NEW_DAY] == {"whole": "definition changed", "run": "new", "events_total": 0}
    differences = {f"{SALES_BY_TILL.name}.receipts": 1, f"{SALES_BY_TILL.name}.net_sales": 100}
    found = totals.causes["definition changed"].difference
    assert {name: found[name] for name in differences} == differences
    assert Ledgers(cassandra).totals("new") == totals
