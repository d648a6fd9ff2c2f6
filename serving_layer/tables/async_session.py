"""Cassandra from asyncio: a statement in, all its rows out. The driver calls back on a thread of its own."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.query import BatchStatement, BatchType, PreparedStatement, tuple_factory

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, unread_rights
from master_dataset.errors import CassandraUnavailableError
from master_dataset.one_write import one_write

if TYPE_CHECKING:
    from cassandra.cluster import ResponseFuture, Session

TIMEOUT_SECONDS = 2.0
TRIES = 2
Row = tuple[Any, ...]  # columns in the order of the SELECT


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
        for _ in range(TRIES):
            try:
                return await self._once(statement, values)
            except CASSANDRA_UNAVAILABLE as error:
                failed = error
        message = f"Cassandra did not answer: {type(failed).__name__}."
        raise CassandraUnavailableError(message, do="Ask again; `galatea status` says what is wrong.") from failed

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

    async def _once(self, statement: PreparedStatement | BatchStatement, values: Sequence[object]) -> list[Row]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Row]] = loop.create_future()
        found: list[Row] = []
        response: ResponseFuture = self._session.execute_async(
            statement, values or None, execution_profile=self._profile
        )

        def settle(error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(found)
            else:
                done.set_exception(error)

        def on_page(page: Sequence[Row] | None) -> None:  # on the driver's thread
            found.extend(page or ())
            if response.has_more_pages:
                response.start_fetching_next_page()
            else:
                loop.call_soon_threadsafe(settle, None)

        def on_error(error: BaseException) -> None:
            loop.call_soon_threadsafe(settle, unread_rights(error) or error)

        response.add_callbacks(on_page, on_error)
        return await done


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
