"""The SQL process: `python -m deploy.services.sql`."""

import asyncio
import mmap
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn

import structlog
from prometheus_client import REGISTRY

from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.process import STREAMING_NICENESS, limit_memory, lower_priority
from deploy.secret_files import server_certificate
from deploy.services.api import authenticator_of
from deploy.services.api_metrics import Pressure, PressureMetrics
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.wiring import alert_service_of, at_least_of, corrections_of, products_of, readers_of
from serving_layer.http.server import OTHER_FILES, raise_open_file_limit
from serving_layer.query.catalogue import Catalogue
from serving_layer.service import RECENT_SECONDS, Clocks, QueryService
from serving_layer.sql.authentication import LoginService
from serving_layer.sql.conversation import ConversationLimits
from serving_layer.sql.relations import Sources
from serving_layer.sql.sandbox import Limits
from serving_layer.sql.server import PENDING, ServerLimits, SqlServer
from serving_layer.sql.session import STUCK_SECONDS, Sessions, SqlLimits
from serving_layer.tables import AsyncSession, WatchTables
from views import registered_views
from views.metrics import registered_metrics

log = structlog.get_logger()

GRACE_SECONDS = 5.0
"""How long statements may take to end at a shutdown."""
PROBE_BYTES, PROBE_SECONDS, STARVED_SECONDS = 32 * 2**20, 1.0, 30.0
"""What has to be free, how often that is checked, and after how long without it the process starts again."""


def run(process: Process, settings: Settings) -> None:
    """Answer SQL until the process is stopped."""
    refuse_unfinished_restore(session_of(settings.cassandra.address))
    limit_memory(settings.sql.process_mb)
    lower_priority(STREAMING_NICENESS)  # dashboards of BI tools wait rather than those who ask over REST
    asyncio.run(_run(process, settings))


async def _run(process: Process, settings: Settings) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    catalogue = Catalogue(
        {view.name: view for view in registered_views()}, registered_metrics(), settings.limits.ranges
    )
    now = partial(datetime.now, UTC)
    clocks = Clocks(time.monotonic, now)
    readers, products = readers_of(settings), products_of(settings).reader
    queries = QueryService(
        readers,
        catalogue,
        products,
        settings.speed.ttl,
        clocks,
        recent_seconds=RECENT_SECONDS,
        at_least=at_least_of(settings),
    )
    sources = Sources(
        queries,
        alert_service_of(settings).alerts,
        WatchTables(AsyncSession(session_of(settings.cassandra.address))),
        corrections_of(settings, readers),
        products,
    )

    async def tenants() -> Collection[str]:
        _, stores = await queries.stores.all()
        return {store.tenant for store in stores.values()}

    sessions = Sessions(sources, now, sql_limits(settings))
    certificate = server_certificate(settings.tls)
    server = SqlServer(
        sessions.open,
        LoginService(authenticator_of(settings), tenants),
        server_limits(settings),
        certificate.context if certificate else None,
    )
    raise_open_file_limit(settings.sql.connections + PENDING + OTHER_FILES)
    await server.listen(settings.sql.host, settings.sql.port)
    renewals = asyncio.create_task(certificate.follow()) if certificate else None
    REGISTRY.register(PressureMetrics(pressures(server)))
    process.show_metrics(settings.sql.metrics_port)
    process.ready()
    await _until(leaving, sessions)
    if renewals is not None:
        renewals.cancel()
    await server.close(GRACE_SECONDS)
    sessions.close()


async def await_exhaustion(relieve: Callable[[], None], seconds: float = STARVED_SECONDS) -> NoReturn:
    """Wait until nothing could be reserved for `seconds`: only a new process has memory then. MemoryError.

    Args:
        relieve: is called once, after half of the time, to give back what can be spared.
        seconds: how long.
    """
    last, is_relieved = time.monotonic(), False
    while time.monotonic() - last < seconds:
        if not is_relieved and time.monotonic() - last > seconds / 2:
            log.warning("sql.memory_low")
            relieve()
            is_relieved = True
        with suppress(OSError, MemoryError):
            mmap.mmap(-1, PROBE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            last, is_relieved = time.monotonic(), False
        await asyncio.sleep(PROBE_SECONDS)
    message = f"for {seconds:g} s there were no {PROBE_BYTES >> 20} MB left of what this process may reserve"
    raise MemoryError(message)


async def await_stuck(sessions: Sessions) -> NoReturn:
    """Wait until a statement cannot be ended, which would hold a turn of its tenant for ever. RuntimeError."""
    await sessions.stuck.wait()
    raise RuntimeError(f"a statement that was interrupted has not ended for {STUCK_SECONDS:g} s")


async def _until(leaving: asyncio.Event, sessions: Sessions) -> None:
    """Return when the process is to end. MemoryError or RuntimeError if it has to start again."""
    failures = [asyncio.ensure_future(each) for each in (await_exhaustion(sessions.relieve), await_stuck(sessions))]
    left = asyncio.ensure_future(leaving.wait())
    await asyncio.wait([left, *failures], return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    for failure in failures:
        if failure.done() and not leaving.is_set():
            sessions.close()  # so that nothing waits for a statement that cannot be ended
            failure.result()
        failure.cancel()


def server_limits(settings: Settings) -> ServerLimits:
    """Limits of connections and results."""
    own = settings.sql
    return ServerLimits(
        connections=own.connections,
        connections_per_tenant=own.connections_per_tenant,
        idle_seconds=own.idle_seconds,
        conversation=ConversationLimits(result_bytes=own.result_mb * 10**6),
    )


def sql_limits(settings: Settings) -> SqlLimits:
    """Limits of statements."""
    own = settings.sql
    return SqlLimits(
        seconds=own.statement_seconds,
        statements=own.statements,
        source_rows=own.source_rows,
        sandbox=Limits(own.memory_mb, own.result_rows, own.result_mb * 10**6),
        held_bytes=own.process_mb * 10**6 // 3,
    )


def pressures(server: SqlServer) -> list[Pressure]:
    """The gauges of the process."""
    return [
        Pressure("galatea_sql_connections", "SQL connections that are logged in.", lambda: server.connections),
        Pressure("galatea_sql_statements_running", "SQL statements that run or wait.", lambda: server.running),
    ]


if __name__ == "__main__":
    Process("sql").main(run)
