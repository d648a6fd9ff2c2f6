"""The receipts as they were sent: the tables receipt_blocks and, by former releases, raw_pos_transactions."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain

from master_dataset.receipt_blocks import SentReceipt, unpack
from serving_layer.store.readers import (
    RECEIPT_PAGE_BYTES,
    Position,
    RawReceipt,
    RawReceiptPage,
    ReceiptPlace,
    receipts_on_page,
)
from serving_layer.tables.async_session import AsyncSession, Row, instant_of, optional_instant
from views.core.cut import UNIX_EPOCH

_Order = tuple[int, str, str]
"""Sorts receipts as `ReceiptPlace` does: the negated time of sale, till and number."""
_MS = timedelta(milliseconds=1)
_LAST_HOUR, _HOUR_MS, _HOURS = 23, 3_600_000, 24
ROWS_AT_ONCE = 32
"""Receipts, or blocks of them, that Cassandra and this process read at once: each may have a megabyte."""
_SELECT_ROW = (
    "SELECT happened_at, vendor_fiscal_module, transaction_id, received_at, value "
    "FROM raw_pos_transactions WHERE day = ? AND operation_id = ?"
)


class ReceiptTables:
    """Implements `ReceiptReader` with Cassandra."""

    def __init__(self, session: AsyncSession, page_bytes: int = RECEIPT_PAGE_BYTES) -> None:
        """Prepares its statements. `page_bytes`: as of `receipts_on_page`."""
        self._session, self._page_bytes = session, page_bytes
        self._blocks = session.prepare(
            "SELECT hour, block FROM receipt_blocks WHERE day = ? AND store = ? AND hour <= ?"
        )
        self._first = session.prepare(f"{_SELECT_ROW} LIMIT ?")
        self._same_instant = session.prepare(
            f"{_SELECT_ROW} AND happened_at = ? AND (vendor_fiscal_module, transaction_id) > (?, ?) LIMIT ?"
        )
        self._before = session.prepare(f"{_SELECT_ROW} AND happened_at < ? LIMIT ?")
        self._archived = session.prepare(
            "SELECT partition, position, received_at FROM archive_positions WHERE topic = ?"
        )

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> RawReceiptPage:
        """Reads the blocks of one hour after the other, the newest first, until the page is complete.

        Blocks of an hour are in no order, so all of them are read. What is not on the page is dropped meanwhile.
        """
        page = _Page(after, limit, self._page_bytes)
        await self._add_rows(page, store, day, after)
        hour = after.happened_at.hour if after else _LAST_HOUR
        async for rows in self._session.pages(self._blocks, day, store, hour, rows_at_once=ROWS_AT_ONCE):
            await asyncio.to_thread(page.add, _unpacked(rows))  # an hour may have thousands of blocks
            newest_unread = rows[-1][0]
            if newest_unread < hour and page.ends_before(newest_unread):
                break
            hour = newest_unread
        return page.shown()

    async def _add_rows(self, page: "_Page", store: str, day: date, after: ReceiptPlace | None) -> None:
        """Two reads behind a place, because the order is newest first but by till upwards."""
        most = page.limit + 1
        if after is None:
            reads = [self._session.pages(self._first, day, store, most, rows_at_once=ROWS_AT_ONCE)]
        else:
            at, till, number = after
            reads = [
                self._session.pages(self._same_instant, day, store, at, till, number, most, rows_at_once=ROWS_AT_ONCE),
                self._session.pages(self._before, day, store, at, most, rows_at_once=ROWS_AT_ONCE),
            ]
        for read in reads:
            async for rows in read:
                page.add(map(_sent, rows))
                if page.is_cut:  # the following rows are behind its end
                    return

    async def archived(self, topic: str) -> Sequence[Position]:
        """How far the archive has read each partition of the topic."""
        rows = await self._session.rows(self._archived, topic)
        return [Position(topic, number, at, optional_instant(read)) for number, at, read in sorted(rows)]


class _Page:
    """The receipts of a page, while deliveries of its store and day are read in any order.

    It has twice of what a page has at most. When there is more, what lies behind the page is dropped: all receipts from
    a place on. Every delivery of the others is looked at, so the first one of each is found.
    """

    def __init__(self, after: ReceiptPlace | None, limit: int, page_bytes: int) -> None:
        self.limit, self._page_bytes = limit, page_bytes
        self._after = None if after is None else _order_of(after)
        self._end: _Order | None = None
        self._first: dict[_Order, SentReceipt] = {}
        self._size = 0

    @property
    def is_cut(self) -> bool:
        """Whether receipts were dropped, so that those behind them are not on the page either."""
        return self._end is not None

    def add(self, deliveries: Iterable[SentReceipt]) -> None:
        """Look at deliveries of receipts, which may lie anywhere."""
        for each in deliveries:
            order = _order(each)
            if (self._after is not None and order <= self._after) or (self._end is not None and order >= self._end):
                continue
            known = self._first.get(order)
            if known is None or each.precedence < known.precedence:
                self._first[order] = each
                self._size += len(each.value) - (0 if known is None else len(known.value))
                if len(self._first) > 2 * self.limit or self._size > 2 * self._page_bytes:
                    self._cut()

    def ends_before(self, hour: int) -> bool:
        """Whether no receipt of this hour, or of an earlier one, can be on the page."""
        self._cut()
        return self._end is not None and _hour(self._end) > hour

    def shown(self) -> RawReceiptPage:
        """The page, once every delivery was looked at that can be on it."""
        self._cut()
        return RawReceiptPage([_shown(self._first[order]) for order in sorted(self._first)], self.is_cut)

    def _cut(self) -> None:
        """Drop what lies behind the page, if there is anything."""
        ordered = sorted(self._first)
        sizes = [len(self._first[order].value) for order in ordered]
        count = receipts_on_page(sizes, self.limit, self._page_bytes)
        if count < len(ordered):
            self._end = ordered[count]
            self._first = {order: self._first[order] for order in ordered[:count]}
            self._size = sum(sizes[:count])


def _unpacked(rows: Sequence[Row]) -> Iterator[SentReceipt]:
    return chain.from_iterable(unpack(block) for _, block in rows)


def _sent(row: Row) -> SentReceipt:
    happened_at, till, transaction_id, received_at, value = row
    happened_ms = (instant_of(happened_at) - UNIX_EPOCH) // _MS
    received_ms = (instant_of(received_at) - UNIX_EPOCH) // _MS
    return SentReceipt(happened_ms, till, transaction_id, received_ms, -1, -1, value.encode())


def _order(sent: SentReceipt) -> _Order:
    return -sent.happened_ms, sent.till, sent.transaction_id


def _order_of(place: ReceiptPlace) -> _Order:
    return -((place.happened_at - UNIX_EPOCH) // _MS), place.till, place.transaction_id


def _hour(order: _Order) -> int:
    """In UTC."""
    return -order[0] // _HOUR_MS % _HOURS


def _shown(sent: SentReceipt) -> RawReceipt:
    place = ReceiptPlace(UNIX_EPOCH + sent.happened_ms * _MS, sent.till, sent.transaction_id)
    return RawReceipt(place, UNIX_EPOCH + sent.received_ms * _MS, sent.value.decode())
