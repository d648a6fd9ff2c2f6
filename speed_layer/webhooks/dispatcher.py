"""The dispatcher of all endpoints: one consumer group for each, so that one that is down does not delay the others.

It compares the endpoints that should run with those that do, again and again, and starts and stops workers accordingly.
An endpoint that has failed for a day is suspended: its group stops, and the alerts it misses are kept as long as the
topic keeps them.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

import structlog
from confluent_kafka import KafkaException
from prometheus_client import Gauge

from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.webhooks.endpoint import Endpoint, WorkerStatus
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint, EndpointStore, RunningEndpoint, Worker
from speed_layer.webhooks.start_position import PositionLostError

log = structlog.get_logger()
RECONCILE_SECONDS = 2.0
SUSPEND_SECONDS = 24 * 3600.0
GROUP = "galatea.webhook."
FAILURES = (DependencyUnavailableError, KafkaException, OSError)
"""Errors that end a worker and may be temporary. All others end the process."""
ENDPOINTS = Gauge("galatea_webhook_endpoints", "Webhook endpoints, by state.", ("state",))
RECORDS = Gauge("galatea_webhook_lag_records", "Records left to read or deliver, for the endpoint with the most.")
SECONDS = Gauge("galatea_webhook_lag_seconds", "For how long the oldest alert has been waiting for its endpoint.")
START_SECONDS = 120.0
"""A start that takes longer is logged. Its three requests to the broker time out after 15 seconds, if they do."""
MEMORY_KB = 1024
"""What a group prefetches, in KB. At most 1,500 further records wait for their calls."""


@dataclass
class _Start:
    """A worker that is being created, since `began_at`."""

    task: asyncio.Task[None]
    began_at: float
    is_slow: bool = False


class Dispatcher:
    """Belongs to one event loop.

    A call of the Kafka client may hang forever and ignore its timeout. So each worker is created in a thread of its
    own, at most one for each endpoint, and nothing waits for it: neither other endpoints nor the end of the process.
    """

    def __init__(
        self,
        endpoints: EndpointStore,
        create_worker: Callable[[DesiredEndpoint], Worker],
        suspend_seconds: float = SUSPEND_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`create_worker` creates the worker of an endpoint. It may raise `FAILURES` and PositionLostError.

        `now`: seconds since 1970.
        """
        self._endpoints, self._create_worker, self._now = endpoints, create_worker, now
        self._suspend_seconds = suspend_seconds
        self._desired: Mapping[str, DesiredEndpoint] = {}
        self._running: dict[str, RunningEndpoint] = {}
        self._starting: dict[str, _Start] = {}

    @property
    def starting(self) -> Collection[str]:
        """The endpoints whose workers are being created."""
        return [id_ for id_, start in self._starting.items() if not start.task.done()]

    async def run(self, leaving: asyncio.Event) -> None:
        """Until `leaving` is set; then stop all workers."""
        try:
            while not leaving.is_set():
                await self.reconcile()
                try:
                    await asyncio.wait_for(leaving.wait(), RECONCILE_SECONDS)
                except TimeoutError:
                    continue
        finally:
            for start in self._starting.values():
                start.task.cancel()  # what its thread creates is not run any more
            for running in self._running.values():
                running.stop()
            await asyncio.gather(*(running.task for running in self._running.values()), return_exceptions=True)

    async def reconcile(self) -> None:
        """Start new endpoints, stop removed or changed ones, suspend those that have failed for too long.

        Waits for no endpoint. While the stored endpoints cannot be read, everything continues.
        """
        self._forget_ended()
        try:
            known = await self._endpoints.desired()
            suspended = await self._report({each.endpoint.id: each for each in known})
        except DependencyUnavailableError as error:
            log.warning("webhooks.read_failed", error=error.message)
            return
        active = [each for each in known if not each.is_suspended and each.endpoint.id not in suspended]
        self._desired = {each.endpoint.id: each for each in active}
        for running in self._running.values():
            if not self._is_desired(running.endpoint):
                running.stop()
        for each in active:
            self._begin_or_skip(each)
        self._show(len(known) - len(active))

    def _is_desired(self, endpoint: Endpoint) -> bool:
        """Whether it should run just like that, by the last reading."""
        desired = self._desired.get(endpoint.id)
        return desired is not None and desired.endpoint == endpoint

    def _forget_ended(self) -> None:
        """A worker that failed starts again; any other error is a bug of this process, and raised."""
        for id_, start in list(self._starting.items()):
            if start.task.done():
                del self._starting[id_]
                start.task.result()
            elif not start.is_slow and time.monotonic() - start.began_at > START_SECONDS:
                start.is_slow = True
                log.error("webhook.start_hangs", endpoint=id_, seconds=START_SECONDS, do="restart the dispatcher")
        for id_, running in list(self._running.items()):
            if running.task.done():
                del self._running[id_]
                error = running.task.exception()
                if isinstance(error, FAILURES):
                    log.warning("webhook.worker_failed", endpoint=id_, error=str(error))
                elif error is not None:
                    raise error

    async def _report(self, known: Mapping[str, DesiredEndpoint]) -> Collection[str]:
        """Store the state of each worker. Returns those that were suspended for it."""
        now = self._now()
        suspended: list[str] = []
        for id_, running in self._running.items():
            if running.is_ending or id_ not in known:
                continue
            if not known[id_].has_begun:
                await self._endpoints.mark_begun(running.endpoint)
            if (news := running.news(now)) is not None:
                await self._endpoints.save_state(running.endpoint, news)
            if running.is_beyond(now, self._suspend_seconds):
                await self._endpoints.suspend(running.endpoint)
                suspended.append(id_)
                log.warning("webhook.suspended", endpoint=id_)
        return suspended

    def _begin_or_skip(self, desired: DesiredEndpoint) -> None:
        id_ = desired.endpoint.id
        if (running := self._running.get(id_)) is not None:
            running.worker.skip(desired.skipped)
        elif id_ not in self._starting:
            self._starting[id_] = _Start(asyncio.ensure_future(self._start(desired)), time.monotonic())

    async def _start(self, desired: DesiredEndpoint) -> None:
        """Create the worker of an endpoint, and let it run. If that fails, the next round tries again."""
        endpoint = desired.endpoint
        try:
            worker = await _in_thread(lambda: self._create_worker(desired))
        except PositionLostError as error:
            await self._suspend_lost(endpoint, error)
            return
        except FAILURES as error:
            log.warning("webhook.start_failed", endpoint=endpoint.id, error=str(error))
            return
        running = RunningEndpoint(
            endpoint, worker, asyncio.ensure_future(worker.run()), self._now(), desired.failing_since
        )
        self._running[endpoint.id] = running
        if self._is_desired(endpoint):
            worker.skip(self._desired[endpoint.id].skipped)
        else:  # changed or removed meanwhile; its task, which has not begun yet, only closes what was opened
            running.stop()

    async def _suspend_lost(self, endpoint: Endpoint, error: PositionLostError) -> None:
        """An operator must decide where it continues, so it is suspended like one that has failed for a day."""
        log.error("webhook.position_lost", endpoint=endpoint.id, error=error.message, do=error.do)
        try:
            await self._endpoints.suspend(endpoint)
        except DependencyUnavailableError as unavailable:  # tried again with the next round
            log.warning("webhooks.read_failed", error=unavailable.message)

    def _show(self, suspended: int) -> None:
        now = self._now()
        working = [each for each in self._running.values() if not each.is_ending]
        states = [each.worker.state(each.failing_since(now)) for each in working]
        counts = Counter(each.word for each in states)
        for word in get_args(WorkerStatus):
            ENDPOINTS.labels(word).set(counts[word])
        ENDPOINTS.labels("suspended").set(suspended)
        RECORDS.set(max((each.records for each in states), default=0))
        oldest = min((each.oldest_at.timestamp() for each in states if each.oldest_at), default=now)
        SECONDS.set(max(0.0, now - oldest))


async def _in_thread(create: Callable[[], Worker]) -> Worker:
    """Create a worker in a thread that nobody waits for if it hangs, as the end of a process waits for those of a pool.

    Raises what `create` raises.
    """
    loop = asyncio.get_running_loop()
    created: asyncio.Future[Worker] = loop.create_future()

    def settle(worker: Worker | None, error: BaseException | None) -> None:
        if created.done():  # cancelled
            return
        if worker is not None:
            created.set_result(worker)
        elif error is not None:
            created.set_exception(error)

    def tell(worker: Worker | None = None, error: BaseException | None = None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, worker, error)

    def run() -> None:
        try:
            tell(create())
        except (PositionLostError, *FAILURES) as error:
            tell(error=error)
        except BaseException as error:  # a bug of this process, which whoever waits raises, too
            tell(error=error)
            raise

    threading.Thread(target=run, name="webhook-start", daemon=True).start()
    return await created


def group(kafka: KafkaConnection, endpoint: Endpoint) -> dict[str, Any]:
    """The librdkafka settings of an endpoint's group. After ten seconds, others take over from a dead member."""
    return {
        **kafka.client(),
        "group.id": f"{GROUP}{endpoint.id}",
        "client.id": "galatea-dispatcher",
        "session.timeout.ms": 10_000,
        "queued.max.messages.kbytes": MEMORY_KB,
        "queued.min.messages": 1000,
        "fetch.message.max.bytes": MEMORY_KB * 1024,
        "fetch.max.bytes": MEMORY_KB * 1024,
    }
