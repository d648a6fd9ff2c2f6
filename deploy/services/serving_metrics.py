"""What is published, how old it is, which alarms stand and what runs, read anew each time that Prometheus asks."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import get_args

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from deploy.local.board import RUNNING
from master_dataset.errors import GalateaError
from serving_layer.admin.ledger import Cause
from serving_layer.health.alarms import RULES
from serving_layer.health.freshness import Fresh, Freshness

TIMEOUT_SECONDS = 10.0

log = structlog.get_logger()


class ServingMetrics(Collector):
    """Asks in the loop of the process, from the thread that answers Prometheus."""

    def __init__(
        self, freshness: Freshness, loop: asyncio.AbstractEventLoop, states: Callable[[], Mapping[str, str]]
    ) -> None:
        """`loop`: where `freshness` belongs. `states`: the state of each component, as the supervisor wrote it down."""
        self._freshness, self._loop, self._states = freshness, loop, states

    def describe(self) -> list[Metric]:
        """Nothing is read while it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """What runs; then, if Cassandra answers, what is in it."""
        running = GaugeMetricFamily("galatea_component_running", "Whether the component runs.", labels=["component"])
        for name, state in self._states().items():
            running.add_metric([name], state == RUNNING)
        yield running
        asked = asyncio.run_coroutine_threadsafe(self._freshness.read(), self._loop)
        try:
            fresh = asked.result(TIMEOUT_SECONDS)
        except (GalateaError, TimeoutError) as error:
            log.warning("metrics.not_read", error=str(error))
            yield from _cassandra_up(0)
            return
        yield from _cassandra_up(1)
        yield from _published(fresh)
        yield from _alarms(fresh)
        yield from _corrections(fresh)


def _cassandra_up(value: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("galatea_cassandra_up", "Whether Cassandra answers.", value)
    yield GaugeMetricFamily("galatea_store_up", "Former name of galatea_cassandra_up.", value)


def _published(fresh: Fresh) -> Iterator[Metric]:
    pointer = fresh.basis.pointer
    yield CounterMetricFamily("galatea_publications", "How often was published.", pointer.publication)
    yield GaugeMetricFamily("galatea_generation", "The generation that is published.", pointer.generation)
    if pointer.publication:
        age = (fresh.at - pointer.cut).total_seconds()
        yield GaugeMetricFamily("galatea_cut_age_seconds", "Age of the published cut.", age)
    if fresh.basis.speed_as_of:
        age = (fresh.at - fresh.basis.speed_as_of).total_seconds()
        yield GaugeMetricFamily("galatea_speed_as_of_age_seconds", "Age of the newest record that speed has read.", age)
    if fresh.alerts_as_of:
        age = (fresh.at - fresh.alerts_as_of).total_seconds()
        told = "Age of what alerts are judged and listed as of."
        yield GaugeMetricFamily("galatea_alerts_as_of_age_seconds", told, age)


def _alarms(fresh: Fresh) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("galatea_alarm", "1 while the alarm stands.", labels=["name"])
    standing = {alarm.name for alarm in fresh.alarms}
    for name in RULES:
        gauge.add_metric([name], name in standing)
    yield gauge


def _corrections(fresh: Fresh) -> Iterator[Metric]:
    if fresh.ledger is not None:
        told = "Cells that the newest publication with a ledger corrected."
        gauge = GaugeMetricFamily("galatea_corrections", told, labels=["cause"])
        for cause in get_args(Cause):
            gauge.add_metric([cause], fresh.ledger.cells(cause))
        yield gauge
