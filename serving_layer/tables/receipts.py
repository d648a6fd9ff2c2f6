"""`raw_pos_transactions` and `archive_positions`."""

from collections.abc import Sequence
from datetime import date

from serving_layer.store.readers import Position, RawReceipt, ReceiptPlace
from serving_layer.tables.bridge import Bridge, Row, instant_of

_SELECT = (
    "SELECT happened_at, vendor_fiscal_module, transaction_id, received_at, value "
    "FROM raw_pos_transactions WHERE day = ? AND operation_id = ?"
)


class ReceiptTables:
    """ReceiptReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._first = bridge.prepare(f"{_SELECT} LIMIT ?")
        self._same_instant = bridge.prepare(
            f"{_SELECT} AND happened_at = ? AND (vendor_fiscal_module, transaction_id) > (?, ?) LIMIT ?"
        )
        self._before = bridge.prepare(f"{_SELECT} AND happened_at < ? LIMIT ?")
        self._archived = bridge.prepare(
            "SELECT partition, position, received_at FROM archive_positions WHERE topic = ?"
        )

    async def receipts(self, store: str, day: date, after: ReceiptPlace | None, limit: int) -> Sequence[RawReceipt]:
        """Two reads behind a place, because the order is newest first but by till upwards."""
        if after is None:
            return [_receipt(row) for row in await self._bridge.rows(self._first, day, store, limit)]
        at = after.happened_at
        same = await self._bridge.rows(self._same_instant, day, store, at, after.till, after.transaction_id, limit)
        rest = limit - len(same)
        older = await self._bridge.rows(self._before, day, store, at, rest) if rest else []
        return [_receipt(row) for row in (*same, *older)]

    async def archived(self, topic: str) -> Sequence[Position]:
        """Per partition."""
        rows = await self._bridge.rows(self._archived, topic)
        return [Position(topic, number, at, read and instant_of(read)) for number, at, read in sorted(rows)]


def _receipt(row: Row) -> RawReceipt:
    happened_at, till, transaction_id, received_at, value = row
    return RawReceipt(
        ReceiptPlace(instant_of(happened_at), till, transaction_id), received_at and instant_of(received_at), value
    )
