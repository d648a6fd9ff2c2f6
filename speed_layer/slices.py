"""Small rows that lie together in Cassandra, in portions that it takes at once: a request for many, not for each."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from cassandra.concurrent import execute_concurrent, execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType, PreparedStatement

if TYPE_CHECKING:
    from cassandra.cluster import Session

ROWS_AT_ONCE = 100
BYTES_AT_ONCE = 256_000
"""With one row of a megabyte more, still far below what a node takes: half a segment of its commit log, 8 MiB here."""
_IN_FLIGHT = 32
Row = TypeVar("Row")
Key = TypeVar("Key", bound=tuple[Hashable, ...])


def slices(
    rows: Iterable[Row], partition: Callable[[Row], Key], size: Callable[[Row], int] = lambda _: 0
) -> Iterator[tuple[Key, list[Row]]]:
    """Portions of rows of one Cassandra partition each, under the values of its key. `size`: of a row, in bytes."""
    for key, own in groupby(sorted(rows, key=partition), key=partition):
        together: list[Row] = []
        held = 0
        for row in own:
            together.append(row)
            held += size(row)
            if len(together) == ROWS_AT_ONCE or held >= BYTES_AT_ONCE:
                yield key, together
                together, held = [], 0
        if together:
            yield key, together


def read(session: "Session", select: PreparedStatement, asked: list[tuple[Any, ...]]) -> list[list[Any]]:
    """The rows of each question, in the order asked. Raises what the driver raises on the first failure."""
    answers = execute_concurrent_with_args(session, select, asked, concurrency=_IN_FLIGHT)
    return [list(rows) for _, rows in answers]


def write(session: "Session", insert: PreparedStatement, together: Iterable[Iterable[tuple[Any, ...]]]) -> None:
    """Write rows, each portion in one request; when this returns, every one is acknowledged."""
    statements = []
    for rows in together:
        statement = BatchStatement(BatchType.UNLOGGED)  # one partition: nothing to coordinate
        for values in rows:
            statement.add(insert, values)
        statements.append((statement, None))
    execute_concurrent(session, statements, concurrency=_IN_FLIGHT)
