"""What micro-batches add up to, however the events were split among them."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from speed_layer.additions import AdditionKey, additions
from speed_layer.contributions import shapes_of
from tests.support.arrivals import ARRIVALS, Given, arrival, arrived, stated
from tests.support.examples import examples
from views import registered_views
from views.arrow.contributions import EVENTS_AT_ONCE
from views.core.aggregates import Value
from views.core.cells import WAITING, CellKey, States
from views.core.cut import epoch_of
from views.core.sketch import sketch_of

SHAPES = shapes_of(registered_views())
EPOCH = timedelta(seconds=2)
BEGUN = datetime(2026, 3, 7, 9, tzinfo=UTC)
Cells = dict[tuple[AdditionKey, CellKey], States]


@st.composite
def contributions(draw: st.DrawFn) -> Given:
    shape = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    texts = [draw(st.sampled_from(["a", 'é"', None])) for _ in shape.dimensions]
    values: list[Value] = [draw(st.integers(-(10**9), 10**9)) for _ in shape.columns]
    return shape.name, draw(st.sampled_from([0, 900])), texts, values


EVENT = st.tuples(st.sampled_from(["1", "2"]), st.integers(0, 5_000_000), st.lists(contributions(), max_size=4))
"""Store, microseconds until it is received, contributions."""


def added(*parts: Cells) -> Cells:
    """By Python alone."""
    whole: Cells = {}
    for part in parts:
        for (of, cell), states in part.items():
            columns = SHAPES[of.shape].columns.values()
            before = whole.get((of, cell))
            both = zip(columns, before or (None,) * len(states), states, strict=True)
            whole[of, cell] = tuple(column.merge(left, right) for column, left, right in both)
    return whole


def one_by_one(drawn: list[tuple[str, int, list[Given]]]) -> list[Cells]:
    """The cells of each contribution."""
    found: list[Cells] = []
    for store, late, own in drawn:
        epoch = epoch_of(BEGUN + timedelta(microseconds=late), EPOCH)
        found += [{(AdditionKey(view, store, epoch), CellKey(at, tuple(d))): states(view, v)} for view, at, d, v in own]
    return found


def states(view: str, values: list[Value]) -> States:
    """The states of what one row gives: of a hash its sketch."""
    columns = SHAPES[view].columns.values()
    return tuple(
        sketch_of([int(value or 0)]) if column.by == "union" else value
        for column, value in zip(columns, values, strict=True)
    )


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(EVENT, max_size=12), st.integers(0, 12))
def test_what_is_added_is_the_contributions_of_each_cell_and_epoch_however_they_are_split(
    drawn: list[tuple[str, int, list[Given]]], split: int
) -> None:
    rows = [
        arrival(str(n), n, BEGUN + timedelta(microseconds=late), own, store=store)
        for n, (store, late, own) in enumerate(drawn)
    ]
    parts = [pa.Table.from_batches([arrived(part)], schema=ARRIVALS) for part in (rows[:split], rows[split:])]

    found = [
        {(of, key): states for of, cells in additions(part, stated, SHAPES, EPOCH) for key, states in cells}
        for part in parts
    ]

    assert added(*found) == added(*one_by_one(drawn))


def test_the_cells_of_a_store_and_epoch_come_once_and_in_the_same_order_whatever_the_order_of_the_events() -> None:
    one: list[Given] = [(WAITING.name, window, ["t"], [1]) for window in (900, 0, 1800)]
    rows = [arrival("a", 0, BEGUN, one), arrival("b", 1, BEGUN, one[:1], store="2"), arrival("c", 2, BEGUN, one[1:])]

    forwards, backwards = (
        list(additions(pa.Table.from_batches([arrived(order)]), stated, SHAPES, EPOCH)) for order in (rows, rows[::-1])
    )

    assert forwards == backwards
    assert [(of.store, [states for _, states in cells]) for of, cells in forwards] == [
        ("1", [(2,), (1,), (2,)]),
        ("2", [(1,)]),
    ]


def test_more_events_than_are_added_up_at_once_still_give_the_cells_of_a_store_once() -> None:
    one: list[Given] = [(WAITING.name, 0, ["t"], [1])]
    stores = {"1": EVENTS_AT_ONCE - 1, "2": EVENTS_AT_ONCE + 1, "3": 2}
    rows = [arrival(f"{store}/{n}", n, BEGUN, one, store=store) for n in range(EVENTS_AT_ONCE + 1) for store in stores]
    some = [row for n, row in enumerate(rows) if n // len(stores) < stores[row["store"]]]

    found = list(additions(pa.Table.from_batches([arrived(some)]), stated, SHAPES, EPOCH))

    assert [(of.store, cells) for of, cells in found] == [
        (store, [(CellKey(0, ("t",)), (number,))]) for store, number in stores.items()
    ]
