"""Blocks and the sums of their cells, as Spark's workers make them."""

from datetime import date, timedelta

import pyarrow as pa

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
