"""Cassandra from asyncio: a statement in, its rows out, at once or page by page. The driver has a thread of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from cassandra.cluster import EXEC_PROFILE_DEFAULT, ResultSet
from cassandra.query import BatchStatement, BatchType, BoundStatement, PreparedStatement, tuple_factory

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, unread_rights
from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.one_write import one_write

if TYPE_CHECKING:
    from cassandra.cluster import ResponseFuture, Session

TIMEOUT_SECONDS = 2.0
TRIES = 2
Row = tuple[Any, ...]  # columns in the order of the SELECT
_Statement: TypeAlias = PreparedStatement | BoundStatement | BatchStatement
_Found = TypeVar("_Found")


class _RowPage(NamedTuple):
    """`paging_state`: where the next page begins; None on the last one."""

    rows: list[Row]
    paging_state: bytes | None


class AsyncSession:
    """A driver session for asyncio. A read that fails is tried once more, then CassandraUnavailableError is raised."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace; its consistency is used as it is."""
        self._session = session
        self._profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory, request_timeout=TIMEOUT_SECONDS
        )

    def prepare(self, cql: str) -> PreparedStatement:
        """Blocks: only while the process starts."""
        return self._session.prepare(cql)

    async def rows(self, statement: PreparedStatement | BatchStatement, *values: object) -> list[Row]:
        """All pages of the answer. CassandraUnavailableError after the second failure."""
        return await _tried(lambda: self._all_pages(statement, values or None))

    async def pages(self, statement: PreparedStatement, *values: object, rows_at_once: int) -> AsyncIterator[list[Row]]:
        """Read an answer that is too large to be in memory at once. Each page is requested once it is asked for.

        Args:
            statement: a SELECT.
            values: of its placeholders.
            rows_at_once: rows of a page at most, here and in Cassandra.

        Yields:
            The rows of a page, at least one.

        Raises:
            CassandraUnavailableError: a page could not be read, twice.
        """
        bound = statement.bind(values)
        bound.fetch_size = rows_at_once
        paging_state: bytes | None = None
        while True:
            page = await _tried(partial(self._page, bound, None, paging_state))
            if page.rows:  # a page can be empty although others follow
                yield page.rows
            paging_state = page.paging_state
            if paging_state is None:
                return

    async def together(self, statement: PreparedStatement, rows: Sequence[Sequence[object]]) -> None:
        """Write rows of one partition, which Cassandra does as one change: all of them or none.

        Raises:
            BadFileError: the rows, which are those of a file, are too large together.
            CassandraUnavailableError: as `rows`.
        """
        with one_write(rows):
            batch = BatchStatement(BatchType.UNLOGGED)
            for values in rows:
                batch.add(statement, values)
            await self.rows(batch)

    async def _all_pages(self, statement: _Statement, values: Sequence[object] | None) -> list[Row]:
        found, paging_state = await self._page(statement, values)
        while paging_state is not None:
            page = await self._page(statement, values, paging_state)
            found += page.rows
            paging_state = page.paging_state
        return found

    async def _page(
        self, statement: _Statement, values: Sequence[object] | None, paging_state: bytes | None = None
    ) -> _RowPage:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_RowPage] = loop.create_future()
        response: ResponseFuture = self._session.execute_async(
            statement, values, execution_profile=self._profile, paging_state=paging_state
        )

        def settle(page: _RowPage | None, error: BaseException | None) -> None:
            if done.done():
                return
            if page is not None:
                done.set_result(page)
            elif error is not None:
                done.set_exception(error)

        def on_page(rows: Sequence[Row] | None) -> None:  # on the driver's thread
            following = ResultSet(response, rows).paging_state if response.has_more_pages else None
            loop.call_soon_threadsafe(settle, _RowPage(list(rows or ()), following), None)

        def on_error(error: BaseException) -> None:
            loop.call_soon_threadsafe(settle, None, unread_rights(error) or error)

        response.add_callbacks(on_page, on_error)
        return await done


async def _tried(read: Callable[[], Awaitable[_Found]]) -> _Found:
    for _ in range(TRIES):
        try:
            return await read()
        except CASSANDRA_UNAVAILABLE as error:
            failed = error
    message = f"Cassandra did not answer: {type(failed).__name__}."
    raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.") from failed


def instant_of(value: datetime | None) -> datetime:
    """The instant of a column. The driver returns UTC without a time zone."""
    if value is None:
        raise CassandraUnavailableError("A row lacks its instant.", do="galatea doctor")
    return value.replace(tzinfo=UTC)


def optional_instant(value: datetime | None) -> datetime | None:
    """The instant of a column that may be null."""
    return None if value is None else instant_of(value)


def day_of(value: Any) -> date:  # noqa: ANN401 - the driver's own Date
    """The date of a column. The driver has a class of its own for dates."""
    day: date = value.date()
    return day
