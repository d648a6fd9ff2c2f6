"""What a parsed batch becomes before it is counted."""

from datetime import UTC, datetime

import pyarrow as pa

from master_dataset.parsing.rows import output_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from speed_layer.arrow_tables import events_and_positions
from speed_layer.parser import ONLY_ARCHIVED, unread_columns
from views import registered_views


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

    events, *positions = events_and_positions(pa.RecordBatch.from_pylist(rows, schema=full), schema)

    assert events["offset"].to_pylist() == [5]
    reached_at = [(row["kind"], row["partition"], row["offset"]) for each in positions for row in each.to_pylist()]
    assert reached_at == [("position", 0, 6), ("position", 1, 2)]


def test_columns_that_no_view_mentions_are_not_built() -> None:
    unread = unread_columns(POS_TRANSACTIONS, registered_views())

    assert "transaction_id" in unread
    assert not {"items", "line_count", "till", "currency", "gross_sales", "is_sale"} & unread
