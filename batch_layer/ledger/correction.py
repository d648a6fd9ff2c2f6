"""The correction ledger in Cassandra (R13): its lines, their totals, and the tables `corrections` and `ledgers`.

A line is a state of a cell whose published value was changed. Lines are kept in blocks, one per subject, view,
store and day; a subject is a publication's number, or the id of a preview. A ledger is complete once `ledgers` says so.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType

from views.control.recompute import Cause, CauseTotals, LedgerTotals
from views.core.aggregates import Value

if TYPE_CHECKING:
    from cassandra.cluster import Session

EVENTS_NAMED = 20
"""A line names at most this many responsible events; `events_total` counts all."""


class Correction(NamedTuple):
    """A line of a ledger.

    `window`: seconds since 1970. `shown`, `corrected`: None if there was no such cell, or no value in it. `events`:
    identities of the first responsible events.
    """

    window: int
    dimensions: Mapping[str, str | None]
    state: str
    shown: Value
    corrected: Value
    cause: Cause
    events: Sequence[str]
    events_total: int

    @property
    def difference(self) -> int:
        """What was added, where a missing cell counts as 0. Sketches have no difference: 0."""
        shown, corrected = (each if isinstance(each, int) else 0 for each in (self.shown, self.corrected))
        return corrected - shown

    def kept(self) -> dict[str, Any]:
        """The form in which it is stored, and which REST returns."""
        return self._asdict() | {"difference": self.difference}


class Whole(NamedTuple):
    """One entry for a whole block: nothing of that view, store and day was shown before, so all of it is new.

    It is not copied line by line, because the block of the run already has the cells.
    """

    run: str
    cause: Cause
    events_total: int

    def kept(self) -> dict[str, Any]:
        """The stored form. Where events waited, every event of that store and day is responsible."""
        return {"whole": self.cause, "run": self.run, "events_total": self.events_total}


def written(lines: Sequence[Correction] | Whole) -> str:
    """The text of a block: of one subject, view, store and day."""
    kept: Any = lines.kept() if isinstance(lines, Whole) else [line.kept() for line in lines]
    return orjson.dumps(kept).decode()


Summed = dict[str, tuple[int, dict[str, tuple[int, int]]]]
"""By cause: the number of cells, and by state the number of lines and the sum of their differences."""


def summed(lines: Iterable[Correction]) -> Summed:
    """The totals of the lines of one view and store."""
    cells: dict[str, set[object]] = {}
    states: dict[str, dict[str, tuple[int, int]]] = {}
    for line in lines:
        cells.setdefault(line.cause, set()).add((line.window, *line.dimensions.items()))
        own = states.setdefault(line.cause, {})
        number, difference = own.get(line.state, (0, 0))
        own[line.state] = number + 1, difference + line.difference
    return {cause: (len(found), states[cause]) for cause, found in cells.items()}


class TotalsBuilder:
    """Adds up the lines of a ledger by cause."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._causes: dict[str, CauseTotals] = {}

    def add(self, view: str, some: Summed) -> None:
        """Add lines of a view."""
        for cause, (cells, states) in some.items():
            own = self._causes.setdefault(cause, CauseTotals())
            own.cells += cells
            for state, (lines, difference) in states.items():
                own.rows += lines
                name = f"{view}.{state}"
                own.difference[name] = own.difference.get(name, 0) + difference

    def totals(self) -> LedgerTotals:
        """The sum so far."""
        causes = self._causes.values()
        return LedgerTotals(sum(own.cells for own in causes), sum(own.rows for own in causes), self._causes)


_ROWS_AT_ONCE = 100
_IN_FLIGHT = 32
INSERT_BLOCK = (
    "INSERT INTO corrections (subject, view_name, store, day, block) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?"
)
_ATTEMPTS = "(attempts)"
"""In place of a view: the rows of a subject that say when its lines were deleted last, which nobody lists.

Such a row has the view in place of the store, and the write timestamp of the deletion as its block.
"""
_NO_DAY = date(1970, 1, 1)
_STAMPS_OF_AN_ATTEMPT = 2
"""Lines are written one microsecond after the deletion or, if they are compared again, two."""


class Ledgers:
    """The tables `corrections` and `ledgers`."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def totals(self, subject: str) -> LedgerTotals | None:
        """The totals; None until the ledger is complete."""
        query = self._session.prepare("SELECT totals FROM ledgers WHERE subject = ?")
        row = self._session.execute(query, (subject,)).one()
        return msgspec.json.decode(row.totals, type=LedgerTotals) if row and row.totals else None

    def close(self, subject: str, lines: str, base: int, totals: LedgerTotals) -> None:
        """Complete the ledger of `subject`: every line is written, under the subject `lines`."""
        insert = self._session.prepare(
            "INSERT INTO ledgers (subject, lines, base, written_at, totals) VALUES (?, ?, ?, ?, ?)"
        )
        values = (subject, lines, base, datetime.now(UTC), msgspec.json.encode(totals).decode())
        self._session.execute(insert, values)

    def keep(self, subject: str, view: str, wholes: Iterable[tuple[str, date, Whole]], stamp: int) -> None:
        """Write entries for wholly new (store, day) pairs. `stamp`: a write timestamp later than that of `begin`."""
        insert = self._session.prepare(INSERT_BLOCK)
        rows = [(subject, view, store, day, written(whole), stamp) for store, day, whole in wholes]
        requests = []
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            request = BatchStatement(BatchType.UNLOGGED)  # all rows are of one partition
            for values in rows[start : start + _ROWS_AT_ONCE]:
                request.add(insert, values)
            requests.append((request, None))
        execute_concurrent(self._session, requests, concurrency=_IN_FLIGHT, raise_on_first_error=True)

    def begin(self, subject: str, view: str) -> int:
        """Delete the lines of an interrupted attempt, which may have seen other values.

        Returns the write timestamp of the deletion in microseconds. The timestamps of lines are derived from it, not
        from the clocks of the machines that write them: a line from a slow clock would be hidden by the deletion. It is
        later than all of any attempt before, whatever the clock says: each attempt records it before it deletes.
        """
        former = self._session.prepare(
            "SELECT block FROM corrections WHERE subject = ? AND view_name = ? AND store = ? AND day = ?"
        )
        key = (subject, _ATTEMPTS, view, _NO_DAY)
        row = self._session.execute(former, key).one()
        stamp = max(time.time_ns() // 1000, int(row.block) + _STAMPS_OF_AN_ATTEMPT + 1 if row else 0)
        self._session.execute(self._session.prepare(INSERT_BLOCK), (*key, str(stamp), stamp))
        delete = self._session.prepare("DELETE FROM corrections USING TIMESTAMP ? WHERE subject = ? AND view_name = ?")
        self._session.execute(delete, (stamp, subject, view))
        return stamp
