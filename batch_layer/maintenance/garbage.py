"""Rows that may be garbage as Cassandra keeps them: their keys, read page by page without the blocks, and deletion.

A run's rows of a partition go by one range; never a whole partition of cells, where another run may be writing.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra.concurrent import execute_concurrent
from cassandra.query import SimpleStatement

from batch_layer.maintenance.reachable import Living, Place, Reach

if TYPE_CHECKING:
    from cassandra.cluster import Session

_KEYS_AT_ONCE = 5_000
_AT_ONCE = 500
_IN_FLIGHT = 32
_OF_RUN = "DELETE FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ?"
_OF_DAY = f"{_OF_RUN} AND day = ?"


class Block(NamedTuple):
    """The key of a block and when it was written."""

    view: str
    store: str
    month: date
    run: str
    day: date
    written_at: datetime

    @property
    def place(self) -> Place:
        """What a manifest may name."""
        return Place(self.view, self.day, self.run)


class RunDay(NamedTuple):
    """A (view, day) that a run wrote, and when."""

    run: str
    view: str
    day: date
    written_at: datetime

    @property
    def place(self) -> Place:
        """What a manifest may name."""
        return Place(self.view, self.day, self.run)


class Garbage:
    """The tables of batch cells, manifests and previews' ledgers."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def manifests(self) -> set[str]:
        """The names of all of them."""
        return {row.manifest for row in self._pages("SELECT DISTINCT manifest FROM manifests")}

    def manifest_written_at(self, name: str) -> datetime:
        """When the last entry of it was written."""
        query = self._session.prepare("SELECT max(writetime(run)) AS micros FROM manifests WHERE manifest = ?")
        return _instant(self._session.execute(query, (name,)).one().micros or 0)

    def blocks(self) -> Iterator[Block]:
        """The keys of all blocks; those of a partition and run follow each other."""
        keys = "SELECT view_name, store, month, run, day, writetime(block) AS micros FROM batch_cells"
        for row in self._pages(keys):
            written_at = _instant(row.micros or 0)
            yield Block(row.view_name, row.store, row.month.date(), row.run, row.day.date(), written_at)

    def run_days(self) -> Iterator[RunDay]:
        """Every (view, day) that a run wrote; those of a run and view follow each other."""
        for row in self._pages("SELECT run, view_name, day, writetime(stores) AS micros FROM run_days"):
            yield RunDay(row.run, row.view_name, row.day.date(), _instant(row.micros or 0))

    def previews(self, living: Living) -> list[str]:
        """The subjects of ledgers that nobody needs any more: of previews, and of runs that were never published.

        That of a publication stays. Its lines lie under its run's name, if they were written before the switch.
        """
        ledgers = list(self._pages("SELECT subject, lines FROM ledgers"))
        published = {name for row in ledgers if row.subject.isdecimal() for name in (row.subject, row.lines)}
        found = {row.subject for row in ledgers}
        found |= {row.subject for row in self._pages("SELECT DISTINCT subject, view_name FROM corrections")}
        return sorted(each for each in found - published if living.has_ended_without(each))

    def delete_previews(self, subjects: Collection[str]) -> None:
        """First what says that a ledger is whole, then its rows."""
        statement = self._session.prepare("DELETE FROM ledgers WHERE subject = ?")
        self._delete([(statement, (subject,)) for subject in subjects])
        partitions = self._pages("SELECT DISTINCT subject, view_name FROM corrections") if subjects else ()
        statement = self._session.prepare("DELETE FROM corrections WHERE subject = ? AND view_name = ?")
        self._delete([(statement, (row.subject, row.view_name)) for row in partitions if row.subject in subjects])

    def delete_manifests(self, names: Collection[str]) -> None:
        """Delete these, whole."""
        statement = self._session.prepare("DELETE FROM manifests WHERE manifest = ?")
        self._delete([(statement, (name,)) for name in names])

    def delete_run_days(self, reach: Reach, runs: Collection[str]) -> None:
        """Delete what does not stay of these runs: everything of a run and view, or day by day."""
        whole = self._session.prepare("DELETE FROM run_days WHERE run = ? AND view_name = ?")
        one = self._session.prepare("DELETE FROM run_days WHERE run = ? AND view_name = ? AND day = ?")
        statements: list[tuple[Any, Sequence[object]]] = []
        for key, own in groupby(self.run_days(), key=lambda row: row[:2]):
            rows = list(own)
            gone = [row for row in rows if row.run in runs and not reach.keeps(row.place)]
            if len(gone) == len(rows):
                statements.append((whole, key))
            else:
                statements += [(one, (*key, row.day)) for row in gone]
        self._delete(statements)

    def delete_blocks(self, reach: Reach, runs: Collection[str]) -> Iterator[int]:
        """Delete what does not stay of these runs. After each request: how many blocks are gone."""
        statements = self._of_blocks(reach, runs)
        done = 0
        while part := list(islice(statements, _AT_ONCE)):
            self._delete([(statement, values) for statement, values, _ in part])
            done += sum(number for *_, number in part)
            yield done

    def _of_blocks(self, reach: Reach, runs: Collection[str]) -> Iterator[tuple[Any, Sequence[object], int]]:
        of_run, of_day = self._session.prepare(_OF_RUN), self._session.prepare(_OF_DAY)
        for key, own in groupby(self.blocks(), key=lambda block: block[:4]):
            blocks = list(own)
            gone = [block for block in blocks if block.run in runs and not reach.keeps(block.place)]
            if gone and len(gone) == len(blocks):
                yield of_run, key, len(gone)
            else:
                yield from ((of_day, (*key, block.day), 1) for block in gone)

    def _pages(self, query: str) -> Iterator[Any]:
        return iter(self._session.execute(SimpleStatement(query, fetch_size=_KEYS_AT_ONCE)))

    def _delete(self, statements: Sequence[tuple[Any, Sequence[object]]]) -> None:
        execute_concurrent(self._session, statements, concurrency=_IN_FLIGHT, raise_on_first_error=True)


def _instant(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)
