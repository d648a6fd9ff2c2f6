"""Blocks of receipts: what is packed is unpacked, by store and hour, bounded in size; pages of them have no gap."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.receipt_blocks import SentReceipt, pack, unpack
from serving_layer.store.readers import RawReceipt, ReceiptPlace
from serving_layer.tables import AsyncSession, ReceiptTables
from speed_layer.receipts import ReceiptBlockWriter
from tests.fast.laws.delivery.receipts_law import SCHEMA
from tests.fast.laws.delivery.tables import Tables, in_memory
from views.core.cut import UNIX_EPOCH

DAY = datetime(2026, 3, 27, tzinfo=UTC)
TTL = 35 * 86_400
Sold = tuple[int, int, int, int]
"""Store, minute of the day, number, and the offset of the delivery: two are received in each second."""


def batch(sold: Sequence[Sold], size: int = 10) -> pa.RecordBatch:
    rows = [
        {
            "kind": "event",
            "day": DAY.date(),
            "store": str(store),
            "happened_at": DAY + timedelta(minutes=minute),
            "till": "t",
            "transaction_id": str(number),
            "received_at": DAY + timedelta(minutes=minute, seconds=late // 2),
            "partition": 0,
            "offset": late,
            "value": f"{number}:{late}".ljust(size).encode(),
        }
        for store, minute, number, late in sold
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class Reader:
    """An `AsyncSession` over tables in memory."""

    def __init__(self, tables: Tables) -> None:
        self._blocks = tables.of("receipt_blocks")

    def prepare(self, query: str) -> str:
        return query

    async def rows(self, query: str, *values: object) -> list[Any]:
        if "receipt_blocks" not in query:
            return []
        day, store, hours = values
        own = [row for row in self._blocks if (row["day"], row["store"]) == (day, store)]
        return [(row["block"],) for row in own if row["hour"] in cast("list[int]", hours)]


def pages(tables: Tables, store: int, limit: int) -> list[RawReceipt]:
    reader = ReceiptTables(cast("AsyncSession", Reader(tables)))
    found, after = list[RawReceipt](), cast("ReceiptPlace | None", None)
    while page := asyncio.run(reader.receipts(str(store), DAY.date(), after, limit)):
        assert len(page) <= limit
        found += page
        after = page[-1].place
    return found


WHOLE = st.integers(-(2**62), 2**62)


@given(st.lists(st.builds(SentReceipt, WHOLE, st.text(), st.text(), WHOLE, WHOLE, WHOLE, st.binary()), min_size=1))
def test_what_is_packed_is_unpacked(deliveries: list[SentReceipt]) -> None:
    columns = [*zip(*deliveries, strict=True)]

    assert list(unpack(pack(columns).block)) == deliveries
    assert pack(columns).digest == pack(columns).digest
    assert pack(columns).digest != pack([*zip(*deliveries, deliveries[0], strict=True)]).digest


SOLD = st.tuples(st.integers(0, 2), st.integers(0, 1439), st.integers(0, 20), st.integers(0, 3))


@given(portions=st.lists(st.lists(SOLD, max_size=20), max_size=6), limit=st.integers(1, 9))
def test_pages_show_the_first_delivery_of_each_receipt_newest_first(portions: list[list[Sold]], limit: int) -> None:
    tables = Tables()
    with in_memory():
        for portion in portions:
            ReceiptBlockWriter(lambda: tables, TTL)(batch(portion))()

    for store in range(3):
        first: dict[tuple[int, str], int] = {}
        for at, minute, number, late in (each for portion in portions for each in portion):
            if at == store:
                first[-minute, str(number)] = min(late, first.get((-minute, str(number)), late))
        shown = [
            (-((each.place.happened_at - DAY) // timedelta(minutes=1)), each.place.transaction_id, each.value.strip())
            for each in pages(tables, store, limit)
        ]
        assert shown == [(minute, number, f"{number}:{late}") for (minute, number), late in sorted(first.items())]


def test_blocks_are_of_one_store_and_hour_and_bounded() -> None:
    tables = Tables()
    sold = [(number % 2, number // 10, number, 0) for number in range(1400)]

    with in_memory():
        ReceiptBlockWriter(lambda: tables, TTL)(batch(sold, size=50_000))()

    seen = 0
    for row in tables.of("receipt_blocks"):
        deliveries = list(unpack(row["block"]))
        seen += len(deliveries)
        assert sum(len(each.value) for each in deliveries) <= 256 * 1024
        hours = {(UNIX_EPOCH + timedelta(milliseconds=each.happened_ms)).hour for each in deliveries}
        assert hours == {row["hour"]}
        assert {str(int(each.transaction_id) % 2) for each in deliveries} == {row["store"]}
    assert seen == len(sold)


def test_a_receipt_larger_than_a_block_has_one_of_its_own() -> None:
    tables = Tables()

    with in_memory():
        ReceiptBlockWriter(lambda: tables, TTL)(batch([(0, 0, 1, 0), (0, 0, 2, 0)], size=300_000))()

    assert [len(list(unpack(row["block"]))) for row in tables.of("receipt_blocks")] == [1, 1]
