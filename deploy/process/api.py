"""The REST interface as a process of the local stack: `python -m deploy.process.api`. Listens on this machine only."""

import asyncio
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import uvicorn
from prometheus_client import REGISTRY

from deploy.airflow.deployed import airflow_of
from deploy.cassandra import session_of
from deploy.nodes import LOOPBACK
from deploy.process.edge import Process
from deploy.process.operating import AirflowElseRunner, operations_of, readers_of, runner_of
from deploy.process.serving_metrics import ServingMetrics
from deploy.recomputing.rest_rollback import RestRollback
from deploy.settings import Settings
from deploy.stack import board
from master_dataset.courier import Courier, courier_settings
from serving_layer.answers import Answers, Clocks
from serving_layer.api.app import create_app
from serving_layer.catalogue import Catalogue
from serving_layer.freshness import Freshness
from serving_layer.ingest import Ingest
from serving_layer.keys.gate import Gate
from serving_layer.keys.known_keys import KnownKeys
from serving_layer.keys.rates import Rates
from serving_layer.tables import Bridge, KeyTables, WatchTables
from views import registered_views
from views.metrics import registered_metrics

if TYPE_CHECKING:
    from serving_layer.live import Live

IDLE_SECONDS = 30
RECENT_SECONDS = 0.05
"""How long before a question what its answer rests on may have been read. `Cache-Control: no-cache` asks for newer."""
HEADER_BYTES = 16_384


def run(process: Process, settings: Settings) -> None:
    """Answer until the process is told to stop."""
    readers = readers_of(settings)
    catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
    now = partial(datetime.now, UTC)
    clocks = Clocks(time.monotonic, now)
    answers = Answers(readers, catalogue, settings.speed_ttl, clocks, recent_seconds=RECENT_SECONDS)
    freshness = Freshness(answers, WatchTables(Bridge(session_of(settings.cassandra_address))), settings.speed_ttl, now)
    runner = runner_of(settings)
    trigger = AirflowElseRunner(lambda: airflow_of(settings), runner)
    operations = operations_of(settings, answers, trigger, RestRollback(settings))
    tables = KeyTables(Bridge(session_of(settings.cassandra_address)))
    own = operator_key(settings.home / "operator.key")
    keys = KnownKeys(tables, own, settings.anonymous_tenant, time.monotonic, now)
    rates = Rates(settings.reads_per_second, settings.ingests_per_second)
    courier = Courier(courier_settings(settings.kafka_bootstrap))
    ingest = Ingest(courier, answers.stores.all, lambda: time.time_ns() // 1000)
    app = create_app(answers, freshness, operations, Gate(keys, rates), ingest)
    config = uvicorn.Config(
        app, LOOPBACK, settings.api_port, log_level="warning", access_log=False, server_header=False,
        timeout_keep_alive=IDLE_SECONDS, proxy_headers=False, h11_max_incomplete_event_size=HEADER_BYTES,
    )  # fmt: skip

    def listening() -> None:
        REGISTRY.register(ServingMetrics(freshness, asyncio.get_running_loop(), partial(board.read, settings.home)))
        process.show_metrics(settings.api_metrics_port)
        runner.start()
        process.ready()

    live: Live = app.state.live

    def ended() -> None:
        runner.stop()
        courier.close()

    Server(config, listening, live.close, ended).run()


class Server(uvicorn.Server):
    """Says when it listens, and when it no longer does."""

    def __init__(
        self, config: uvicorn.Config, listening: Callable[[], None], ending: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:  # fmt: skip
        """`listening` is called once, when questions are taken, `ending` when no more are, `ended` after the last."""
        super().__init__(config)
        self._listening, self._ending, self._ended = listening, ending, ended

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._listening()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Answer what was asked, then say so."""
        self._ending()
        await super().shutdown(sockets)
        self._ended()


def operator_key(path: Path) -> str:
    """The key of this stack, made when it is first needed. Only its owner may read it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path.read_text().strip()


if __name__ == "__main__":
    Process("api").main(run)
