"""Receipts as they are shown: each that was sent, as it was delivered first, in whatever order they are written."""

from datetime import datetime, timedelta
from operator import attrgetter
from random import Random
from typing import NamedTuple

import pyarrow as pa

from master_dataset.parsing.rows import EVENT
from master_dataset.receipt_blocks import SentReceipt, unpack
from speed_layer.receipts import ReceiptBlockWriter, ReceiptWriter
from tests.fast.laws.delivery.tables import Tables, in_memory
from views.core.cut import UNIX_EPOCH

NOON = UNIX_EPOCH + timedelta(days=20_000, hours=12)
INSTANT = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("store", pa.string()),
        ("happened_at", INSTANT),
        ("till", pa.string()),
        ("transaction_id", pa.string()),
        ("received_at", INSTANT),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
    ]
)
SALES, TTL = 30, 7 * 86_400


class Delivery(NamedTuple):
    """`number`: of the receipt, which says all else of it but its bytes."""

    number: int
    received_at: datetime
    value: bytes

    def row(self) -> dict[str, object]:
        happened_at = NOON + timedelta(seconds=self.number // 4)  # several a second
        return {
            "kind": EVENT,
            "day": happened_at.date(),
            "store": "1",
            "happened_at": happened_at,
            "till": str(self.number % 2),
            "transaction_id": str(self.number),
            "received_at": self.received_at,
            "partition": 0,
            "offset": (self.received_at - NOON) // timedelta(milliseconds=1),
            "value": self.value,
        }


def each_is_shown_as_it_came_first(seeds: int = 10) -> None:
    """Nothing is merged, and neither a later delivery nor a replay takes the place of the first."""
    for seed in range(seeds):
        chance, tables = Random(seed), Tables()
        deliveries = [
            Delivery(number, NOON + timedelta(minutes=1 + again, milliseconds=number), f"{number}.{again}".encode())
            for number in range(SALES)
            for again in range(chance.randint(1, 3))
        ]
        portions = [deliveries[start : start + 7] for start in range(0, len(deliveries), 7)]
        chance.shuffle(portions)  # tasks write side by side, and some of them again
        with in_memory():
            for portion in [*portions, *chance.sample(portions, 2)]:
                parsed = pa.RecordBatch.from_pylist([each.row() for each in portion], schema=SCHEMA)
                ReceiptWriter(lambda: tables, TTL)(parsed)()  # noqa: B023
                ReceiptBlockWriter(lambda: tables, TTL)(parsed)()  # noqa: B023
        wanted = sorted(f"{number}.0" for number in range(SALES))
        shown = sorted(row["value"] for row in tables.of("raw_pos_transactions"))
        assert shown == wanted, f"seed {seed}: {shown}"
        first: dict[object, SentReceipt] = {}
        for row in tables.of("receipt_blocks"):
            for each in unpack(row["block"]):
                first[each.identity] = min(each, first.get(each.identity, each), key=attrgetter("precedence"))
        shown = sorted(each.value.decode() for each in first.values())
        assert shown == wanted, f"seed {seed}: {shown}"
