"""Rows of the tables of dead letters as pyarrow has them: which are asked for, in which order, each place once.

An archive that lost its checkpoint may have kept a record twice.

The data files of a Delta table in an order of time, opened some at a time: a few newest rows cost a few files.

Alerts that an endpoint has refused for good: dead letters of the way out.

Dead letters as they are kept: of the archive, conflicts of rebuilds, refused alerts. Read without Spark.

Lists read neither bytes nor headers, and of many files only those that may hold what is asked for.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable, Schema

from master_dataset.dead_letters.dead_letter import (
    DeadLetterCursor,
    DeadLetterQuery,
    DeadLetterSummary,
    StoredDeadLetter,
)
from master_dataset.dead_letters.replay_history import ReplayTable
from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.delta.fsync import fsync_first_commit
from master_dataset.delta.history import LOG_PROPERTIES
from master_dataset.delta.incomplete_commits import roll_back_incomplete
from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.rows import BYTES, INSTANT, PLACE, REFUSAL

POSITION = ["topic", "partition", "offset"]
HEADING = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("received_at", INSTANT),
        ("reason", pa.string()),
        ("field", pa.string()),
        ("sentence", pa.string()),
    ]
)
RAW = ["key", "value", "headers"]
ROWS_AT_ONCE = 64
"""Of letters with their bytes: a value has up to 4 MiB."""
Expression = Any
"""pyarrow ships no types."""


def asked(question: DeadLetterQuery) -> Expression | None:
    """What the question says of a row by itself; None for every row."""
    same = {"reason": question.reason, "topic": question.source}
    said = [pc.field(name) == value for name, value in same.items() if value is not None]
    said += [] if question.since is None else [pc.field("received_at") >= question.since]
    said += [] if question.until is None else [pc.field("received_at") < question.until]
    return reduce(and_, said) if said else None


def not_before(where: Expression | None, after: DeadLetterCursor | None, *, oldest_first: bool) -> Expression | None:
    """The same, and in the order of time not before that one."""
    if after is None:
        return where
    at = pc.field("received_at")
    bound = at >= after.received_at if oldest_first else at <= after.received_at
    return bound if where is None else where & bound


def at(places: Collection[RecordPosition]) -> Expression:
    """Rows of these places; there is at least one."""
    homes: dict[tuple[str, int], list[int]] = {}
    for place in places:
        homes.setdefault(place[:2], []).append(place.offset)
    return reduce(
        or_,
        (
            (pc.field("topic") == topic) & (pc.field("partition") == partition) & pc.field("offset").isin(offsets)
            for (topic, partition), offsets in homes.items()
        ),
    )


def once(found: pa.Table) -> pa.Table:
    """Each place once."""
    if found.num_rows <= 1:
        return found
    found = found.sort_by([(name, "ascending") for name in ("offset", "partition", "topic")])
    here, before = found.slice(1), found.slice(0, found.num_rows - 1)
    is_other = reduce(pc.or_, (pc.not_equal(here[name], before[name]) for name in POSITION))
    return pa.concat_tables([found.slice(0, 1), here.filter(is_other)])


def first(found: pa.Table, most: int, after: DeadLetterCursor | None, *, oldest_first: bool) -> pa.Table:
    """At most so many, each place once, in the order of receipt and behind `after`."""
    direction = "ascending" if oldest_first else "descending"
    keys = found.select(["received_at", *POSITION])
    taken: list[int] = []
    last = None if after is None else (after.received_at, *after.place)
    for index in pc.sort_indices(keys, [(name, direction) for name in keys.column_names]):
        row = tuple(keys[name][index.as_py()].as_py() for name in keys.column_names)
        if last is None or (row > last if oldest_first else row < last):
            taken.append(index.as_py())
            last = row
            if len(taken) == most:
                break
    return found.take(pa.array(taken, pa.int64()))


def by_reason(found: pa.Table) -> dict[str, int]:
    """Reason to how many rows, most first."""
    counted = Counter({each["values"]: each["counts"] for each in pc.value_counts(found["reason"]).to_pylist()})
    return dict(counted.most_common())


def heading(row: Mapping[str, Any]) -> DeadLetterSummary:
    """Of a row without its bytes."""
    place = RecordPosition(row["topic"], row["partition"], row["offset"])
    return DeadLetterSummary(place, row["received_at"], row["reason"], row["field"], row["sentence"])


def whole(dataset: Expression, where: Expression) -> Iterator[StoredDeadLetter]:
    """Letters with their bytes, a few at a time. Of a value that no record may have only the beginning is kept."""
    scanner = dataset.scanner(
        columns=[*HEADING.names, *RAW], filter=where, batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1
    )
    for batch in scanner.to_batches():
        for row in batch.to_pylist():
            said, value = heading(row), row["value"]
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            kept = value and value[: MAX_BYTES + 1]
            shared = (said.place, said.received_at, said.reason, said.field, said.sentence)
            yield StoredDeadLetter(*shared, row["key"], kept, headers, len(value or b""))


FIRST_FILES, MORE = 16, 4
"""So many files are opened at once, and how many times as many the next time."""
BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class DataFile:
    """`oldest_at`, `newest_at`: of the column `received_at`, as the table's log says, or anything if it does not."""

    fragment: Any
    rows: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True)
class DataFiles:
    """Those of one version of a table that may hold what is asked for."""

    table: DeltaTable
    dataset: Any
    every: Sequence[DataFile]

    @property
    def rows(self) -> int:
        """How many rows they hold at most."""
        return sum(each.rows for each in self.every)

    @property
    def whole(self) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """All of them, as one dataset."""
        return self.some(self.every)

    def some(self, files: Sequence[DataFile]) -> Any:  # noqa: ANN401 - likewise
        """These alone, as one dataset."""
        whole = self.dataset
        return ds.FileSystemDataset([each.fragment for each in files], whole.schema, whole.format, whole.filesystem)

    def in_time(self, *, oldest_first: bool) -> Iterator[tuple[Sequence[DataFile], datetime | None]]:
        """More and more files at once. With each: the best time that any file behind them may hold, None: none is."""
        left = sorted(self.every, key=lambda file: file.oldest_at if oldest_first else file.newest_at)
        left = left if oldest_first else left[::-1]
        size = FIRST_FILES
        while left:
            taken, left = left[:size], left[size:]
            size *= MORE
            rest = (left[0].oldest_at if oldest_first else left[0].newest_at) if left else None
            yield taken, rest


def data_files(path: str, where: Any) -> DataFiles | None:  # noqa: ANN401 - likewise
    """Of the newest version; None if there is no such table. `where`: an expression, or None for everything."""
    if not DeltaTable.is_deltatable(path):
        return None
    table = DeltaTable(path)
    log = {unquote(row["path"]): row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}
    dataset = arrow_dataset(table)
    return DataFiles(table, dataset, [_file(fragment, log) for fragment in dataset.get_fragments(where)])


def _file(fragment: Any, log: dict[str, dict[str, Any]]) -> DataFile:  # noqa: ANN401 - likewise
    row = log.get(unquote(fragment.path), {})
    oldest, newest = row.get("min.received_at"), row.get("max.received_at")
    # The log may cut a time to milliseconds, so that the newest row lies a little behind it.
    return DataFile(
        fragment,
        row.get("num_records") or 0,
        oldest or BEGINNING,
        END if newest is None else newest.replace(microsecond=newest.microsecond // 1000 * 1000 + 999),
    )


UNDELIVERED = "undelivered"
TOPIC = "webhook."
"""With the endpoint's id behind it, the topic of such a letter; partition and offset are those of the alert."""


def schema() -> pa.Schema:
    """The columns of a dead letter, as the archive has them."""
    return pa.schema([*PLACE, *REFUSAL, *BYTES])


def create(path: str) -> None:
    """Make the table, unless it is there. Each endpoint has a partition. DeltaError, OSError."""
    roll_back_incomplete(path)
    if not DeltaTable.is_deltatable(path):
        DeltaTable.create(
            path,
            Schema.from_arrow(schema()),
            partition_by=["topic"],
            configuration=LOG_PROPERTIES | {"delta.appendOnly": "true"},
        )
        fsync_first_commit(path)


TABLES = ("dead_letters", "conflicts", UNDELIVERED)
MOST_REMEMBERED = 32
"""So many counts are kept until a table has moved on."""
MOST_COUNTED = 5_000_000
"""So many are looked through to count them: some seconds, and some hundred MB for as long."""


class DeadLetterCounts(NamedTuple):
    """Reason code to the number of letters, most first; and to how many of them were replayed."""

    letters: Mapping[str, int]
    replayed: Mapping[str, int]


@dataclass(frozen=True)
class SummaryPage:
    """`following`: where the last one stands, if there are more behind it."""

    letters: Sequence[DeadLetterSummary]
    following: DeadLetterCursor | None


class DeadLetterTable:
    """Of one master dataset."""

    def __init__(self, root: str, replays: ReplayTable) -> None:
        """`root` of the master dataset. `replays` says which ones were sent again."""
        self._root, self._replays = root, replays
        self._counted: dict[object, DeadLetterCounts] = {}

    def counts(self, question: DeadLetterQuery) -> DeadLetterCounts:
        """Of everything that fits. RangeTooLongError if more than MOST_COUNTED would have to be looked through."""
        where = asked(question)
        tables = list(self._tables(where))
        if sum(files.rows for files in tables) > MOST_COUNTED:
            message = f"More than {MOST_COUNTED:,} dead letters would have to be looked through."
            raise RangeTooLongError(message, do="Name a source, or a shorter time with `from` and `to`.")
        versions = [(files.table.table_uri, files.table.version()) for files in tables]
        key = (question, *versions, self._replays.version())
        if key not in self._counted:
            while len(self._counted) >= MOST_REMEMBERED:
                del self._counted[next(iter(self._counted))]
            self._counted[key] = self._counts(question, tables, where)
        return self._counted[key]

    def _counts(
        self, question: DeadLetterQuery, tables: Sequence[DataFiles], where: Expression | None
    ) -> DeadLetterCounts:
        found = HEADING.empty_table().select([*POSITION, "reason"])
        for files in tables:
            with report_lost_files(files.table):
                found = pa.concat_tables([found, files.whole.to_table(columns=found.column_names, filter=where)])
        found = self._chosen(once(found), question)
        sent = self._joined(found, question, is_sent=True)
        return DeadLetterCounts(by_reason(found), by_reason(sent))

    def page(
        self,
        question: DeadLetterQuery,
        limit: int,
        after: DeadLetterCursor | None = None,
        *,
        oldest_first: bool = False,
    ) -> SummaryPage:
        """At most `limit` in the order of receipt, newest first unless told; those behind `after`."""
        where = not_before(asked(question), after, oldest_first=oldest_first)
        found = HEADING.empty_table()
        for files in self._tables(where):
            for some, rest in files.in_time(oldest_first=oldest_first):
                with report_lost_files(files.table):
                    more = files.some(some).to_table(columns=found.column_names, filter=where)
                found = pa.concat_tables([found, self._chosen(more, question)])
                found = first(found, limit + 1, after, oldest_first=oldest_first)
                if rest is not None and found.num_rows > limit:
                    last = found["received_at"][limit].as_py()
                    if rest > last if oldest_first else rest < last:
                        break
        letters = [heading(row) for row in found.slice(0, limit).to_pylist()]
        return SummaryPage(letters, letters[-1].cursor if found.num_rows > limit else None)

    def several(
        self, places: Collection[RecordPosition], near: Sequence[DeadLetterSummary] = ()
    ) -> list[StoredDeadLetter]:
        """With their bytes, in the order of receipt. UnknownNameError if one is no dead letter.

        `near`: their headings, where they are known: then few files have to be opened.
        """
        where = at(places)
        if near:
            times = [each.received_at for each in near]
            where &= (pc.field("received_at") >= min(times)) & (pc.field("received_at") <= max(times))
        found: dict[RecordPosition, StoredDeadLetter] = {}
        for files in self._tables(where):
            with report_lost_files(files.table):
                found = {letter.place: letter for letter in whole(files.whole, where)} | found
        for place in places:
            if place not in found:
                raise UnknownNameError(
                    "dead letter", place.id, [], do="`galatea dead-letters list` shows those there are."
                )
        return sorted(found.values(), key=lambda letter: (letter.received_at, letter.place))

    def headings(self, places: Collection[RecordPosition]) -> dict[RecordPosition, DeadLetterSummary]:
        """Those of these places that are dead letters, without their bytes."""
        found: dict[RecordPosition, DeadLetterSummary] = {}
        where = at(places) if places else None
        for files in self._tables(where) if places else ():
            with report_lost_files(files.table):
                some = files.whole.to_table(columns=HEADING.names, filter=where).to_pylist()
            found = {each.place: each for each in map(heading, some)} | found
        return found

    def _tables(self, where: Expression | None) -> Iterator[DataFiles]:
        for name in TABLES:
            files = data_files(f"{self._root}/{name}", where)
            if files is not None and files.every:
                yield files

    def _chosen(self, found: pa.Table, question: DeadLetterQuery) -> pa.Table:
        return found if question.replayed is None else self._joined(found, question, is_sent=question.replayed)

    def _joined(self, found: pa.Table, question: DeadLetterQuery, *, is_sent: bool) -> pa.Table:
        sent = self._replays.sent(question.source)
        return found.join(sent, POSITION, join_type="left semi" if is_sent else "left anti")
