"""Sessions of the SQL component: one per connection, each for one authenticated caller.

A session tells statements apart, keeps settings and transactions, and runs queries: it finds out what a query needs of
its tables, reads that through the stages of REST, and lets a sandbox run the query over it.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from sys import getsizeof
from typing import Any, Literal, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
from cachetools import LRUCache
from sqlglot import exp

from master_dataset.errors import (
    DependencyUnavailableError,
    GalateaError,
    OperatorError,
    RangeTooLongError,
    SpeedExpiredError,
    SpeedUnavailableError,
)
from master_dataset.registry.products import ProductMaster
from master_dataset.registry.stores import Store
from serving_layer.caching import SharedRuns, digest, keep
from serving_layer.errors import CellMissingError, NotYetError, PublicationCollectedError
from serving_layer.fair_semaphore import FairSemaphore
from serving_layer.keys.key import Caller
from serving_layer.sql.catalog_functions import MACROS
from serving_layer.sql.constants import Constant, is_volatile
from serving_layer.sql.cursors import MOST_CURSORS, CloseCursor, Cursor, Fetch, missing
from serving_layer.sql.error_messages import UndefinedColumnError, too_deep
from serving_layer.sql.held_rows import Held, HeldRows, ResultMemory
from serving_layer.sql.permissions import check
from serving_layer.sql.plan import Plan, plan, with_column_names
from serving_layer.sql.relations import Relations, Sources
from serving_layer.sql.results import SHORT, Column, Prepared, QueryResult, SqlStateError, SqlType, SqlValue
from serving_layer.sql.sandbox import Limits, Sandbox, Sandboxes
from serving_layer.sql.semantics import as_in_postgresql
from serving_layer.sql.settings import AT_LEAST, TIMEZONE, SessionSettings, require_short_name
from serving_layer.sql.statements import (
    Action,
    Control,
    Declare,
    NoOperation,
    Query,
    Setting,
    Show,
    Statement,
    read,
    split,
)
from serving_layer.sql.suggestions import did_you_mean
from serving_layer.sql.table import Needed, Reading, RowBudget, Table, table_size
from serving_layer.sql.translate import Clock, SessionValues, duckdb_sql, parameter_number, translated, with_parameters
from serving_layer.store.at_least import Demand
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadVersion

Transaction = Literal["idle", "open", "failed"]
Found = TypeVar("Found")
BYTES_CACHED = 128 * 1024 * 1024
RESULT_BYTES, ROWS_CACHED = 64 * 1024 * 1024, 20_000
"""Estimated memory of all results that are cached, and rows of one that is."""
_BYTES_OF_RESULT, _BYTES_OF_VALUE = 2_000, 80
BYTES_OF_TRANSACTION = 32 * 1024 * 1024
WAIT_SECONDS = 0.05
"""How long an interrupted thread is waited for before it is interrupted again."""
MOST_PARAMETERS = 10_000
STUCK_SECONDS = 60.0
"""How long after it was interrupted a thread may take to end before only a new process helps."""
STATEMENTS_CACHED = 256
"""How many short statements are remembered: what their texts say, their columns, and what they read of tables."""


class Parameters(NamedTuple):
    """The values of `$1`, `$2`, ..., and what is known of their types."""

    values: Sequence[SqlValue] = ()
    types: Sequence[SqlType] = ()


class SqlLimits(NamedTuple):
    """What the component allows.

    Attributes:
        seconds: how long a statement may take, with waiting for its turn.
        statements: how many are run at once. A tenant has at most one less, so that others find a place; likewise of
            those that are read, planned and described beside the ones that run.
        source_rows: how many rows of tables a statement may read.
        sandbox: what one statement may use of memory, and how large its result may be.
        held_bytes: of memory, what the results may take that connections hold.
    """

    seconds: float = 60
    statements: int = 4
    source_rows: int = 2_000_000
    sandbox: Limits = Limits()
    held_bytes: int = 682_666_666


@dataclass
class Snapshot:
    """What the statements of a transaction read.

    Attributes:
        version: the state of both layers, and the version of the registry.
        stores: the stores that the caller sees, by id.
        now: when the transaction began.
        speed_failure: why the version lacks the speed layer; None if it has it.
        settled: merged cells that stay as they are while events arrive; None outside of a transaction.
        demand: what it was asked to contain; None: nothing in particular.
        masters: by tenant the product master, once it has been read.
        tables: what was read already.
    """

    version: ReadVersion
    stores: Mapping[str, Store]
    now: datetime
    speed_failure: GalateaError | None = None
    settled: MergedCells | None = None
    demand: Demand | None = None
    masters: dict[str, ProductMaster | None] = field(default_factory=dict)
    tables: LRUCache[str, pa.Table] = field(
        default_factory=lambda: LRUCache(BYTES_OF_TRANSACTION, getsizeof=table_size)
    )


class _Cached(NamedTuple):
    """A result in the cache."""

    result: QueryResult

    @property
    def size(self) -> int:
        rows = self.result.rows
        held = rows.size if isinstance(rows, HeldRows) else _BYTES_OF_VALUE * len(rows) * len(self.result.columns or ())
        return _BYTES_OF_RESULT + held


class Sessions:
    """Makes sessions. One per process and event loop."""

    def __init__(self, sources: Sources, now: Callable[[], datetime], limits: SqlLimits | None = None) -> None:
        """Open nothing yet.

        Args:
            sources: what tables are read from.
            now: the time.
            limits: what statements may use.
        """
        self.sources, self.now, self.limits = sources, now, limits or SqlLimits()
        most, most_of_tenant = self.limits.statements, max(1, self.limits.statements - 1)
        self.execution, self.planning = FairSemaphore(most, most_of_tenant), FairSemaphore(most, most_of_tenant)
        """Of statements that run, and of those that are prepared. One that runs may have to be planned again."""
        self.cached: LRUCache[str, pa.Table] = LRUCache(BYTES_CACHED, getsizeof=table_size)
        self.results: LRUCache[str, _Cached] = LRUCache(RESULT_BYTES, getsizeof=lambda each: each.size)
        self.shared: SharedRuns[QueryResult] = SharedRuns()
        self.held = ResultMemory(self.limits.held_bytes)
        self._columns: LRUCache[Hashable, Sequence[Column]] = LRUCache(STATEMENTS_CACHED)
        self._needed: LRUCache[Hashable, Sequence[Needed]] = LRUCache(STATEMENTS_CACHED)
        self._statements: LRUCache[str, Statement] = LRUCache(STATEMENTS_CACHED)
        self._plans: LRUCache[Hashable, tuple[Query, Relations, Plan]] = LRUCache(STATEMENTS_CACHED)
        self._threads = ThreadPoolExecutor(2 * most, thread_name_prefix="sql")
        self.sandboxes = Sandboxes(self.limits.sandbox, MACROS)
        self._is_closed = False
        self.stuck = asyncio.Event()
        """Set when a thread has not ended for so long after it was interrupted that it probably never will."""

    def open(self, caller: Caller) -> "Session":
        """A session that reads what the caller may see, and nothing else."""
        return Session(self, caller)

    def close(self) -> None:
        """Release all databases and threads, and wait for no thread any more. Close the sessions first."""
        self._is_closed = True
        self.sandboxes.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def relieve(self) -> None:
        """Release databases that nothing uses, and what is cached."""
        self.sandboxes.close()
        self.cached.clear()
        self.results.clear()
        gc.collect()

    async def statement(self, sql: str, tenant: str | None) -> Statement:
        """The statement of a text; do not change it. A long one is read in a thread, so that other sessions go on."""
        if len(sql) > SHORT:
            return await self.in_planning_slot(tenant, partial(read, sql))
        known = self._statements.get(sql)
        if known is None:
            known = self._statements[sql] = read(sql)
        return known

    async def plan(
        self, statement: Query, relations: Relations, of: Hashable, find: Callable[[], Awaitable[tuple[Plan, bool]]]
    ) -> Plan:
        """The plan of a statement, made unless it is remembered.

        Args:
            statement: what is planned.
            relations: the tables that it may read.
            of: all else that the plan depends on, except the time.
            find: makes the plan, and says whether it depends on the time.
        """
        key = id(statement), id(relations), of
        if (known := self._plans.get(key)) is not None:
            return known[-1]
        found, depends_on_time = await find()
        if not depends_on_time and len(found.sql) <= SHORT:
            self._plans[key] = statement, relations, found  # while they are kept, nothing else has their ids
        return found

    async def columns(
        self, sql: str, of: Hashable, find: Callable[[], Awaitable[Sequence[Column]]]
    ) -> Sequence[Column]:
        """The columns of a query. `of`: all else that they depend on."""
        return await _remembered(self._columns, sql, of, find)

    async def needed(self, sql: str, of: Hashable, find: Callable[[], Awaitable[Sequence[Needed]]]) -> Sequence[Needed]:
        """What a query that was checked reads of its tables. `sql`: for DuckDB; `of`: all else that this depends on."""
        return await _remembered(self._needed, sql, of, find)

    async def in_planning_slot(self, tenant: str | None, call: Callable[[], Found]) -> Found:
        """Call something that reads or plans a statement, in a thread and in a planning slot of the tenant.

        It cannot be interrupted: a caller that is cancelled keeps the slot until it ends.
        """
        async with self.planning.hold(tenant):
            return await self.in_thread(call, lambda: None)

    async def in_thread(self, call: Callable[[], Found], interrupt: Callable[[], None]) -> Found:
        """Call something that blocks. If the caller is cancelled meanwhile, it is interrupted until it ends.

        However often the caller is cancelled, this ends when the thread is free again, or `close` was called. A call
        that no thread has begun ends at once.
        """
        submitted = self._threads.submit(call)
        running = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if submitted.cancel():
                raise
            interrupted_at = time.monotonic()
            while not running.done():
                if self._is_closed:
                    raise
                interrupt()
                if time.monotonic() - interrupted_at > STUCK_SECONDS:
                    self.stuck.set()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running], timeout=WAIT_SECONDS)
            with suppress(SqlStateError):
                running.result()
            raise


class Session:
    """The statements of one connection. One is run at a time; `interrupt` may be called meanwhile."""

    def __init__(self, sessions: Sessions, caller: Caller, settings: SessionSettings | None = None) -> None:
        """Use `Sessions`."""
        self._sessions, self._caller = sessions, caller
        self._user = caller.tenant or caller.visibility_scope
        self._settings = settings or SessionSettings(self._user)
        self._transaction: Transaction = "idle"
        self._began: datetime | None = None
        self._snapshot: Snapshot | None = None
        self._running: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        self._cursors: dict[str, Cursor] = {}

    @property
    def transaction(self) -> Transaction:
        """`idle`, `open`, or `failed` after an error inside a transaction."""
        return self._transaction

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which instants are shown as text."""
        return self._settings.zone

    def hold(self, size: int) -> Held:
        """Count memory that the connection holds for its client. SqlStateError 53200."""
        return self._sessions.held.hold(self._user, size)

    def split(self, sql: str) -> Sequence[str]:
        """The statements of a text, without empty ones and comments. SqlStateError 42601 if it cannot be read."""
        return split(sql)

    def interrupt(self) -> None:
        """Let the statement that runs now fail with 57014, if there is one."""
        if self._running is not None:
            self._is_interrupted = True
            self._running.cancel()

    def close(self) -> None:
        """Free what the session holds. Nothing runs any more."""
        self._snapshot = None
        self._cursors.clear()

    def cursor_columns(self, name: str) -> Sequence[Column] | None:
        """The columns of a cursor; None if there is none of this name."""
        cursor = self._cursors.get(name)
        return cursor.columns if cursor else None

    async def prepare(self, sql: str, parameter_types: Sequence[SqlType]) -> Prepared:
        """The types of the parameters and columns of a statement, without running it.

        Args:
            sql: one statement.
            parameter_types: what the client says; it may say nothing of the last ones, and UNKNOWN of any.

        Raises:
            SqlStateError: the statement cannot be answered, takes too long, or was interrupted (57014).
        """
        return await self._run_one(lambda: self._prepared(sql, parameter_types))

    async def _prepared(self, sql: str, parameter_types: Sequence[SqlType]) -> Prepared:
        statement = await self._sessions.statement(sql, self._caller.tenant)
        if isinstance(statement, Show):
            return Prepared(sql, (), _show_columns(statement))
        if isinstance(statement, Fetch) and not statement.moves:
            self._refuse_failed()
            return Prepared(sql, (), self._cursor(statement.name).columns)
        if not isinstance(statement, Query | Declare):
            return Prepared(sql, (), None)
        self._refuse_failed()
        if isinstance(statement, Query) and statement.explains:
            return Prepared(sql, (), _PLAN_COLUMNS)
        query = statement.query if isinstance(statement, Declare) else statement
        snapshot = await self._read_snapshot()
        relations = self._sessions.sources.relations(snapshot.stores)
        types = _types_of_parameters(query.expression, parameter_types, relations)
        if isinstance(statement, Declare):
            return Prepared(sql, types, None)
        of = tuple(types), self._settings.get(TIMEZONE), id(relations)
        described = partial(self._described, query, types, snapshot, relations)
        return Prepared(sql, types, await self._sessions.columns(sql, of, described))

    async def _described(
        self, query: Query, types: Sequence[SqlType], snapshot: Snapshot, relations: Relations
    ) -> Sequence[Column]:
        """The columns of a query, without running it."""
        planned, _ = await self._plan(query.expression, None, types, snapshot, relations)

        def describe(sandbox: Sandbox) -> Sequence[Column]:
            check(sandbox.serialized(planned.sql), [use.name for use in planned.uses], relations.macros)
            with _known_columns(planned), sandbox.holding({use.name: use.empty for use in planned.uses}):
                return sandbox.describe(planned.sql)

        async with self._sessions.planning.hold(self._caller.tenant):
            return await self._in_sandbox(describe)

    async def execute(
        self,
        sql: str,
        parameters: Sequence[SqlValue] = (),
        types: Sequence[SqlType] = (),
    ) -> QueryResult:
        """Run one statement.

        Args:
            sql: the statement.
            parameters: the values of `$1`, `$2`, ...
            types: their types, as the statement was prepared.

        Raises:
            SqlStateError: it cannot be answered, takes too long, or was interrupted (57014).
        """
        return await self._run_one(lambda: self._executed(sql, Parameters(parameters, types)))

    async def _run_one(self, work: Callable[[], Awaitable[Found]]) -> Found:
        """Do something that `interrupt` ends, and the time that a statement may take."""
        self._running = running = asyncio.ensure_future(self._in_time(work))
        try:
            return await running
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise
            canceled = SqlStateError("57014", "The statement was canceled as its client asked.")
            raise self._failed(canceled) from None
        except SqlStateError as error:
            self._failed(error)
            raise
        except GalateaError as error:
            raise self._failed(error) from error
        except Exception:  # a bug of ours: nothing that was read before is to be relied on
            self._transaction = "failed" if self._transaction == "open" else self._transaction
            raise
        finally:
            self._running, self._is_interrupted = None, False
            del running  # its error would hold this frame, and that the rows of a result

    async def _in_time(self, work: Callable[[], Awaitable[Found]]) -> Found:
        seconds = self._settings.seconds(self._sessions.limits.seconds)
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except TimeoutError as error:
            message = f"The statement took longer than {seconds:g} seconds."
            raise SqlStateError("57014", message, "Filter by store and day, or aggregate before you join.") from error

    def _failed(self, error: SqlStateError | GalateaError) -> SqlStateError:
        """The error that the client gets. An open transaction fails."""
        if self._transaction == "open":
            self._transaction = "failed"
        return error if isinstance(error, SqlStateError) else _sql_error(error)

    async def _executed(self, sql: str, parameters: Parameters) -> QueryResult:
        statement = await self._sessions.statement(sql, self._caller.tenant)
        if isinstance(statement, Control):
            return self._control(statement)
        self._refuse_failed()
        if not isinstance(statement, Query | Declare):
            return self._answered_at_once(statement)
        if isinstance(statement, Declare):
            return await self._declare(sql, statement, parameters)
        return await self._answered(statement, parameters)

    def _refuse_failed(self) -> None:
        if self._transaction == "failed":
            message = "The transaction has failed: statements are ignored until it ends."
            raise SqlStateError("25P02", message, "Send ROLLBACK.")

    def _control(self, control: Control) -> QueryResult:
        tag = "ROLLBACK" if control.action is Action.ROLLBACK_TO else control.action.value
        if control.action in (Action.SAVEPOINT, Action.RELEASE, Action.ROLLBACK_TO):
            if self._transaction == "idle":
                raise SqlStateError("25P01", f"{tag} needs a transaction.", "Send BEGIN first.")
            if control.action is Action.ROLLBACK_TO:
                self._settings.back_to(control.name)
                self._transaction = "open"
            self._refuse_failed()
            if control.action is Action.SAVEPOINT:
                self._settings.savepoint(control.name)
            if control.action is Action.RELEASE:
                self._settings.release(control.name)
        elif control.action is Action.BEGIN:
            self._refuse_failed()
            if self._transaction == "idle":
                self._transaction, self._began = "open", self._sessions.now()
                self._settings.begin()
        else:
            tag = "ROLLBACK" if self._transaction == "failed" else tag
            self._transaction, self._began, self._snapshot = "idle", None, None
            self._settings.end(is_committed=tag != "ROLLBACK")
            self._end_cursors(is_committed=tag != "ROLLBACK")
        return QueryResult(tag)

    def _answered_at_once(self, statement: Setting | NoOperation | Show | Fetch | CloseCursor) -> QueryResult:
        """The result of a statement that reads no table."""
        if isinstance(statement, Fetch):
            return self._cursor(statement.name).fetch(statement)
        if isinstance(statement, CloseCursor):
            return self._close_cursor(statement.name)
        if isinstance(statement, Show):
            return self._shown(statement)
        if isinstance(statement, Setting):
            self._settings.set(statement.name, statement.value, is_local=statement.is_local)
            if statement.tag == "DISCARD ALL":
                self._cursors.clear()
        return QueryResult(statement.tag)

    async def _declare(self, sql: str, statement: Declare, parameters: Parameters) -> QueryResult:
        """Run the query of a cursor, and keep its result."""
        declared, most = statement.cursor, self._sessions.limits.sandbox.rows
        if self._transaction == "idle" and not declared.holds:
            hint = "Send BEGIN first, or declare it WITH HOLD."
            raise SqlStateError("25P01", "DECLARE CURSOR needs a transaction.", hint)
        require_short_name(declared.name)
        if declared.name in self._cursors:
            raise SqlStateError("42P03", f'The cursor "{declared.name}" exists already.', "Close it first.")
        result = await self._answered(statement.query, parameters)
        held = sum(len(each.rows) for each in self._cursors.values()) + len(result.rows)
        if held > most or len(self._cursors) >= MOST_CURSORS:
            del result  # the traceback would hold it
            message = f"The cursors of a session are at most {MOST_CURSORS}, with {most:,} rows together."
            raise SqlStateError("54000", message, "Close those that are no longer needed, or choose fewer rows.")
        is_new = self._transaction == "open"
        columns = result.columns or ()
        counted = self.hold(getsizeof(sql))
        cursor = Cursor(columns, result.rows, sql, declared.scrolls, declared.holds, is_new, counted)
        self._cursors[declared.name] = cursor
        return QueryResult("DECLARE CURSOR")

    def _cursor(self, name: str) -> Cursor:
        if name not in self._cursors:
            raise missing(name)
        return self._cursors[name]

    def _close_cursor(self, name: str | None) -> QueryResult:
        if name is None:
            self._cursors.clear()
            return QueryResult("CLOSE CURSOR ALL")
        self._cursor(name)
        del self._cursors[name]
        return QueryResult("CLOSE CURSOR")

    def _end_cursors(self, *, is_committed: bool) -> None:
        """Close the cursors that end with the transaction."""
        self._cursors = {
            name: each for name, each in self._cursors.items() if each.holds and (is_committed or not each.is_new)
        }
        for each in self._cursors.values():
            each.is_new = False

    def _shown(self, show: Show) -> QueryResult:
        if show.name == "all":
            rows = [(name, value, "") for name, value in sorted(self._settings.values.items())]
            return QueryResult("SHOW", _show_columns(show), rows)
        return QueryResult("SHOW", _show_columns(show), [(self._settings.get(show.name),)])

    async def _read_snapshot(self) -> Snapshot:
        """The snapshot of the transaction, or one for this statement alone."""
        demand = self._settings.demand
        if self._snapshot is not None:
            if demand is not None and demand != self._snapshot.demand:
                message = f'The transaction has read its snapshot before "{AT_LEAST}" was set.'
                raise SqlStateError("25001", message, "Set it before the first query of a transaction.")
            await self._refuse_lost_stores(self._snapshot)
            return self._snapshot
        queries = self._sessions.sources.queries
        version, speed_failure = await queries.current_version(self._caller, demand)
        _, stores = await queries.stores.all()
        visible = {id_: store for id_, store in stores.items() if self._caller.sees(store)}
        snapshot = Snapshot(version, visible, self._began or self._sessions.now(), speed_failure, demand=demand)
        if self._transaction == "open":
            cells, has_speed = queries.merged_cells, version.snapshot.has_speed
            snapshot.settled = await cells.settled(version.snapshot) if has_speed else cells
            self._snapshot = snapshot
        return snapshot

    async def _plan(
        self,
        query: exp.Query,
        values: Sequence[SqlValue] | None,
        types: Sequence[SqlType],
        snapshot: Snapshot,
        relations: Relations,
    ) -> tuple[Plan, bool]:
        """The plan of a query, and whether it depends on the time."""
        clock = Clock(snapshot.now)
        session = SessionValues(self._user, self._settings.zone, clock, self._settings.values, relations.oids)

        def planned() -> tuple[Plan, bool]:
            try:
                named = with_column_names(with_parameters(query, values, types))
                typed = as_in_postgresql(named, relations.type_of_column)
                return plan(translated(typed, session), relations.tables), clock.is_read
            except RecursionError as error:
                raise too_deep() from error

        return await self._sessions.in_planning_slot(self._caller.tenant, planned)

    async def _answered(self, statement: Query, parameters: Parameters) -> QueryResult:
        """The result of a query. Equal ones that wait share a run, which reads what is newest when it begins."""
        planned, snapshot, relations = await self._planned_now(statement, parameters)
        key = self._key_of_result(statement, planned, snapshot)
        if key is None:
            async with self._sessions.execution.hold(self._caller.tenant):
                return await self._run(statement, planned, snapshot, relations)
        if (known := self._sessions.results.get(key)) is not None:
            return known.result
        same = self._caller.visibility_scope, id(statement), self._asked(parameters)
        other = Session(self._sessions, self._caller, self._settings.copy())  # this one may go on before the run ends

        async def run(*, waited: bool) -> QueryResult:
            async with self._sessions.execution.hold(self._caller.tenant):
                found = await other._planned_now(statement, parameters) if waited else (planned, snapshot, relations)
                result = await other._run(statement, *found)
            if (key := other._key_of_result(statement, *found[:2])) and len(result.rows) <= ROWS_CACHED:
                keep(self._sessions.results, key, _Cached(result))
            return result

        return await self._sessions.shared.read(same, run)

    async def _planned_now(self, statement: Query, parameters: Parameters) -> tuple[Plan, Snapshot, Relations]:
        snapshot = await self._read_snapshot()
        relations = self._sessions.sources.relations(snapshot.stores)
        types = _types_of_parameters(statement.expression, parameters.types, relations)
        find = partial(self._plan, statement.expression, parameters.values, types, snapshot, relations)
        planned = await self._sessions.plan(statement, relations, self._asked(parameters), find)
        _refuse_without_speed(planned, snapshot)
        return planned, snapshot, relations

    def _asked(self, parameters: Parameters) -> Hashable:
        """What a statement depends on beside its text and what it reads."""
        return self._user, repr(parameters), tuple(sorted(self._settings.values.items()))

    def _key_of_result(self, statement: Query, planned: Plan, snapshot: Snapshot) -> str | None:
        """All that a result depends on; None if there is more, or an equal statement can have another result."""
        is_of_version = planned.uses and all(use.table.is_of_version for use in planned.uses)
        if self._transaction != "idle" or statement.explains or not is_of_version or is_volatile(planned.query):
            return None
        tables = tuple((id(use.table), use.columns) for use in planned.uses)
        zone = self._settings.get(TIMEZONE)
        return digest(self._caller.visibility_scope, snapshot.version.key, planned.sql, tables, zone)

    async def _run(self, statement: Query, planned: Plan, snapshot: Snapshot, relations: Relations) -> QueryResult:
        needed = await self._needed(planned, relations)
        if statement.explains:
            return await self._explained(planned, needed)
        held = await self._read_tables(planned, needed, snapshot)

        def query(sandbox: Sandbox) -> QueryResult:
            with _known_columns(planned), sandbox.holding(held):
                found = sandbox.query(planned.sql, self._sessions.held.rows(self._user))
            return QueryResult(f"SELECT {len(found.rows)}", found.columns, found.rows)

        return await self._in_sandbox(query)

    async def _needed(self, planned: Plan, relations: Relations) -> Sequence[Needed]:
        """What a query reads of its tables, once it is found to read and call nothing else."""

        def reads(sandbox: Sandbox) -> Sequence[Needed]:
            check(sandbox.serialized(planned.sql), [use.name for use in planned.uses], relations.macros)
            return planned.reads(lambda expression: _constant(sandbox, expression))

        of = self._settings.get(TIMEZONE), tuple((id(use.table), use.columns) for use in planned.uses)
        return await self._sessions.needed(planned.sql, of, lambda: self._in_sandbox(reads))

    async def _read_tables(self, planned: Plan, needed: Sequence[Needed], snapshot: Snapshot) -> Mapping[str, pa.Table]:
        """What is needed of each table, by its name in the sandbox."""
        budget = RowBudget(self._sessions.limits.source_rows)
        cells = snapshot.settled
        if cells is None:
            views = [view for use, each in zip(planned.uses, needed, strict=True) for view in use.table.views(each)]
            cells = await self._sessions.sources.queries.merged_cells.for_views(snapshot.version.snapshot, views)
        cells = cells.for_one_answer()
        reading = Reading(
            self._caller,
            snapshot.version,
            snapshot.stores,
            cells,
            snapshot.now,
            snapshot.masters,
            budget,
            self._settings.values,
            self._cursors,
        )
        try:
            held = {
                use.name: await self._table(use.table, each, reading, snapshot)
                for use, each in zip(planned.uses, needed, strict=True)
            }
        except asyncio.CancelledError:
            budget.stop()  # ends what still runs in a thread
            raise
        except CellMissingError:
            await self._refuse_ended(snapshot)
            raise
        await self._refuse_ended(snapshot)
        return held

    async def _refuse_lost_stores(self, snapshot: Snapshot) -> None:
        """Let a transaction fail with 72000 if a store of its snapshot was removed, or given to another tenant."""
        registry, stores = await self._sessions.sources.queries.stores.all()
        if registry == snapshot.version.registry:
            return
        for id_ in snapshot.stores:
            if id_ not in stores or not self._caller.sees(stores[id_]):
                message = f"The store `{id_}` of the transaction's snapshot was removed or belongs to another tenant."
                raise SqlStateError("72000", message, "Send ROLLBACK; the next transaction reads the newest state.")

    async def _refuse_ended(self, snapshot: Snapshot) -> None:
        """Let a transaction fail with 72000 if cells or rows of its snapshot may be gone."""
        if snapshot.settled is None:
            return
        try:
            await self._sessions.sources.queries.refuse_ended(snapshot.version.snapshot)
        except (PublicationCollectedError, SpeedExpiredError) as error:
            message = f"The snapshot of the transaction has ended. {error.message}"
            raise SqlStateError(
                "72000", message, "Send ROLLBACK; the next transaction reads the newest state."
            ) from error

    async def _explained(self, planned: Plan, needed: Sequence[Needed]) -> QueryResult:
        def explain(sandbox: Sandbox) -> Sequence[str]:
            with _known_columns(planned), sandbox.holding({use.name: use.empty for use in planned.uses}):
                return sandbox.explain(planned.sql)

        lines = [
            f"Read {use.table.name}: {_bounds_in_words(each)}" for use, each in zip(planned.uses, needed, strict=True)
        ]
        lines += await self._in_sandbox(explain)
        return QueryResult("EXPLAIN", _PLAN_COLUMNS, [(line,) for line in lines])

    async def _table(self, table: Table, needed: Needed, reading: Reading, snapshot: Snapshot) -> pa.Table:
        """The rows that are needed, as they were read before in this transaction or of an equal version."""
        key = digest(table.name, needed.key, reading.cells.last_micro_batch)
        shared = digest(self._caller.visibility_scope, snapshot.version.key, key)
        known = snapshot.tables.get(key)
        if known is None and table.is_of_version and self._transaction == "idle":
            known = self._sessions.cached.get(shared)
        if known is None:
            known = await table.read(reading, needed)
            if table.is_of_version and self._transaction == "idle":
                keep(self._sessions.cached, shared, known)
        keep(snapshot.tables, key, known)
        return known

    async def _in_sandbox(self, call: Callable[[Sandbox], Found]) -> Found:
        scope, zone = self._caller.visibility_scope, self._settings.get(TIMEZONE)
        async with self._sessions.sandboxes.of(scope, zone, self._sessions.in_thread) as sandbox:
            return await self._sessions.in_thread(lambda: call(sandbox), sandbox.interrupt)


_PLAN_COLUMNS = (Column("QUERY PLAN", SqlType.TEXT),)
_NOT_YET = "57P03"
WAIT_FOR_SPEED = "Try again in a moment, in a new transaction. `galatea status` shows whether `speed` is running."


async def _remembered(
    cache: LRUCache[Hashable, Found], sql: str, of: Hashable, find: Callable[[], Awaitable[Found]]
) -> Found:
    """What was found for a text before, unless it is long."""
    if len(sql) > SHORT:
        return await find()
    known = cache.get((sql, of))
    if known is None:
        known = cache[sql, of] = await find()
    return known


def _show_columns(show: Show) -> Sequence[Column]:
    names = ("name", "setting", "description") if show.name == "all" else (show.name,)
    return [Column(name, SqlType.TEXT) for name in names]


@contextmanager
def _known_columns(planned: Plan) -> Iterator[None]:
    """Say of a column that is not there which ones of the tables of the statement could be meant."""
    try:
        yield
    except UndefinedColumnError as error:
        named = [use for use in planned.uses if error.table.lower() in ("", use.node.alias_or_name.lower())]
        if error.hint is not None or not named:
            raise
        columns = [each.name for use in named for each in use.table.columns]
        lists = f"`\\d {named[0].table.name}` in psql lists the columns, and so does `information_schema.columns`."
        hint = did_you_mean(error.column, columns, lists)
        raise UndefinedColumnError(error.column, error.table, hint) from error


def _refuse_without_speed(planned: Plan, snapshot: Snapshot) -> None:
    """Refuse a query whose tables need the speed layer, if the snapshot lacks it; catalogs and lists do not."""
    failure = snapshot.speed_failure
    named = next((use.table.name for use in planned.uses if use.table.reads_speed), None)
    if failure is None or named is None:
        return
    if isinstance(failure, SpeedUnavailableError):
        raise SqlStateError(_NOT_YET, f'The table "{named}" cannot be read yet. {failure.message}', WAIT_FOR_SPEED)
    raise _sql_error(failure) from failure


def _bounds_in_words(needed: Needed) -> str:
    """What is read of a table, in words."""
    first, last = needed.span
    parts = [f"columns {', '.join(needed.columns)}"]
    parts += [f"from {first}"] if first else []
    parts += [f"to {last}"] if last else []
    parts += [f"{name} {', '.join(sorted(values)) or 'none'}" for name, values in sorted(needed.values.items())]
    return "; ".join(parts)


def _constant(sandbox: Sandbox, expression: exp.Expr) -> Constant:
    return Constant(*sandbox.constant(duckdb_sql(expression)))


def _types_of_parameters(query: exp.Query, given: Sequence[SqlType], relations: Relations) -> list[SqlType]:
    """The type of each parameter: what the client says, what it is cast to or compared with, or a text."""
    nodes = list(query.find_all(exp.Parameter))
    count = max([len(given), *(parameter_number(node) for node in nodes)])
    if count > MOST_PARAMETERS:
        raise SqlStateError("54000", f"More than {MOST_PARAMETERS} parameters are not read.", "Use fewer.")
    types = [*given, *[SqlType.UNKNOWN] * (count - len(given))]
    named, known = {each.name.lower() for each in query.find_all(exp.Table)}, dict[int, SqlType | None]()
    for node in nodes:
        place = parameter_number(node) - 1
        if types[place] is SqlType.UNKNOWN and (inferred := relations.type_of_parameter(node, named, known)):
            types[place] = inferred
    return [SqlType.TEXT if each is SqlType.UNKNOWN else each for each in types]


def _sql_error(error: GalateaError) -> SqlStateError:
    """An error of the platform as PostgreSQL would name it."""
    if isinstance(error, NotYetError):
        code = _NOT_YET
    elif isinstance(error, DependencyUnavailableError):
        code = "58000"
    elif isinstance(error, RangeTooLongError):
        code = "54000"
    else:
        code = "55000" if isinstance(error, OperatorError) else "22023"
    return SqlStateError(code, error.message, error.do)
