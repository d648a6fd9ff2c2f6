"""Any events, in any order, with any duplicates, cut anywhere: both layers together equal one pass."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS as POS
from master_dataset.visits.rows import VisitKey, VisitRow
from master_dataset.visits.visit import RULES, Sighting
from speed_layer.visits import OpenVisits
from tests.support import World, receipt
from tests.support.examples import examples
from tests.support.layers import OLDEST, Delivery, batch_cells, firsts, speed_rows, waiting_rows
from tests.support.sensors import Drawn, record, source_of
from tests.support.visits import is_fresh
from tests.support.visits import of_bundles as visits_of_catalogue
from views.core import States, View
from views.core.cells import Addition, CellKey
from views.core.cut import floor_to
from views.core.merge import merge_cells
from views.registry import registered_views

BEGIN = datetime(2026, 3, 27, 12, tzinfo=UTC)
EPOCH = timedelta(minutes=5)
NEVER = datetime(2100, 1, 1, tzinfo=UTC)

AMOUNTS = st.sampled_from([1, 2, -1, 0.5, -0.734, 0])
LINES = st.lists(
    st.builds(
        lambda price, amount, sku, discount: (
            {"title": "t", "price": price / 100, "amount": amount}
            | ({"sku": sku} if sku else {})
            | ({"discount": -discount if amount < 0 else discount} if discount is not None else {})
        ),
        st.integers(-300, 5000),
        AMOUNTS,
        st.none() | st.sampled_from(["a", "b", "c"]),
        st.none() | st.sampled_from([0, 1, 2.5]),
    ),
    max_size=4,
)
PAID = st.none() | st.lists(
    st.builds(
        lambda kind, amount: {"type": kind, "amount": amount / 100},
        st.sampled_from(["cash", "card"]),
        st.integers(-500, 5000),
    ),
    max_size=3,
)
SALES_MADE = st.tuples(st.integers(0, 2), st.sampled_from(["7", "8"]), st.integers(0, 4000), LINES, PAID)
HISTORIES = st.lists(
    st.tuples(SALES_MADE, st.integers(-30, 22 * 60), st.lists(st.integers(1, 4000), max_size=2)), max_size=12
)
"""Per receipt (number, till, minute, lines, payments), minutes until it arrives, and minutes until each duplicate."""
CUTS = st.integers(0, 5400).map(lambda minutes: floor_to(BEGIN + timedelta(minutes=minutes), EPOCH))


def received(history: list[tuple[tuple[int, str, int, object, object], int, list[int]]]) -> list[Delivery]:
    """The deliveries in the order in which the broker stamped them."""
    sent: list[tuple[datetime, bytes]] = []
    for (number, till, minute, lines, paid), delay, again in history:
        happened_at = BEGIN + timedelta(minutes=minute)
        value = receipt(happened_at.isoformat(), lines, number=number, till=till, payments=paid)  # type: ignore[arg-type]
        first = happened_at + timedelta(minutes=delay)
        sent += [(first + timedelta(minutes=more), value) for more in (0, *again)]
    world = World(epoch=EPOCH)
    for at, value in sorted(sent):
        world.receive(value, at)
    return list(world.of("1"))


def merged(view: View, deliveries: list[Delivery], cut: datetime) -> dict[CellKey, States]:
    """What serving would answer."""
    batch = batch_cells(view, deliveries, cut, EPOCH)
    written = [
        Addition(key, epoch, states)
        for epoch, cells in speed_rows(view, deliveries, EPOCH).items()
        for key, states in cells.items()
    ]
    return {cell.key: cell.merged for cell in merge_cells(view, batch.items(), written, cut)}


@pytest.mark.parametrize(
    "view", [view for view in registered_views() if view.source is POS], ids=lambda view: view.name
)
@settings(max_examples=examples(1000), deadline=None)
@given(history=HISTORIES, cut=CUTS)
def test_any_split_of_any_history_equals_one_pass(view: View, history: list, cut: datetime) -> None:  # type: ignore[type-arg]
    deliveries = received(history)

    answered = merged(view, deliveries, cut)

    assert answered == batch_cells(view, deliveries, NEVER, EPOCH)


SENSED = st.tuples(st.integers(0, 200), st.integers(0, 4000), st.integers(0, 5))
SIGHTED = st.tuples(st.integers(0, 700), st.integers(0, 2), st.integers(0, 1))
DELAYS = st.integers(-3, 24) | st.integers(0, 300)
"""Minutes: mostly fresh, as sightings see it, some too late for that."""


def heard(topic: str, history: list[tuple[Drawn, int, list[int]]]) -> list[Delivery]:
    """The deliveries of records of one sensor source, each as late as drawn, repeats after it."""
    sent: list[tuple[datetime, bytes]] = []
    for drawn, delay, again in history:
        first = BEGIN + timedelta(minutes=drawn[0] + delay, seconds=1)
        sent += [(first + timedelta(minutes=more), record(topic, drawn)) for more in (0, *again)]
    world = World(epoch=EPOCH)
    for at, value in sorted(sent):
        world.receive(value, at, source_of(topic))
    return list(world.of("1"))


@pytest.mark.parametrize(
    "view",
    [view for view in registered_views() if view.source is not POS and not view.counts_visits],
    ids=lambda view: view.name,
)
@settings(max_examples=examples(100), deadline=None)
@given(
    history=st.lists(st.tuples(SENSED, st.integers(0, 1300), st.lists(st.integers(1, 600), max_size=2)), max_size=12),
    cut=CUTS,
)
def test_any_split_of_what_sensors_say_equals_one_pass(view: View, history: list, cut: datetime) -> None:  # type: ignore[type-arg]
    deliveries = heard(view.source.topic, history)

    answered = merged(view, deliveries, cut)

    assert answered == batch_cells(view, deliveries, NEVER, EPOCH)


@settings(max_examples=examples(500), deadline=None)
@given(
    history=st.lists(st.tuples(SIGHTED, st.integers(0, 24), st.lists(st.integers(1, 9), max_size=2)), max_size=25),
    cut=CUTS,
)
def test_any_split_of_fresh_sightings_gives_the_visits_of_one_pass(history: list, cut: datetime) -> None:  # type: ignore[type-arg]
    [visits] = [view for view in registered_views() if view.counts_visits]
    deliveries = heard(visits.source.topic, history)

    answered = merged(visits, [each for each in deliveries if is_fresh(each)], cut)

    assert answered == batch_cells(visits, [each for each in deliveries if is_fresh(each)], NEVER, EPOCH)


@settings(max_examples=examples(500), deadline=None)
@given(history=st.lists(st.tuples(SIGHTED, DELAYS, st.lists(st.integers(1, 90), max_size=2)), max_size=25))
def test_the_products_bundles_give_the_visits_that_the_catalogue_describes(history: list) -> None:  # type: ignore[type-arg]
    deliveries = heard("wifi_sightings", history)
    bundled_alone = [each for each in deliveries if is_fresh(each)]
    open_visits = OpenVisits(RULES, 5_000)
    rows: list[VisitRow] = []
    for each in bundled_alone:
        said = each.event.payload
        sighting = Sighting(ms(each.received_at), each.event.happened_ms, said.is_inside)
        rows += open_visits.add(0, VisitKey("1", said.device, said.business_day), sighting)
        rows += open_visits.advance(0, ms(each.received_at))
    rows += open_visits.advance(0, ms(NEVER))

    found = sorted((known // 1000, at // 1000, stay, *kinds) for _, _, known, at, *kinds, stay in rows)

    expected = [
        (ms(known), key.window * 1000, states[4], bool(states[1]), bool(states[2]), bool(states[3]))
        for known, key, states in visits_of_catalogue(deliveries)
    ]
    in_windows = [(known, at - at % 900_000, stay if kinds[0] else 0, *kinds) for known, at, stay, *kinds in found]
    assert sorted(in_windows) == sorted(expected)
    assert len(open_visits) == 0


def ms(at: datetime) -> int:
    """Milliseconds since 1970."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


OLD_HISTORIES = st.lists(
    st.tuples(SALES_MADE, st.integers(-30, 9000), st.lists(st.integers(1, 9000), max_size=2)), max_size=12
)


@settings(max_examples=examples(300), deadline=None)
@given(history=OLD_HISTORIES, cut=CUTS)
def test_what_is_missing_is_counted_as_waiting(history: list, cut: datetime) -> None:  # type: ignore[type-arg]
    [sales] = [view for view in registered_views() if view.name == "sales"]
    deliveries = received(history)
    old = sum(1 for each in firsts(deliveries) if each.is_old and floor_to(each.received_at, EPOCH) >= cut)

    left = [cells for epoch, cells in waiting_rows(deliveries, EPOCH).items() if epoch >= cut]
    waiting = sum(int(n or 0) for cells in left for (n,) in cells.values())

    shown = sum(int(states[0] or 0) for states in merged(sales, deliveries, cut).values())
    whole = sum(int(states[0] or 0) for states in batch_cells(sales, deliveries, NEVER, EPOCH).values())
    assert whole - shown == old
    assert waiting >= old
    assert timedelta(hours=23) == OLDEST
