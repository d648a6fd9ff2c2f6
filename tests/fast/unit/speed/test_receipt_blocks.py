"""Blocks of receipts: what is packed is unpacked, by store and hour, bounded in size; pages of them have no gap."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.receipt_blocks import SentReceipt, pack, unpack
from serving_layer.store.readers import RawReceiptPage, ReceiptPlace
from serving_layer.tables import AsyncSession, ReceiptTables, receipts
from serving_layer.tables.receipts import _Page
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
    """An `AsyncSession` over tables in memory. `read`: blocks that were read."""

    def __init__(self, tables: Tables) -> None:
        self._blocks = tables.of("receipt_blocks")
        self.read = 0

    def prepare(self, query: str) -> str:
        return query

    async def pages(self, query: str, *values: Any, rows_at_once: int) -> AsyncIterator[list[Any]]:
        if "receipt_blocks" not in query:
            return
        day, store, hour = values
        own = [row for row in self._blocks if (row["day"], row["store"]) == (day, store) and row["hour"] <= hour]
        found = [(row["hour"], row["block"]) for row in sorted(own, key=lambda row: (-row["hour"], row["digest"]))]
        for start in range(0, len(found), rows_at_once):
            self.read += len(found[start : start + rows_at_once])
            yield found[start : start + rows_at_once]


def page_of(reader: Reader, after: ReceiptPlace | None, limit: int, page_bytes: int) -> RawReceiptPage:
    tables = ReceiptTables(cast("AsyncSession", reader), page_bytes)
    return asyncio.run(tables.receipts("0", DAY.date(), after, limit))


def pages(tables: Tables, store: int, limit: int, page_bytes: int) -> list[RawReceiptPage]:
    reader = ReceiptTables(cast("AsyncSession", Reader(tables)), page_bytes)
    found, after = list[RawReceiptPage](), cast("ReceiptPlace | None", None)
    while True:
        page = asyncio.run(reader.receipts(str(store), DAY.date(), after, limit))
        found.append(page)
        if not page.has_more:
            return found
        after = page.receipts[-1].place


WHOLE = st.integers(-(2**62), 2**62)


@given(st.lists(st.builds(SentReceipt, WHOLE, st.text(), st.text(), WHOLE, WHOLE, WHOLE, st.binary()), min_size=1))
def test_what_is_packed_is_unpacked(deliveries: list[SentReceipt]) -> None:
    columns = [*zip(*deliveries, strict=True)]

    assert list(unpack(pack(columns).block)) == deliveries
    assert pack(columns).digest != pack([*zip(*deliveries, deliveries[0], strict=True)]).digest


def test_the_digest_depends_on_nothing_but_the_deliveries() -> None:
    """The digest is part of the key of stored blocks: another process must write the same one."""
    delivery = SentReceipt(1_772_366_400_000, "till", "7", 1_772_366_400_500, 0, 12, b'{"total":"2.50"}')

    assert pack([*zip(delivery)]).digest.hex() == "9055a64de8b2bcc7f1c6676324276834"


SOLD = st.tuples(st.integers(0, 2), st.integers(0, 1439), st.integers(0, 20), st.integers(0, 3))


@given(
    portions=st.lists(st.tuples(st.lists(SOLD, max_size=20), st.integers(4, 40)), max_size=6),
    limit=st.integers(1, 9),
    page_bytes=st.integers(1, 200),
)
def test_pages_show_the_first_delivery_of_each_receipt_newest_first(
    portions: list[tuple[list[Sold], int]], limit: int, page_bytes: int
) -> None:
    tables = Tables()
    with in_memory():
        for portion, size in portions:
            ReceiptBlockWriter(lambda: tables, TTL)(batch(portion, size))()

    for store in range(3):
        first: dict[tuple[int, str], int] = {}
        for at, minute, number, late in (each for portion, _ in portions for each in portion):
            if at == store:
                first[-minute, str(number)] = min(late, first.get((-minute, str(number)), late))
        found = pages(tables, store, limit, page_bytes)
        for page in found:
            assert len(page.receipts) <= limit
            assert len(page.receipts) <= 1 or sum(len(each.value) for each in page.receipts) <= page_bytes
            assert page.receipts or not page.has_more
        shown = [
            (-((each.place.happened_at - DAY) // timedelta(minutes=1)), each.place.transaction_id, each.value.strip())
            for page in found
            for each in page.receipts
        ]
        assert shown == [(minute, number, f"{number}:{late}") for (minute, number), late in sorted(first.items())]


def test_a_page_ends_before_large_receipts_exceed_it_and_is_full_otherwise() -> None:
    tables = Tables()
    with in_memory():
        ReceiptBlockWriter(lambda: tables, TTL)(batch([(0, number, number, 0) for number in range(10)], 300_000))()
        ReceiptBlockWriter(lambda: tables, TTL)(batch([(0, 60 + number, number, 0) for number in range(30)]))()

    found = pages(tables, 0, 20, 1_000_000)

    assert [len(page.receipts) for page in found] == [20, 13, 3, 3, 1]


def test_blocks_are_read_page_by_page_until_the_page_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "ROWS_AT_ONCE", 4)
    tables, most = Tables(), list[int]()
    with in_memory():
        for minute in range(0, 1440, 2):  # 30 blocks an hour
            ReceiptBlockWriter(lambda: tables, TTL)(batch([(0, minute, 0, 0)], 1000))()
    add = _Page.add

    def measured(page: _Page, deliveries: Iterable[SentReceipt]) -> None:
        add(page, deliveries)
        most.append(len(page._first))  # noqa: SLF001 - what is in memory is what this is about

    monkeypatch.setattr(_Page, "add", measured)

    by_count, by_bytes = Reader(tables), Reader(tables)
    assert len(page_of(by_count, None, 5, 1_000_000).receipts) == 5
    assert len(page_of(by_bytes, None, 1000, 5_000).receipts) == 5

    for reader in (by_count, by_bytes):
        assert 30 < reader.read <= 36
    assert max(most) <= 10


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
