"""How totals become rows, and when a generation may take over."""

from datetime import UTC, datetime

import pyarrow as pa

from master_dataset.parsing.rows import output_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.generation import reached
from speed_layer.query import ONLY_ARCHIVED, events_and_position, unread_columns
from speed_layer.rows import layouts
from views import registered_views


def test_the_layout_of_a_view_names_a_reducer_for_every_state_column() -> None:
    found = layouts(registered_views())

    assert all(len(found[view.name]) == len(view.columns) for view in registered_views())
    assert found["waiting"] == ("sum",)


def test_a_generation_has_caught_up_when_no_partition_is_short_of_its_target() -> None:
    targets = {"t": {0: 10, 1: 0}}

    assert reached({"t": {0: 10}}, targets)  # nothing was ever in partition 1
    assert not reached({"t": {0: 9, 1: 5}}, targets)
    assert not reached({}, targets)


def test_a_batch_gives_its_events_and_the_last_place_of_each_partition() -> None:
    full = output_schema(POS_TRANSACTIONS)
    at = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)
    kinds = [("event", 0, 5), ("dead_letter", 0, 6), ("marker", 1, 2)]
    rows = [
        {
            **dict.fromkeys(full.names),
            "kind": kind,
            "topic": "t",
            "partition": partition,
            "offset": offset,
            "received_at": at,
        }
        for kind, partition, offset in kinds
    ]
    schema = pa.schema([field for field in full if field.name not in ONLY_ARCHIVED])

    events, *positions = events_and_position(pa.RecordBatch.from_pylist(rows, schema=full), schema)

    assert events["offset"].to_pylist() == [5]
    reached_at = [(row["kind"], row["partition"], row["offset"]) for each in positions for row in each.to_pylist()]
    assert reached_at == [("position", 0, 6), ("position", 1, 2)]


def test_columns_that_no_view_mentions_are_not_built() -> None:
    unread = unread_columns(POS_TRANSACTIONS, registered_views())

    assert "lines" in unread
    assert not {"items", "line_count", "till", "currency", "gross_sales", "is_sale"} & unread
