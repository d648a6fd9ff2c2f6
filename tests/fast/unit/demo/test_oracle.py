"""The oracle knows example 6.1 of the metrics catalogue by heart, and finds one wrong cell."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lab.demo.oracle import DeliveryCounts, Oracle, receipt_views
from views import view_named
from views.core import View

GOLDEN = Path(__file__).parents[2] / "golden"
BEFORE = datetime(2026, 3, 7, 9, tzinfo=UTC)
AFTER = datetime(2026, 3, 9, tzinfo=UTC)
VIEWS = [view.name for view in receipt_views()]


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with Oracle({"1": "EUR"}, timedelta(hours=23)) as made:
        yield made


def received(oracle: Oracle, *values: bytes, at: datetime = BEFORE, cut: datetime = AFTER) -> None:
    rows = [(0, offset, at + timedelta(hours=2, seconds=offset), value) for offset, value in enumerate(values)]
    oracle.recompute(oracle.records(rows), cut)


def golden(example: str = "shop_floor") -> list[bytes]:
    return (GOLDEN / example / "pos_transactions.jsonl").read_bytes().splitlines()


def expected(view: View, example: str = "shop_floor") -> dict[tuple[object, ...], tuple[int, ...]]:
    cells = json.loads((GOLDEN / example / "cells.json").read_text()).get(view.name, [])
    return {
        ("1", int(datetime.fromisoformat(cell["window"]).timestamp()), *cell["dimensions"].values()): tuple(
            states(view, cell["merged"])
        )
        for cell in cells
    }


def states(view: View, merged: dict[str, Any]) -> Iterator[int]:
    for name in view.metrics:
        state = merged.get(name, 0)
        yield from (*state["counts"], state["min"], state["max"]) if isinstance(state, dict) else (state,)


def as_shown(view: View, cells: dict[tuple[object, ...], tuple[int, ...]]) -> pa.Table:
    names = ["store", "window", *view.dimensions, *view.columns]
    return pa.table(dict(zip(names, zip(*(key + states for key, states in cells.items()), strict=True), strict=True)))


@pytest.mark.parametrize("name", VIEWS)
def test_it_recomputes_the_golden_receipts(oracle: Oracle, name: str) -> None:
    received(oracle, *golden())

    assert oracle.cells(view_named(name)) == expected(view_named(name))
    assert oracle.deliveries() == DeliveryCounts(events=4, duplicates=1, conflicts=0, old=0, old_deliveries=0)


@pytest.mark.parametrize("name", VIEWS)
def test_it_recomputes_the_golden_baskets(oracle: Oracle, name: str) -> None:
    received(oracle, *golden("baskets"))

    assert oracle.cells(view_named(name)) == expected(view_named(name), "baskets")


@pytest.mark.parametrize("name", VIEWS)
def test_it_recomputes_the_golden_discounts(oracle: Oracle, name: str) -> None:
    received(oracle, *golden("discounts"))

    assert oracle.cells(view_named(name)) == expected(view_named(name), "discounts")


def test_another_payment_or_discount_is_a_conflict(oracle: Oracle) -> None:
    first = golden("discounts")[0]

    received(oracle, first, first.replace(b'"cash"', b'"card"'), first.replace(b'"discount":0}', b'"discount":1}'))

    assert oracle.deliveries() == DeliveryCounts(events=1, duplicates=0, conflicts=2, old=0, old_deliveries=0)


@pytest.mark.parametrize("name", VIEWS)
def test_it_finds_a_planted_wrong_cell(oracle: Oracle, name: str) -> None:
    view = view_named(name)
    example = "discounts" if name in ("discounts", "payments") else "shop_floor"
    received(oracle, *golden(example))
    shown = expected(view, example)
    oracle.show(view, [as_shown(view, shown)])
    assert oracle.compare(view).differing == 0

    wrong = next(iter(shown))
    shown[wrong] = (shown[wrong][0] + 1, *shown[wrong][1:])
    oracle.show(view, [as_shown(view, shown)])

    found = oracle.compare(view)
    assert (found.cells, found.differing) == (len(shown), 1)
    assert f"shown [{shown[wrong][0]}" in found.examples[0]


def test_it_finds_a_cell_too_few_one_too_many_and_one_shown_twice(oracle: Oracle) -> None:
    view = view_named("sales")
    received(oracle, *golden())
    (first, states), (second, _) = expected(view).items()

    oracle.show(view, [as_shown(view, {first: states, ("2", *first[1:]): states})])
    assert oracle.compare(view).differing == 2
    oracle.show(view, [as_shown(view, expected(view)), as_shown(view, {second: expected(view)[second]})])
    assert oracle.compare(view).differing == 1


def test_the_first_delivery_wins_and_another_content_is_a_conflict(oracle: Oracle) -> None:
    first = golden()[0]

    received(oracle, first, first.replace(b"1.09", b"9.99"), b" " + first)

    assert oracle.deliveries() == DeliveryCounts(events=1, duplicates=1, conflicts=1, old=0, old_deliveries=0)
    assert next(iter(oracle.cells(view_named("sales")).values()))[5] == 468


def test_an_old_event_received_since_the_cut_waits(oracle: Oracle) -> None:
    events = golden()

    received(oracle, *events, at=BEFORE + timedelta(days=3), cut=AFTER)

    assert oracle.deliveries() == DeliveryCounts(events=4, duplicates=1, conflicts=0, old=4, old_deliveries=5)
    assert oracle.cells(view_named("sales")) == {}


@pytest.mark.parametrize(
    ("price", "amount", "cents"),
    [("0.25", "0.5", 12), ("0.75", "0.5", 38), ("0.25", "-0.5", -12), ("0.75", "-0.5", -38)],
)
def test_half_a_cent_goes_to_the_even_one(oracle: Oracle, price: str, amount: str, cents: int) -> None:
    line = f'{{"title": "Nuts", "price": {price}, "amount": {amount}, "sku": "7"}}'
    head = '"operation_id": "1", "vendor_fiscal_module": 3, "transaction_id": 4, "happened_at": "2026-03-07T10:05:00Z"'

    received(oracle, f'{{{head}, "transactions": [{line}]}}'.encode())

    assert [states[0] for states in oracle.cells(view_named("sales_by_sku")).values()] == [cents]
