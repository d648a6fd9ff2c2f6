"""Reads and writes many small rows with few requests to Cassandra.

The cost of a request is higher than that of the rows it carries.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cassandra.concurrent import execute_concurrent_with_args
from cassandra.cqltypes import Int32Type, LongType, SimpleDateType, VarcharType
from cassandra.query import BatchStatement, BatchType, BoundStatement, PreparedStatement

if TYPE_CHECKING:
    from cassandra.cluster import ResponseFuture, Session

ROWS_AT_ONCE = 100
PARTITIONS_AT_ONCE = 10
"""Cassandra warns about requests to more partitions, as each may be on another node."""
BYTES_AT_ONCE = 32_000
"""By default, Cassandra rejects requests to several partitions of more than 50 KiB."""
_IN_FLIGHT = 32
_INT, _BIGINT = Struct(">i"), Struct(">q")
Wait = Callable[[], None]
"""Returns when everything that was begun is acknowledged. Raises the driver's errors."""
Row = TypeVar("Row", bound=tuple[Any, ...])
Key = TypeVar("Key", bound=tuple[Hashable, ...])


class Insert(NamedTuple):
    """A statement, and functions from the values of a row to its partition and its size in bytes."""

    statement: PreparedStatement
    partition: Callable[[Any], Hashable]
    size: Callable[[Any], int]


def partition_slices(rows: Iterable[Row], partition: Callable[[Row], Key]) -> Iterator[tuple[Key, list[Row]]]:
    """The rows of each Cassandra partition, at most `ROWS_AT_ONCE` together, with the partition key."""
    for key, own in groupby(sorted(rows, key=partition), key=partition):
        together = list(own)
        for start in range(0, len(together), ROWS_AT_ONCE):
            yield key, together[start : start + ROWS_AT_ONCE]


def read_all(session: "Session", select: PreparedStatement, queries: list[tuple[Any, ...]]) -> list[list[Any]]:
    """The rows of each query, in the order of the queries. Raises the driver's first error."""
    answers = execute_concurrent_with_args(session, select, queries, concurrency=_IN_FLIGHT)
    return [list(rows) for _, rows in answers]


def nothing_begun() -> None:
    """The `Wait` of nothing."""


def write_all(
    session: "Session", insert: Insert, rows: Iterable[Row], acknowledged: Callable[[], None] = lambda: None
) -> None:
    """Write rows as `begin_writes` does. Returns when every row is acknowledged."""
    begin_writes(session, insert, rows, acknowledged)()


def begin_writes(
    session: "Session", insert: Insert, rows: Iterable[Row], acknowledged: Callable[[], None] = lambda: None
) -> Wait:
    """Write rows in their order, those of one partition together. Returns when every row is sent, or acknowledged.

    `acknowledged` is called for each request, while others are in flight. Raises the driver's errors, and those of
    `rows` as they are generated: `execute_concurrent` would generate them in its event loop and lose their errors.
    """
    under_way: deque[ResponseFuture] = deque()
    for own in request_batches(rows, insert.partition, insert.size):
        if len(under_way) == _IN_FLIGHT:
            under_way.popleft().result()
            acknowledged()
        under_way.append(session.execute_async(_batch(insert.statement, own)))

    def wait() -> None:
        while under_way:
            under_way.popleft().result()
            acknowledged()

    return wait


def request_batches(
    rows: Iterable[Row], partition: Callable[[Row], Hashable], size: Callable[[Row], int]
) -> Iterator[list[Row]]:
    """The rows of each request. A row that exceeds the limits is sent alone."""
    own: list[Row] = []
    held, partitions = 0, set[Hashable]()
    for row in rows:
        key, more = partition(row), size(row)
        too_many = len(own) == ROWS_AT_ONCE or (len(partitions) == PARTITIONS_AT_ONCE and key not in partitions)
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
    bind = bind_of(insert)
    for values in rows:
        batch.add(bind(values))
    return batch


@lru_cache
def bind_of(insert: PreparedStatement) -> Callable[[tuple[Any, ...]], BoundStatement]:
    """What `insert.bind` does for a whole row, with less work: 8 instead of 22 us for a first delivery."""
    serialize = [_serializer(column.type, insert.protocol_version) for column in insert.column_metadata]

    def bind(values: tuple[Any, ...]) -> BoundStatement:
        bound = BoundStatement(insert)
        bound.values = [own(value) for own, value in zip(serialize, values, strict=True)]
        return bound

    return bind


def _serializer(kind: Any, protocol_version: int) -> Callable[[Any], bytes | None]:  # noqa: ANN401 - a type of the driver
    if kind is LongType or kind is Int32Type:
        pack = (_BIGINT if kind is LongType else _INT).pack
        return lambda value: None if value is None else pack(value)
    if kind is VarcharType:
        return lambda value: None if value is None else value.encode()

    def serialize(value: Any) -> bytes:  # noqa: ANN401 - of any type
        written: bytes = kind.serialize(value, protocol_version)
        return written

    if kind is SimpleDateType:
        serialize = lru_cache(serialize)
    return lambda value: None if value is None else serialize(value)
