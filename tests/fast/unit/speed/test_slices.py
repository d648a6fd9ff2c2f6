"""What one request to Cassandra carries."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any

import pytest
from cassandra.cqltypes import BytesType, ByteType, DateType, Int32Type, LongType, SimpleDateType, VarcharType
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement
from hypothesis import given
from hypothesis import strategies as st

from speed_layer import cassandra_batches
from speed_layer.cassandra_batches import (
    BYTES_AT_ONCE,
    PARTITIONS_AT_ONCE,
    ROWS_AT_ONCE,
    Insert,
    request_batches,
    write_all,
)

Row = tuple[int, int]
rows_of_partitions = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2 * BYTES_AT_ONCE)), max_size=400)
small_rows = st.lists(st.tuples(st.integers(0, 3), st.just(1)), max_size=400)


@given(st.one_of(rows_of_partitions, small_rows))
def test_every_row_is_written_once_and_in_order_and_no_request_carries_too_much(rows: list[Row]) -> None:
    found = list(request_batches(rows, itemgetter(0), itemgetter(1)))

    assert [row for own in found for row in own] == rows
    for own in found:
        assert 0 < len(own) <= ROWS_AT_ONCE
        assert len({partition for partition, _ in own}) <= PARTITIONS_AT_ONCE
        assert len(own) == 1 or sum(size for _, size in own) <= BYTES_AT_ONCE


def test_small_rows_of_many_partitions_share_requests() -> None:
    rows = [(partition, 10) for partition in range(35)]

    found = list(request_batches(rows, itemgetter(0), itemgetter(1)))

    assert list(map(len, found)) == [10, 10, 10, 5]


class Future:
    """Is acknowledged when its result is asked for."""

    def __init__(self, number: int, order: list[tuple[str, int]]) -> None:
        self._number, self._order = number, order

    def result(self) -> None:
        self._order.append(("acknowledged", self._number))


class Session:
    """Records in which order requests are sent and acknowledged."""

    def __init__(self) -> None:
        self.requests: list[list[Row]] = []
        self.order: list[tuple[str, int]] = []

    def execute_async(self, rows: list[Row]) -> Any:
        number = len(self.requests)
        self.requests.append(rows)
        self.order.append(("sent", number))
        return Future(number, self.order)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(cassandra_batches, "_batch", lambda _statement, rows: rows)
    return Session()


INSERT = Insert(None, itemgetter(0), itemgetter(1))


def test_what_goes_wrong_while_rows_are_made_is_not_taken_for_their_end(session: Session) -> None:
    def rows() -> Iterator[Row]:
        yield from ((number, BYTES_AT_ONCE) for number in range(100))
        raise MemoryError

    with pytest.raises(MemoryError):
        write_all(session, INSERT, rows())

    assert len(session.requests) == 99  # the hundredth was still being filled


def test_every_request_is_reported_when_it_is_acknowledged(session: Session) -> None:
    def report() -> None:
        what, number = session.order[-1]
        assert what == "acknowledged"
        session.order.append(("reported", number))

    write_all(session, INSERT, [(number, BYTES_AT_ONCE) for number in range(70)], report)

    assert [number for what, number in session.order if what == "sent"] == list(range(70))
    assert [number for what, number in session.order if what == "reported"] == list(range(70))
    assert session.order.index(("reported", 0)) < session.order.index(("sent", 69))  # while others are in flight


TIMES = datetime(1969, 12, 31, 23, 59, 59, 5000, tzinfo=UTC), 1_772_366_400_123
ROW = ("Košice", 2**40, -1, date(1969, 12, 31), date(2026, 3, 7), *TIMES, b"\0block", 23, None, None, None)


def test_rows_are_bound_as_the_driver_binds_them() -> None:
    types = (VarcharType, LongType, Int32Type, SimpleDateType, SimpleDateType, DateType, DateType, BytesType, ByteType)
    of_none = (VarcharType, LongType, DateType)
    columns = [ColumnMetadata("k", "t", f"c{at}", kind) for at, kind in enumerate((*types, *of_none))]
    insert = PreparedStatement(columns, b"id", [], "INSERT", "k", 5, [], None)

    for _ in range(2):  # the second one from what is remembered
        assert cassandra_batches.bind_of(insert)(ROW).values == insert.bind(ROW).values
