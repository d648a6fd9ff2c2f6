"""A small rebuild holds the contributions of some stores at a time, not those of all."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from batch_layer.arrow_events import cell_batches, days_of
from master_dataset.parsing.rows import EVENT
from tests.integration.test_view_sql import parsed_table
from views import registered_views
from views.arrow.contributions import EVENTS_AT_ONCE, contributions, whole_stores
from views.arrow.expressions import Rows
from views.core.cells import WINDOW_KEY

LATER = datetime(2100, 1, 1, tzinfo=UTC)
(VIEW,) = (view for view in registered_views() if view.name == "sales_by_sku")


def events_of(stores: int, each: int) -> pa.Table:
    """Receipts, in the order of their arrival: of all stores in turn."""
    table = parsed_table(VIEW.source.topic)
    table = table.filter(pc.equal(table["kind"], EVENT))
    total = stores * each
    table = pa.concat_tables([table] * -(-total // table.num_rows)).slice(0, total)
    names = pa.array([str(number % stores) for number in range(total)])
    return table.set_column(table.schema.get_field_index("store"), "store", names)


def held_bytes(stores: int) -> int:
    """Of what is held beside the events, whenever a batch is given."""
    events = events_of(stores, EVENTS_AT_ONCE)
    days = set(days_of(contributions(VIEW, Rows.of(events.slice(0, 1_000)))[WINDOW_KEY]).to_pylist())
    before = pa.total_allocated_bytes()
    held: int = max(pa.total_allocated_bytes() - before for _ in cell_batches(VIEW, events, LATER, days))
    return held


def test_four_times_the_stores_do_not_need_four_times_the_memory() -> None:
    assert held_bytes(8) < 2 * held_bytes(2)


@pytest.mark.parametrize("stores", [1, 3, 2 * EVENTS_AT_ONCE])
def test_portions_have_every_event_once_and_whole_stores(stores: int) -> None:
    events = events_of(stores, -(-2 * EVENTS_AT_ONCE // stores))

    portions = [portion["store"].to_pylist() for portion in whole_stores(events)]

    assert sorted(store for portion in portions for store in portion) == sorted(events["store"].to_pylist())
    assert len({store for portion in portions for store in set(portion)}) == sum(len(set(each)) for each in portions)
    assert all(len(portion) >= EVENTS_AT_ONCE for portion in portions[:-1])


def test_no_events_are_no_portions() -> None:
    assert list(whole_stores(events_of(1, 1).slice(0, 0))) == []
