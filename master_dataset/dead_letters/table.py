"""Stored dead letters: those of the archive, conflicts found by rebuilds, and alerts that endpoints rejected.

Read without Spark. Lists read neither bytes nor headers, and only those data files that may hold what is selected. An
archive that lost its checkpoint may have stored a record twice; each position is listed once.
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
from cachetools import LRUCache
from deltalake import DeltaTable

from master_dataset.dead_letters.dead_letter import (
    DeadLetterCursor,
    DeadLetterQuery,
    DeadLetterSummary,
    StoredDeadLetter,
)
from master_dataset.dead_letters.replay_history import ReplayTable
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import TableLayout
from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.delta.incomplete_commits import roll_back_incomplete
from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.rows import BYTES, INSTANT, POSITION_FIELDS, REJECTION
from master_dataset.storage import is_table, open_table

UNDELIVERED = "undelivered"
"""Table of the alerts that an endpoint rejected, and of records that are no alerts of ours."""
TABLES = ("dead_letters", "conflicts", UNDELIVERED)
MOST_CACHED = 32
"""How many counts are cached; each is valid until a table changes."""
MOST_COUNTED = 5_000_000
"""How many rows a count may read: this takes some seconds and some hundred MB."""

POSITION = ["topic", "partition", "offset"]
SUMMARY_SCHEMA = pa.schema(
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
RAW_COLUMNS = ["key", "value", "headers"]
ROWS_PER_BATCH = 64
"""Of rows with their bytes: a value has up to 4 MiB."""
Expression = Any
"""pyarrow ships no types."""


# Data files in the order of receipt

FIRST_FILES, MORE = 16, 4
"""How many files are opened at first, and by which factor more each time after that."""
BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class DataFile:
    """`oldest_at`, `newest_at`: bounds of `received_at` from the table's log; unbounded if it has none."""

    fragment: Any
    rows: int
    oldest_at: datetime
    newest_at: datetime


@dataclass(frozen=True)
class DataFiles:
    """The files of one version of a table that may hold selected rows."""

    table: DeltaTable
    dataset: Any
    every: Sequence[DataFile]

    @property
    def rows(self) -> int:
        """An upper bound of the selected rows."""
        return sum(each.rows for each in self.every)

    @property
    def whole(self) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """All files as one dataset."""
        return self.some(self.every)

    def some(self, files: Sequence[DataFile]) -> Any:  # noqa: ANN401 - likewise
        """Some of the files as one dataset."""
        whole = self.dataset
        return ds.FileSystemDataset([each.fragment for each in files], whole.schema, whole.format, whole.filesystem)

    def in_time(self, *, oldest_first: bool) -> Iterator[tuple[Sequence[DataFile], datetime | None]]:
        """Yield portions of growing size, each with the best time that a later one may hold; None after the last."""
        left = sorted(self.every, key=lambda file: file.oldest_at if oldest_first else file.newest_at)
        left = left if oldest_first else left[::-1]
        size = FIRST_FILES
        while left:
            taken, left = left[:size], left[size:]
            size *= MORE
            rest = (left[0].oldest_at if oldest_first else left[0].newest_at) if left else None
            yield taken, rest


def data_files(path: str, where: Any) -> DataFiles | None:  # noqa: ANN401 - likewise
    """Return the files of the newest version; None if the table does not exist. `where`: None selects everything."""
    if not is_table(path):
        return None
    table = open_table(path)
    log = {unquote(row["path"]): row for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()}
    dataset = arrow_dataset(table)
    return DataFiles(table, dataset, [_file(fragment, log) for fragment in dataset.get_fragments(where)])


def _file(fragment: Any, log: dict[str, dict[str, Any]]) -> DataFile:  # noqa: ANN401 - likewise
    row = log.get(unquote(fragment.path), {})
    oldest, newest = row.get("min.received_at"), row.get("max.received_at")
    # The log may truncate times to milliseconds, so the newest row can be a little later.
    return DataFile(
        fragment,
        row.get("num_records") or 0,
        oldest or BEGINNING,
        END if newest is None else newest.replace(microsecond=newest.microsecond // 1000 * 1000 + 999),
    )


# The dead letters


class DeadLetterCounts(NamedTuple):
    """Reason code to the number of dead letters, most first; and to how many of them were replayed."""

    dead_letters: Mapping[str, int]
    replayed: Mapping[str, int]


@dataclass(frozen=True)
class SummaryPage:
    """`following`: the cursor of the last one, if more follow; else None."""

    dead_letters: Sequence[DeadLetterSummary]
    following: DeadLetterCursor | None


class DeadLetterTable:
    """The dead letters of one master dataset."""

    def __init__(self, root: str, replays: ReplayTable) -> None:
        """`root` of the master dataset. `replays` says which ones were sent again."""
        self._root, self._replays = root, replays
        self._counted: LRUCache[object, DeadLetterCounts] = LRUCache(MOST_CACHED)

    def counts(self, query: DeadLetterQuery) -> DeadLetterCounts:
        """Count the selected dead letters.

        Raises:
            RangeTooLongError: More than MOST_COUNTED rows would have to be read.
        """
        where = _selected(query)
        tables = list(self._tables(where))
        if sum(files.rows for files in tables) > MOST_COUNTED:
            message = f"More than {MOST_COUNTED:,} dead letters would have to be searched."
            raise RangeTooLongError(message, do="Name a source, or a shorter time range with `from` and `to`.")
        versions = [(files.table.table_uri, files.table.version()) for files in tables]
        key = (query, *versions, self._replays.version())
        counts = self._counted.get(key)
        if counts is None:
            counts = self._counted[key] = self._counts(query, tables, where)
        return counts

    def _counts(
        self, query: DeadLetterQuery, tables: Sequence[DataFiles], where: Expression | None
    ) -> DeadLetterCounts:
        found = SUMMARY_SCHEMA.empty_table().select([*POSITION, "reason"])
        for files in tables:
            with report_lost_files(files.table):
                found = pa.concat_tables([found, files.whole.to_table(columns=found.column_names, filter=where)])
        found = self._filter_replayed(deduplicate(found), query)
        sent = self._joined(found, query, is_sent=True)
        return DeadLetterCounts(count_by_reason(found), count_by_reason(sent))

    def page(
        self,
        query: DeadLetterQuery,
        limit: int,
        after: DeadLetterCursor | None = None,
        *,
        oldest_first: bool = False,
    ) -> SummaryPage:
        """List dead letters in the order of receipt.

        Args:
            query: Which ones.
            limit: Maximum number of dead letters.
            after: Only those after this cursor; None starts at the first.
            oldest_first: Instead of newest first.
        """
        where = _not_before(_selected(query), after, oldest_first=oldest_first)
        found = SUMMARY_SCHEMA.empty_table()
        for files in self._tables(where):
            for some, rest in files.in_time(oldest_first=oldest_first):
                with report_lost_files(files.table):
                    more = files.some(some).to_table(columns=found.column_names, filter=where)
                found = pa.concat_tables([found, self._filter_replayed(more, query)])
                found = _first(found, limit + 1, after, oldest_first=oldest_first)
                if rest is not None and found.num_rows > limit:
                    last = found["received_at"][limit].as_py()
                    if rest > last if oldest_first else rest < last:
                        break
        dead_letters = [_summary(row) for row in found.slice(0, limit).to_pylist()]
        return SummaryPage(dead_letters, dead_letters[-1].cursor if found.num_rows > limit else None)

    def fetch(
        self, positions: Collection[RecordPosition], near: Sequence[DeadLetterSummary] = ()
    ) -> list[StoredDeadLetter]:
        """Read dead letters with their bytes.

        Args:
            positions: Which ones; at least one.
            near: Their summaries, if known: then few files have to be opened.

        Returns:
            The dead letters in the order of receipt.

        Raises:
            UnknownNameError: One of them does not exist.
        """
        where = _at(positions)
        if near:
            times = [each.received_at for each in near]
            where &= (pc.field("received_at") >= min(times)) & (pc.field("received_at") <= max(times))
        found: dict[RecordPosition, StoredDeadLetter] = {}
        for files in self._tables(where):
            with report_lost_files(files.table):
                found = {dead_letter.position: dead_letter for dead_letter in _stored(files.whole, where)} | found
        for position in positions:
            if position not in found:
                raise UnknownNameError("dead letter", position.id, [], do="`galatea dead-letters list` shows them.")
        return sorted(found.values(), key=lambda dead_letter: (dead_letter.received_at, dead_letter.position))

    def summaries(self, positions: Collection[RecordPosition]) -> dict[RecordPosition, DeadLetterSummary]:
        """Return those of these positions that are dead letters, without their bytes."""
        found: dict[RecordPosition, DeadLetterSummary] = {}
        where = _at(positions) if positions else None
        for files in self._tables(where) if positions else ():
            with report_lost_files(files.table):
                some = files.whole.to_table(columns=SUMMARY_SCHEMA.names, filter=where).to_pylist()
            found = {each.position: each for each in map(_summary, some)} | found
        return found

    def _tables(self, where: Expression | None) -> Iterator[DataFiles]:
        for name in TABLES:
            files = data_files(f"{self._root}/{name}", where)
            if files is not None and files.every:
                yield files

    def _filter_replayed(self, found: pa.Table, query: DeadLetterQuery) -> pa.Table:
        return found if query.replayed is None else self._joined(found, query, is_sent=query.replayed)

    def _joined(self, found: pa.Table, query: DeadLetterQuery, *, is_sent: bool) -> pa.Table:
        sent = self._replays.sent(query.source)
        return found.join(sent, POSITION, join_type="left semi" if is_sent else "left anti")


# Filters and rows


def _selected(query: DeadLetterQuery) -> Expression | None:
    """The filter of a query, except for `replayed`; None selects every row."""
    same = {"reason": query.reason, "topic": query.source}
    conditions = [pc.field(name) == value for name, value in same.items() if value is not None]
    conditions += [] if query.since is None else [pc.field("received_at") >= query.since]
    conditions += [] if query.until is None else [pc.field("received_at") < query.until]
    return reduce(and_, conditions) if conditions else None


def _not_before(where: Expression | None, after: DeadLetterCursor | None, *, oldest_first: bool) -> Expression | None:
    """Add to a filter that rows were not received before the cursor, in the order of the list."""
    if after is None:
        return where
    at = pc.field("received_at")
    bound = at >= after.received_at if oldest_first else at <= after.received_at
    return bound if where is None else where & bound


def _at(positions: Collection[RecordPosition]) -> Expression:
    """The filter for these positions, of which there is at least one."""
    offsets_of: dict[tuple[str, int], list[int]] = {}
    for position in positions:
        offsets_of.setdefault(position[:2], []).append(position.offset)
    return reduce(
        or_,
        (
            (pc.field("topic") == topic) & (pc.field("partition") == partition) & pc.field("offset").isin(offsets)
            for (topic, partition), offsets in offsets_of.items()
        ),
    )


def deduplicate(found: pa.Table) -> pa.Table:
    """Return each position once."""
    if found.num_rows <= 1:
        return found
    found = found.sort_by([(name, "ascending") for name in ("offset", "partition", "topic")])
    here, before = found.slice(1), found.slice(0, found.num_rows - 1)
    is_other = reduce(pc.or_, (pc.not_equal(here[name], before[name]) for name in POSITION))
    return pa.concat_tables([found.slice(0, 1), here.filter(is_other)])


def _first(found: pa.Table, most: int, after: DeadLetterCursor | None, *, oldest_first: bool) -> pa.Table:
    """Rows after `after`, up to a limit, each position once, in the order of receipt."""
    direction = "ascending" if oldest_first else "descending"
    keys = found.select(["received_at", *POSITION])
    taken: list[int] = []
    last = None if after is None else (after.received_at, *after.position)
    for index in pc.sort_indices(keys, [(name, direction) for name in keys.column_names]):
        row = tuple(keys[name][index.as_py()].as_py() for name in keys.column_names)
        if last is None or (row > last if oldest_first else row < last):
            taken.append(index.as_py())
            last = row
            if len(taken) == most:
                break
    return found.take(pa.array(taken, pa.int64()))


def count_by_reason(found: pa.Table) -> dict[str, int]:
    """Return reason to number of rows, most first."""
    counted = Counter({each["values"]: each["counts"] for each in pc.value_counts(found["reason"]).to_pylist()})
    return dict(counted.most_common())


def _summary(row: Mapping[str, Any]) -> DeadLetterSummary:
    position = RecordPosition(row["topic"], row["partition"], row["offset"])
    return DeadLetterSummary(position, row["received_at"], row["reason"], row["field"], row["sentence"])


def _stored(dataset: Expression, where: Expression) -> Iterator[StoredDeadLetter]:
    """Rows with their bytes, a few at a time. A value that is larger than a record may be is cut."""
    scanner = dataset.scanner(
        columns=[*SUMMARY_SCHEMA.names, *RAW_COLUMNS],
        filter=where,
        batch_size=ROWS_PER_BATCH,
        batch_readahead=1,
        fragment_readahead=1,
    )
    for batch in scanner.to_batches():
        for row in batch.to_pylist():
            summary, value = _summary(row), row["value"]
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            kept = value and value[: MAX_BYTES + 1]
            shared = (summary.position, summary.received_at, summary.reason, summary.field, summary.sentence)
            yield StoredDeadLetter(*shared, row["key"], kept, headers, len(value or b""))


# The table of what no archive writes


def undelivered_layout() -> TableLayout:
    """The layout of the table: the columns of a dead letter as the archive writes them, partitioned by topic."""
    return TableLayout(pa.schema([*POSITION_FIELDS, *REJECTION, *BYTES]), "topic")


def create(path: str) -> None:
    """Create the table unless it exists. DeltaError, OSError."""
    roll_back_incomplete(path)
    create_table(path, undelivered_layout())
