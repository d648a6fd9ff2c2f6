"""The receipts as they were sent: the tables receipt_blocks and, by former releases, raw_pos_transactions."""

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import chain

from master_dataset.receipt_blocks import SentReceipt, unpack
from serving_layer.store.readers import Position, RawReceipt, ReceiptPlace
from serving_layer.tables.async_session import AsyncSession, Row, instant_of, optional_instant
from views.core.cut import UNIX_EPOCH

_Identity = tuple[int, str, str]
"""As `SentReceipt.identity`, or as `_order` has it."""
_MS = timedelta(milliseconds=1)
_LAST_HOUR, _HOUR_MS, _HOURS = 23, 3_600_000, 24
_SELECT_ROW = (
    "SELECT happened_at, vendor_fiscal_module, transaction_id, received_at, value "
    "FROM raw_pos_transactions WHERE day = ? AND operation_id = ?"
)


class ReceiptTables:
    """ReceiptReader."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._blocks = session.prepare("SELECT block FROM receipt_blocks WHERE day = ? AND store = ? AND hour IN ?")
        self._first = session.prepare(f"{_SELECT_ROW} LIMIT ?")
        self._same_instant = session.prepare(
            f"{_SELECT_ROW} AND happened_at = ? AND (vendor_fiscal_module, transaction_id) > (?, ?) LIMIT ?"
        )
        self._before = session.prepare(f"{_SELECT_ROW} AND happened_at < ? LIMIT ?")
        self._archived = session.prepare(
            "SELECT partition, position, received_at FROM archive_positions WHERE topic = ?"
        )

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> Sequence[RawReceipt]:
        """Reads blocks hour by hour, the newest first, ever more hours at once, until there are enough receipts."""
        first = {each.identity: each for each in await self._in_rows(store, day, after, limit)}
        last = after.happened_at.hour if after else _LAST_HOUR
        behind, hours = _order_of(after) if after else None, 1
        while last >= 0 and sum(_hour(each) > last for each in first.values()) < limit:
            asked = list(range(last, max(last - hours, -1), -1))
            blocks = [block for (block,) in await self._session.rows(self._blocks, day, store, asked)]
            if blocks:
                await asyncio.to_thread(_add, first, blocks, behind)  # an hour may have thousands of blocks
            last, hours = last - hours, 2 * hours
        return [_shown(first[identity]) for identity in sorted(first, key=_order)[:limit]]

    async def _in_rows(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> Sequence[SentReceipt]:
        """Two reads behind a place, because the order is newest first but by till upwards."""
        if after is None:
            return [_sent(row) for row in await self._session.rows(self._first, day, store, limit)]
        at = after.happened_at
        same = await self._session.rows(self._same_instant, day, store, at, after.till, after.transaction_id, limit)
        rest = limit - len(same)
        older = await self._session.rows(self._before, day, store, at, rest) if rest else []
        return [_sent(row) for row in (*same, *older)]

    async def archived(self, topic: str) -> Sequence[Position]:
        """Per partition."""
        rows = await self._session.rows(self._archived, topic)
        return [Position(topic, number, at, optional_instant(read)) for number, at, read in sorted(rows)]


def _add(first: dict[_Identity, SentReceipt], blocks: Sequence[bytes], behind: _Identity | None) -> None:
    """Add the receipts of blocks, as they were delivered first, that lie behind a place."""
    for each in chain.from_iterable(map(unpack, blocks)):
        known = first.get(each.identity)
        is_first = known is None or each.precedence < known.precedence
        if is_first and (behind is None or _order(each.identity) > behind):
            first[each.identity] = each


def _sent(row: Row) -> SentReceipt:
    happened_at, till, transaction_id, received_at, value = row
    happened_ms = (instant_of(happened_at) - UNIX_EPOCH) // _MS
    received_ms = (instant_of(received_at) - UNIX_EPOCH) // _MS
    return SentReceipt(happened_ms, till, transaction_id, received_ms, -1, -1, value.encode())


def _order(identity: _Identity) -> _Identity:
    """The order of `ReceiptPlace`."""
    happened_ms, till, transaction_id = identity
    return -happened_ms, till, transaction_id


def _order_of(place: ReceiptPlace) -> _Identity:
    return _order(((place.happened_at - UNIX_EPOCH) // _MS, place.till, place.transaction_id))


def _hour(sent: SentReceipt) -> int:
    """In UTC."""
    return sent.happened_ms // _HOUR_MS % _HOURS


def _shown(sent: SentReceipt) -> RawReceipt:
    place = ReceiptPlace(UNIX_EPOCH + sent.happened_ms * _MS, sent.till, sent.transaction_id)
    return RawReceipt(place, UNIX_EPOCH + sent.received_ms * _MS, sent.value.decode())
