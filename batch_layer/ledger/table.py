"""`corrections` and `ledgers` in Cassandra."""

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import orjson
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType

from batch_layer.ledger.correction import Whole, written

if TYPE_CHECKING:
    from cassandra.cluster import Session

_ROWS_AT_ONCE = 100
_IN_FLIGHT = 32
INSERT_BLOCK = (
    "INSERT INTO corrections (subject, view_name, store, day, block) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?"
)


class Ledgers:
    """Which ledgers there are, and what they add up to. A subject is a publication's number, or a preview's id."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def totals(self, subject: str) -> Mapping[str, Any] | None:
        """None as long as it is not whole."""
        query = self._session.prepare("SELECT totals FROM ledgers WHERE subject = ?")
        row = self._session.execute(query, (subject,)).one()
        found: Mapping[str, Any] | None = orjson.loads(row.totals) if row and row.totals else None
        return found

    def close(self, subject: str, lines: str, base: int, totals: Mapping[str, Any]) -> None:
        """Every line of subject `lines` is written: the ledger of `subject` is whole."""
        insert = self._session.prepare(
            "INSERT INTO ledgers (subject, lines, base, written_at, totals) VALUES (?, ?, ?, ?, ?)"
        )
        told = orjson.dumps(totals).decode()
        self._session.execute(insert, (subject, lines, base, datetime.now(UTC), told))

    def keep(self, subject: str, view: str, wholes: Iterable[tuple[str, date, Whole]], stamp: int) -> None:
        """Of many stores and days each what is wholly new. `stamp`: later than that of `begin`."""
        insert = self._session.prepare(INSERT_BLOCK)
        rows = [(subject, view, store, day, written(whole), stamp) for store, day, whole in wholes]
        requests = []
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            request = BatchStatement(BatchType.UNLOGGED)  # of one partition
            for values in rows[start : start + _ROWS_AT_ONCE]:
                request.add(insert, values)
            requests.append((request, None))
        execute_concurrent(self._session, requests, concurrency=_IN_FLIGHT, raise_on_first_error=True)

    def begin(self, subject: str, view: str) -> int:
        """Take away the lines of an earlier attempt that was interrupted, which may have seen other values.

        Gives back the write timestamp of that, in microseconds. Those of lines follow from it and not from the clocks
        of the machines that write them: what one with a slow clock writes would lie under the deletion.
        """
        stamp = time.time_ns() // 1000
        delete = self._session.prepare("DELETE FROM corrections USING TIMESTAMP ? WHERE subject = ? AND view_name = ?")
        self._session.execute(delete, (stamp, subject, view))
        return stamp
