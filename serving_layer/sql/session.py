"""Sessions of the SQL component: one per connection, each for one authenticated caller."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Literal, NamedTuple

import pyarrow as pa
from sqlglot import exp

from master_dataset.errors import GalateaError
from serving_layer.keys.key import Caller
from serving_layer.query.service import QueryService
from serving_layer.sql.results import Prepared, QueryResult, SqlStateError, SqlType
from serving_layer.sql.sandbox import Limits, Sandbox
from serving_layer.sql.statements import read, split
from serving_layer.sql.table import Needed, Reading, RowBudget, Table, money_type
from serving_layer.sql.view_tables import GRAINS, ViewTable

Transaction = Literal["idle", "open", "failed"]


class SqlLimits(NamedTuple):
    """What the component allows.

    Attributes:
        seconds: how long a statement may take, with waiting for its turn.
        statements: how many are run at once.
        source_rows: how many rows of tables a statement may read.
        sandbox: what one statement may use of memory, and how many rows a result may have.
    """

    seconds: float = 60
    statements: int = 4
    source_rows: int = 2_000_000
    sandbox: Limits = Limits()


class Sessions:
    """Makes sessions. One per process and event loop."""

    def __init__(self, queries: QueryService, now: Callable[[], datetime], limits: SqlLimits | None = None) -> None:
        """Open nothing yet.

        Args:
            queries: answers what REST answers; tables are read through its stages.
            now: the time.
            limits: what statements may use.
        """
        self.queries, self.now, self.limits = queries, now, limits or SqlLimits()
        self._threads = ThreadPoolExecutor(self.limits.statements, thread_name_prefix="sql")

    def open(self, caller: Caller) -> "Session":
        """A session that reads what the caller may see, and nothing else."""
        return Session(self, caller)

    def close(self) -> None:
        """Release all threads. Close the sessions first."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Session:
    """The statements of one connection. One is run at a time; `interrupt` may be called meanwhile."""

    def __init__(self, sessions: Sessions, caller: Caller) -> None:
        """Use `Sessions.open`."""
        self._sessions, self._caller = sessions, caller
        self.transaction: Transaction = "idle"

    @staticmethod
    def split(sql: str) -> list[str]:
        """The statements of a text. SqlStateError 42601 if it cannot be read."""
        return split(sql)

    async def prepare(self, sql: str, parameter_types: Sequence[SqlType | None] = ()) -> Prepared:
        """The types of the parameters and columns of a statement, without running it."""
        read(sql)
        return Prepared(sql, [each or SqlType.TEXT for each in parameter_types], None)

    async def execute(self, sql: str, parameters: Sequence[object] = (), most_rows: int | None = None) -> QueryResult:
        """Run one statement."""
        if parameters:
            raise SqlStateError("0A000", "Parameters are not read.", "Write their values into the statement.")
        statement = read(sql)
        queries = self._sessions.queries
        try:
            version = await queries.current_version()
            _, stores = await queries.stores.all()
            mine = {id_: store for id_, store in stores.items() if self._caller.sees(store)}
            tables: dict[str, Table] = {
                table.name: table
                for view in queries.catalogue.views.values()
                for grain in GRAINS
                for table in [ViewTable(view, grain, queries.catalogue, money_type(mine))]
            }
            reading = Reading(
                self._caller,
                version,
                mine,
                queries.merged_cells.for_one_answer(),
                self._sessions.now(),
                RowBudget(self._sessions.limits.source_rows),
            )
            held: dict[str, pa.Table] = {}
            for node in statement.expression.find_all(exp.Table):
                table = tables[node.name]
                held[node.name] = await table.read(reading, Needed(tuple(each.name for each in table.columns)))
        except GalateaError as error:
            raise SqlStateError("58000", error.message, error.do) from error
        return await asyncio.to_thread(self._run, statement.expression.sql("duckdb"), held, most_rows)

    def _run(self, sql: str, held: Mapping[str, pa.Table], most_rows: int | None) -> QueryResult:
        sandbox = Sandbox("UTC", self._sessions.limits.sandbox)
        try:
            with sandbox.holding(held):
                found = sandbox.query(sql, most_rows)
        finally:
            sandbox.close()
        return QueryResult(f"SELECT {len(found.rows)}", found.columns, found.rows)

    def interrupt(self) -> None:
        """Let the running statement fail with 57014, if there is one."""

    def close(self) -> None:
        """Release what the session holds."""
