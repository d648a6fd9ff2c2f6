"""Dead letters as they are kept: of the archive, conflicts of rebuilds, refused alerts. Read without Spark.

Lists read neither bytes nor headers, and of many files only those that may hold what is asked for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.dead_letters import rows
from master_dataset.dead_letters.files import Files, files_of
from master_dataset.dead_letters.letter import Cursor, Heading, Letter
from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.question import LetterQuestion
from master_dataset.dead_letters.replay_table import ReplayTable
from master_dataset.delta.lost_files import naming_lost_files
from master_dataset.errors import RangeTooLong, UnknownName
from master_dataset.webhooks.undelivered import UNDELIVERED

TABLES = ("dead_letters", "conflicts", UNDELIVERED)
MOST_REMEMBERED = 32
"""So many counts are kept until a table has moved on."""
MOST_COUNTED = 5_000_000
"""So many are looked through to count them: some seconds, and some hundred MB for as long."""


class Counts(NamedTuple):
    """Reason code to the number of letters, most first; and to how many of them were replayed."""

    letters: Mapping[str, int]
    replayed: Mapping[str, int]


@dataclass(frozen=True)
class LetterPage:
    """`following`: where the last one stands, if there are more behind it."""

    letters: Sequence[Heading]
    following: Cursor | None


class LetterTable:
    """Of one master dataset."""

    def __init__(self, root: str, replays: ReplayTable) -> None:
        """`root` of the master dataset. `replays` says which ones were sent again."""
        self._root, self._replays = root, replays
        self._counted: dict[object, Counts] = {}

    def counts(self, question: LetterQuestion) -> Counts:
        """Of everything that fits. RangeTooLong if more than MOST_COUNTED would have to be looked through."""
        where = rows.asked(question)
        tables = list(self._tables(where))
        if sum(files.rows for files in tables) > MOST_COUNTED:
            message = f"More than {MOST_COUNTED:,} dead letters would have to be looked through."
            raise RangeTooLong(message, do="Name a source, or a shorter time with `from` and `to`.")
        versions = [(files.table.table_uri, files.table.version()) for files in tables]
        key = (question, *versions, self._replays.version())
        if key not in self._counted:
            while len(self._counted) >= MOST_REMEMBERED:
                del self._counted[next(iter(self._counted))]
            self._counted[key] = self._counts(question, tables, where)
        return self._counted[key]

    def _counts(self, question: LetterQuestion, tables: Sequence[Files], where: rows.Expression | None) -> Counts:
        found = rows.HEADING.empty_table().select([*rows.PLACE, "reason"])
        for files in tables:
            with naming_lost_files(files.table):
                found = pa.concat_tables([found, files.whole.to_table(columns=found.column_names, filter=where)])
        found = self._chosen(rows.once(found), question)
        sent = self._joined(found, question, is_sent=True)
        return Counts(rows.by_reason(found), rows.by_reason(sent))

    def page(
        self, question: LetterQuestion, limit: int, after: Cursor | None = None, *, oldest_first: bool = False
    ) -> LetterPage:
        """At most `limit` in the order of receipt, newest first unless told; those behind `after`."""
        where = rows.not_before(rows.asked(question), after, oldest_first=oldest_first)
        found = rows.HEADING.empty_table()
        for files in self._tables(where):
            for some, rest in files.in_time(oldest_first=oldest_first):
                with naming_lost_files(files.table):
                    more = files.some(some).to_table(columns=found.column_names, filter=where)
                found = pa.concat_tables([found, self._chosen(more, question)])
                found = rows.first(found, limit + 1, after, oldest_first=oldest_first)
                if rest is not None and found.num_rows > limit:
                    last = found["received_at"][limit].as_py()
                    if rest > last if oldest_first else rest < last:
                        break
        letters = [rows.heading(row) for row in found.slice(0, limit).to_pylist()]
        return LetterPage(letters, letters[-1].cursor if found.num_rows > limit else None)

    def several(self, places: Collection[Place], near: Sequence[Heading] = ()) -> list[Letter]:
        """With their bytes, in the order of receipt. UnknownName if one is no dead letter.

        `near`: their headings, where they are known: then few files have to be opened.
        """
        where = rows.at(places)
        if near:
            times = [each.received_at for each in near]
            where &= (pc.field("received_at") >= min(times)) & (pc.field("received_at") <= max(times))
        found: dict[Place, Letter] = {}
        for files in self._tables(where):
            with naming_lost_files(files.table):
                found = {letter.place: letter for letter in rows.whole(files.whole, where)} | found
        for place in places:
            if place not in found:
                raise UnknownName("dead letter", place.id, [], do="`galatea dead-letters list` shows those there are.")
        return sorted(found.values(), key=lambda letter: (letter.received_at, letter.place))

    def headings(self, places: Collection[Place]) -> dict[Place, Heading]:
        """Those of these places that are dead letters, without their bytes."""
        found: dict[Place, Heading] = {}
        where = rows.at(places) if places else None
        for files in self._tables(where) if places else ():
            with naming_lost_files(files.table):
                some = files.whole.to_table(columns=rows.HEADING.names, filter=where).to_pylist()
            found = {each.place: each for each in map(rows.heading, some)} | found
        return found

    def _tables(self, where: rows.Expression | None) -> Iterator[Files]:
        for name in TABLES:
            files = files_of(f"{self._root}/{name}", where)
            if files is not None and files.every:
                yield files

    def _chosen(self, found: pa.Table, question: LetterQuestion) -> pa.Table:
        return found if question.replayed is None else self._joined(found, question, is_sent=question.replayed)

    def _joined(self, found: pa.Table, question: LetterQuestion, *, is_sent: bool) -> pa.Table:
        sent = self._replays.sent(question.source)
        return found.join(sent, rows.PLACE, join_type="left semi" if is_sent else "left anti")
