"""Small rows in portions that Cassandra takes at once: a request for many, not for each.

A request costs it and us more than the rows that it carries.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType, PreparedStatement

if TYPE_CHECKING:
    from cassandra.cluster import ResponseFuture, Session

ROWS_AT_ONCE = 100
PARTITIONS_AT_ONCE = 10
"""More are written by one request only with a warning, as their nodes may all differ."""
BYTES_AT_ONCE = 32_000
"""Of several rows: Cassandra's default is to refuse more than 50 KiB of several partitions."""
_IN_FLIGHT = 32
Row = TypeVar("Row", bound=tuple[Any, ...])
Key = TypeVar("Key", bound=tuple[Hashable, ...])


class Insert(NamedTuple):
    """A statement, and of the values of a row the partition that they lie in and how many bytes they are."""

    statement: PreparedStatement
    partition: Callable[[Any], Hashable]
    size: Callable[[Any], int]


def partition_slices(rows: Iterable[Row], partition: Callable[[Row], Key]) -> Iterator[tuple[Key, list[Row]]]:
    """Portions of rows of one Cassandra partition each, under the values of its key."""
    for key, own in groupby(sorted(rows, key=partition), key=partition):
        together = list(own)
        for start in range(0, len(together), ROWS_AT_ONCE):
            yield key, together[start : start + ROWS_AT_ONCE]


def read_all(session: "Session", select: PreparedStatement, asked: list[tuple[Any, ...]]) -> list[list[Any]]:
    """The rows of each question, in the order asked. Raises what the driver raises on the first failure."""
    answers = execute_concurrent_with_args(session, select, asked, concurrency=_IN_FLIGHT)
    return [list(rows) for _, rows in answers]


def write_all(
    session: "Session", insert: Insert, rows: Iterable[Row], acknowledged: Callable[[], None] = lambda: None
) -> None:
    """Write them in their order, those of a partition side by side; when this returns, every one is acknowledged.

    `acknowledged` is told of each request, while others are under way. Raises what the driver raises, and what `rows`
    raises as they are made: `execute_concurrent` would make them in its event loop and lose that.
    """
    under_way: deque[ResponseFuture] = deque()
    for own in request_batches(rows, insert.partition, insert.size):
        if len(under_way) == _IN_FLIGHT:
            under_way.popleft().result()
            acknowledged()
        under_way.append(session.execute_async(_batch(insert.statement, own)))
    for each in under_way:
        each.result()
        acknowledged()


def request_batches(
    rows: Iterable[Row], partition: Callable[[Row], Hashable], size: Callable[[Row], int]
) -> Iterator[list[Row]]:
    """What one request writes. A row that is larger than all bounds goes alone."""
    own: list[Row] = []
    held, partitions = 0, set[Hashable]()
    for row in rows:
        key, more = partition(row), size(row)
        too_many = len(own) == ROWS_AT_ONCE or len(partitions | {key}) > PARTITIONS_AT_ONCE
        if own and (too_many or held + more > BYTES_AT_ONCE):
            yield own
            own, held, partitions = [], 0, set()
        own.append(row)
        held += more
        partitions.add(key)
    if own:
        yield own


def _batch(insert: PreparedStatement, rows: Iterable[tuple[Any, ...]]) -> BatchStatement:
    batch = BatchStatement(BatchType.UNLOGGED)  # every row is written again if one of them was not
    for values in rows:
        batch.add(insert, values)
    return batch
