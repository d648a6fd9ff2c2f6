"""The receipts as they were sent: the tables receipt_blocks and, by former releases, raw_pos_transactions."""

from collections.abc import Sequence
from datetime import date, timedelta

from master_dataset.receipt_blocks import SentReceipt, unpack
from serving_layer.store.readers import Position, RawReceipt, ReceiptPlace
from serving_layer.tables.async_session import AsyncSession, Row, instant_of, optional_instant
from views.core.cut import UNIX_EPOCH

_MS, _US = timedelta(milliseconds=1), timedelta(microseconds=1)
_LAST_HOUR, _HOUR_MS, _HOURS = 23, 3_600_000, 24
_SELECT_ROW = (
    "SELECT happened_at, vendor_fiscal_module, transaction_id, received_at, value "
    "FROM raw_pos_transactions WHERE day = ? AND operation_id = ?"
)
_OF_DAY = "FROM receipt_blocks WHERE day = ? AND store = ?"


class ReceiptTables:
    """ReceiptReader."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._newest_hour = session.prepare(f"SELECT hour {_OF_DAY} AND hour <= ? LIMIT 1")
        self._blocks = session.prepare(f"SELECT block {_OF_DAY} AND hour = ?")
        self._first = session.prepare(f"{_SELECT_ROW} LIMIT ?")
        self._same_instant = session.prepare(
            f"{_SELECT_ROW} AND happened_at = ? AND (vendor_fiscal_module, transaction_id) > (?, ?) LIMIT ?"
        )
        self._before = session.prepare(f"{_SELECT_ROW} AND happened_at < ? LIMIT ?")
        self._archived = session.prepare(
            "SELECT partition, position, received_at FROM archive_positions WHERE topic = ?"
        )

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> Sequence[RawReceipt]:
        """Reads blocks hour by hour, the newest first, until there are enough."""
        first = {each.identity: each for each in await self._in_rows(store, day, after, limit)}
        hour = after.happened_at.hour if after else _LAST_HOUR
        while hour >= 0 and (newest := await self._session.rows(self._newest_hour, day, store, hour)):
            [(hour,)] = newest
            for (block,) in await self._session.rows(self._blocks, day, store, hour):
                for each in unpack(block):
                    known = first.get(each.identity)
                    is_first = known is None or each.precedence < known.precedence
                    if is_first and (after is None or _order(each.identity) > _order_of(after)):
                        first[each.identity] = each
            if sum(_hour(each) >= hour for each in first.values()) >= limit:
                break
            hour -= 1
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


def _sent(row: Row) -> SentReceipt:
    happened_at, till, transaction_id, received_at, value = row
    happened_ms = (instant_of(happened_at) - UNIX_EPOCH) // _MS
    return SentReceipt(happened_ms, till, transaction_id, (instant_of(received_at) - UNIX_EPOCH) // _US, value.encode())


def _order(identity: tuple[int, str, str]) -> tuple[int, str, str]:
    """The order of `ReceiptPlace`."""
    happened_ms, till, transaction_id = identity
    return -happened_ms, till, transaction_id


def _order_of(place: ReceiptPlace) -> tuple[int, str, str]:
    return _order(((place.happened_at - UNIX_EPOCH) // _MS, place.till, place.transaction_id))


def _hour(sent: SentReceipt) -> int:
    """In UTC."""
    return sent.happened_ms // _HOUR_MS % _HOURS


def _shown(sent: SentReceipt) -> RawReceipt:
    place = ReceiptPlace(UNIX_EPOCH + sent.happened_ms * _MS, sent.till, sent.transaction_id)
    return RawReceipt(place, UNIX_EPOCH + sent.received_us // 1000 * _MS, sent.value.decode())
