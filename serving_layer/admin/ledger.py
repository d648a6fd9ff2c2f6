"""Correction ledgers: what a publication or a preview changed in the numbers that readers see (R13)."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol

from views.control.recompute import Cause


class Ledger(NamedTuple):
    """One that is whole. `subject`: a publication's number as text, or the id of a recompute that was previewed.

    `lines`: the name that its blocks lie under: a run's, if it was written before that was published. `base`: the
    publication that was corrected. `totals`: `{"cells", "rows", "causes": {cause: {"cells", ...}}}`.
    """

    subject: str
    lines: str
    base: int | None
    written_at: datetime
    totals: Mapping[str, Any]

    def cells(self, cause: Cause) -> int:
        """How many cells were corrected for that reason."""
        number: int = self.totals.get("causes", {}).get(cause, {}).get("cells", 0)
        return number


class LedgerBlock(NamedTuple):
    """The corrections of a view, store and UTC day: JSON, a list of rows or `{"whole": cause, "run": run, ...}`.

    `day`: that which the block is kept under. Of a list, it may be one of the first centuries, because a day with very
    many rows has several blocks.
    """

    store: str
    day: date
    block: str


class BlockKey(NamedTuple):
    """Where a block lies within its (lines, view)."""

    store: str
    day: date


class LedgerReader(Protocol):
    """Reads ledgers. Every method raises CassandraUnavailableError when the store does not answer in time."""

    async def ledger(self, subject: str) -> Ledger | None:
        """None as long as it is not whole."""

    async def ledger_blocks(
        self, lines: str, view: str, store: str | None, start: BlockKey, limit: int
    ) -> Sequence[LedgerBlock]:
        """At most `limit` blocks from that place on, by store and day; of one store if it is named."""
