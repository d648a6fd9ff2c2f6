"""Blocks and the sums of their cells, as Spark's workers make them."""

from datetime import date, timedelta

import orjson
import pyarrow as pa
import pytest

from batch_layer.blocks import Blocks, made_schema
from views import view_named
from views.core.cells import read_block

SALES = view_named("sales")


def test_each_block_bears_the_sums_of_its_own_cells_however_many_stores_and_days_there_are() -> None:
    places = [(str(store), date(2026, 1, 1) + timedelta(days=day)) for store in range(1, 6) for day in range(31)]
    rows = [
        {"store": store, "day": day, "window": 900 * window, "d0": "EUR"}
        | {f"s{state}": number + state for state, _ in enumerate(SALES.columns)}
        for number, (store, day) in enumerate(places)
        for window in range(2)
    ]

    made = pa.Table.from_batches(Blocks.of(SALES)(iter(pa.Table.from_pylist(rows).to_batches())))

    assert made.schema.equals(made_schema(SALES))
    assert [(row["store"], row["day"]) for row in made.to_pylist()] == places
    for row in made.to_pylist():
        cells = list(read_block(SALES, row["block"]))
        sums = [sum(int(states[place] or 0) for _, states in cells) for place, _ in enumerate(SALES.columns)]
        assert (row["cells"], [row[f"sum{place}"] for place, _ in enumerate(SALES.columns)]) == (len(cells), sums)


def test_the_cells_of_a_block_are_sorted_and_a_state_without_a_value_is_null() -> None:
    discounts = view_named("discounts")
    states = [f"s{at}" for at, _ in enumerate(discounts.columns)]
    rows = [
        {"store": "1", "day": date(2026, 1, 1), "window": window, "d0": "EUR"} | dict.fromkeys(states, value)
        for window, value in ((900, 3), (0, None), (900, 4))
    ]
    types = [("store", pa.string()), ("day", pa.date32()), ("window", pa.int64()), ("d0", pa.string())]
    schema = pa.schema([*types, *((state, pa.int64()) for state in states)])

    (made,) = Blocks.of(discounts)(iter(pa.Table.from_pylist(rows, schema).to_batches()))

    assert orjson.loads(made["block"][0].as_py()) == {"window": [0, 900], "currency": ["EUR", "EUR"]} | {
        name: [None, 7] for name in discounts.columns
    }


def test_rows_of_a_store_and_day_that_do_not_follow_each_other_are_an_error() -> None:
    rows = [
        {"store": store, "day": date(2026, 1, 1), "window": 0, "d0": "EUR"}
        | {f"s{at}": 1 for at, _ in enumerate(SALES.columns)}
        for store in ("1", "2", "1")
    ]

    with pytest.raises(AssertionError, match="do not follow each other"):
        list(Blocks.of(SALES)(iter(pa.Table.from_pylist(rows).to_batches())))
