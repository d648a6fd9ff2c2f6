"""A process of the REST interface: `python -m deploy.services.api [NAME]`. NAME: `api`, `api-2` and so on."""

import asyncio
import errno
import shutil
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from socket import socket
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import structlog
from prometheus_client import REGISTRY

from deploy.airflow.client import airflow_of
from deploy.audit import Audit
from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.local.nodes import LOOPBACK, nodes_of
from deploy.local.records import read_states
from deploy.process import freeze_startup_objects, switch_threads_often
from deploy.prompt_correction import PromptCorrectionThread, prompt_correction_of
from deploy.recompute_runner import RestRollback
from deploy.secret_files import operator_key, server_certificate
from deploy.secrets_key import secrets_key_of
from deploy.services.api_metrics import PressureMetrics, ServingMetrics, pressures
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.wiring import (
    AirflowElseRunner,
    alert_service_of,
    at_least_of,
    floor_plans_of,
    operations_of,
    products_of,
    readers_of,
    runner_of,
    saved_service_of,
    target_service_of,
    targets_of,
    topic_logs_of,
    waiting_rule_of,
)
from master_dataset.errors import OperatorError
from master_dataset.kafka.producer import AsyncProducer, async_producer_settings
from serving_layer.app import create_app
from serving_layer.health.freshness import FreshnessService
from serving_layer.http.hosts import AllowedHosts
from serving_layer.http.server import Server, ServerConfig, bound_sockets
from serving_layer.ingest.disk_space import DiskSpace
from serving_layer.ingest.ingest import IngestService
from serving_layer.ingest.tokens import TokenWriter
from serving_layer.keys.authenticator import Authenticator, ConcurrencyLimiter, KeyCache
from serving_layer.keys.rates import ByteLimiter, RateExchange, RateLimiter
from serving_layer.pages.sessions import Sessions
from serving_layer.query.catalogue import Catalogue
from serving_layer.service import RECENT_SECONDS, Clocks, QueryService
from serving_layer.tables import AsyncSession, KeyTables, RateTables, SessionTables, WatchTables
from views import registered_views
from views.metrics import registered_metrics

if TYPE_CHECKING:
    from fastapi import FastAPI

    from deploy.sections import ApiSettings
    from serving_layer.live import Live

log = structlog.get_logger()

WARM_UP_SECONDS = 3.0
"""How much later requests may be accepted so that the first ones are answered as quickly as later ones."""
USUAL_PATHS = tuple(f"/v1/metrics/net_sales?range=last_7_days&{by}" for by in ("by=total", "grain=day"))
"""Of all stores together, and of the first ones."""


def run(process: Process, settings: Settings) -> None:
    """Answer requests until the process is stopped."""
    refuse_unfinished_restore(session_of(settings.cassandra.address))
    readers = readers_of(settings)
    catalogue = Catalogue(
        {view.name: view for view in registered_views()}, registered_metrics(), settings.limits.ranges
    )
    now = partial(datetime.now, UTC)
    clocks = Clocks(time.monotonic, now)
    products = products_of(settings)
    logs = topic_logs_of(settings)
    answers = QueryService(
        readers,
        catalogue,
        products.reader,
        settings.speed.ttl,
        clocks,
        recent_seconds=RECENT_SECONDS,
        targets=targets_of(settings),
        at_least=at_least_of(settings, logs),
    )
    freshness = FreshnessService(
        answers, WatchTables(AsyncSession(session_of(settings.cassandra.address))), settings.speed.ttl, now, now()
    )
    runner = runner_of(settings, process.name)
    trigger = AirflowElseRunner(lambda: airflow_of(settings), runner)
    operations = operations_of(settings, answers, trigger, RestRollback(settings))
    producer = AsyncProducer(async_producer_settings(settings.kafka.connection), limits=settings.limits.producer_limits)
    disk = disk_room(settings)
    ingest = IngestService(
        producer,
        answers.stores.all,
        lambda: time.time_ns() // 1000,
        settings.limits.request_limits,
        disk.refuse_low,
        tokens=TokenWriter(logs, waiting_rule_of(settings)),
    )
    authenticator = authenticator_of(settings)
    say_who_reads(settings.api)
    shared = AsyncSession(session_of(settings.cassandra.address))
    exchange = RateExchange(authenticator.rates, RateTables(shared), uuid4().hex)
    app = create_app(
        answers,
        freshness,
        operations,
        authenticator,
        ingest,
        alerting=alert_service_of(settings),
        sessions=Sessions(SessionTables(shared), time.monotonic, now),
        products=products,
        targets=target_service_of(settings, answers),
        plans=floor_plans_of(settings),
        saved_service=saved_service_of(settings),
        limits=settings.limits.request_limits,
        cors_origins=settings.api.allowed_origins,
        hosts=AllowedHosts.of(settings.api.served_names),
        audit=Audit(settings.home).request,
    )
    config = ServerConfig(
        app,
        settings.limits.connection_limits,
        server_certificate(settings.tls),
        settings.api.trusted_proxies,
        host=settings.api.host,
        port=settings.api.port,
    )

    correction = PromptCorrectionThread(prompt_correction_of(settings, runner))

    def listening() -> None:
        REGISTRY.register(ServingMetrics(freshness, asyncio.get_running_loop(), partial(read_states, settings.home)))
        REGISTRY.register(PressureMetrics(pressures(app, ingest, producer, config.open, disk)))
        process.show_metrics(settings.api.metrics_port_of(process.name))
        runner.start()
        if settings.batch.prompt_correction:
            correction.start()
        process.ready()

    exchanging: list[asyncio.Task[None]] = []

    async def starting() -> None:
        switch_threads_often()
        exchanging.append(asyncio.ensure_future(exchange.run_forever()))
        exchanging[0].add_done_callback(log_failure)
        await answers.warm_up(WARM_UP_SECONDS)
        await ask_itself(app, operator_key(settings.home / "operator.key"))
        freeze_startup_objects()

    live: Live = app.state.live

    def ended() -> None:
        correction.stop()
        runner.stop()
        producer.close()

    server = Server(config, listening, starting=starting, ending=live.close, ended=ended)
    server.run(_sockets(settings))


def _sockets(settings: Settings) -> list[socket]:
    host, port = settings.api.host, settings.api.port
    try:
        return bound_sockets(host, port, is_shared=settings.api.processes > 1)
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise  # such as a name that cannot be resolved yet
        message = f"REST cannot listen on `{host}:{port}`: {error.strerror or error}"
        raise OperatorError(message, do="end what uses it, or set GALATEA_API_PORT") from error


def say_who_reads(api: "ApiSettings") -> None:
    """Log whether anything can be read without a key, and under which names the interface is served."""
    names = ["localhost", *api.served_names]
    if api.tenant_without_key:
        log.info("api.readable_without_key", tenant=api.tenant_without_key, by="clients on this machine", names=names)
    else:
        why = f"{api.opened_by} lets others reach REST" if api.opened_by else "GALATEA_ANONYMOUS_TENANT is empty"
        log.info("api.needs_keys", reason=why, names=names)


def log_failure(exchange: "asyncio.Task[None]") -> None:
    """Log why rates are not exchanged any more, such as a right that the role in Cassandra lacks."""
    if not exchange.cancelled() and (error := exchange.exception()):
        log.error("rates.not_exchanged", exc_info=error)


async def ask_itself(app: "FastAPI", key: str) -> None:
    """Answer requests before anybody else can ask: they build what later ones find, and fail as they would."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{LOOPBACK}") as client:
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(WARM_UP_SECONDS):
                for path in USUAL_PATHS:
                    await client.get(path, headers={"Authorization": f"Bearer {key}"})


def authenticator_of(settings: Settings) -> Authenticator:
    """Build the authenticator: API keys, rate limits and concurrency limits."""
    tables = KeyTables(AsyncSession(session_of(settings.cassandra.address)), secrets_key_of(settings))
    own = operator_key(settings.home / "operator.key")
    keys = KeyCache(tables, own, settings.api.tenant_without_key, time.monotonic, partial(datetime.now, UTC))
    rates = RateLimiter(
        settings.api.reads_per_second, settings.api.ingests_per_second, settings.api.shared_reads_per_second
    )
    sent = ByteLimiter(settings.api.ingest_mb_per_minute * 1_000_000)
    return Authenticator(keys, rates, ConcurrencyLimiter(settings.limits.requests_per_key), sent=sent)


def disk_room(settings: Settings) -> DiskSpace:
    """Watch the disks of the home and of the brokers' folders in it, which may be mounted separately."""
    folders = [settings.home, *(settings.home / node.name for node in nodes_of("kafka", settings.kafka.brokers))]
    return DiskSpace(
        folders,
        settings.limits.disk_free_percent,
        settings.limits.disk_free_mb * 10**6,
        shutil.disk_usage,
        time.monotonic,
    )


if __name__ == "__main__":
    Process(*(sys.argv[1:] or ["api"])).main(run)
