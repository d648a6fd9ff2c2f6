"""`ledgers` and `corrections`."""

from collections.abc import Sequence

import orjson

from serving_layer.admin.ledger import BlockPlace, Ledger, LedgerBlock
from serving_layer.tables.bridge import Bridge, day_of, instant_of

_BLOCKS = "SELECT store, day, block FROM corrections WHERE subject = ? AND view_name = ?"


class LedgerTables:
    """LedgerReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._ledger = bridge.prepare("SELECT lines, base, written_at, totals FROM ledgers WHERE subject = ?")
        self._all = bridge.prepare(f"{_BLOCKS} AND (store, day) >= (?, ?) LIMIT ?")
        self._of_store = bridge.prepare(f"{_BLOCKS} AND store = ? AND day >= ? LIMIT ?")

    async def ledger(self, subject: str) -> Ledger | None:
        """Its row comes last, when all of its blocks are written."""
        for lines, base, written_at, totals in await self._bridge.rows(self._ledger, subject):
            return Ledger(subject, lines or subject, base, instant_of(written_at), orjson.loads(totals or "{}"))
        return None

    async def ledger_blocks(
        self, lines: str, view: str, store: str | None, start: BlockPlace, limit: int
    ) -> Sequence[LedgerBlock]:
        """By store and day, as the table is sorted."""
        statement = self._all if store is None else self._of_store
        rows = await self._bridge.rows(statement, lines, view, *start, limit)
        return [LedgerBlock(of, day_of(day), block) for of, day, block in rows]
