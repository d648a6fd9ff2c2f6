"""Prometheus metrics of the REST interface, read on each scrape: what is published, and how loaded the process is."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

import structlog
from fastapi import FastAPI
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from deploy.local.records import State
from master_dataset.errors import GalateaError
from master_dataset.kafka.producer import AsyncProducer
from serving_layer.admin.ledger import Cause
from serving_layer.health.alarms import RULES
from serving_layer.health.freshness import FreshnessReport, FreshnessService
from serving_layer.http.connections import Connections
from serving_layer.ingest.disk_space import DiskRoom
from serving_layer.ingest.ingest import IngestService

TIMEOUT_SECONDS = 10.0

log = structlog.get_logger()


class ServingMetrics(Collector):
    """Asks in the loop of the process, from the thread that answers Prometheus."""

    def __init__(
        self, freshness: FreshnessService, loop: asyncio.AbstractEventLoop, states: Callable[[], Mapping[str, str]]
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
            running.add_metric([name], state == State.RUNNING)
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


def _published(fresh: FreshnessReport) -> Iterator[Metric]:
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


def _alarms(fresh: FreshnessReport) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("galatea_alarm", "1 while the alarm stands.", labels=["name"])
    standing = {alarm.name for alarm in fresh.alarms}
    for name in RULES:
        gauge.add_metric([name], name in standing)
    yield gauge


def _corrections(fresh: FreshnessReport) -> Iterator[Metric]:
    if fresh.ledger is not None:
        told = "Cells that the newest publication with a ledger corrected."
        gauge = GaugeMetricFamily("galatea_corrections", told, labels=["cause"])
        for cause in get_args(Cause):
            gauge.add_metric([cause], fresh.ledger.cells(cause))
        yield gauge


class Pressure(NamedTuple):
    """`now`: its value; None is told of nothing."""

    name: str
    meaning: str
    now: Callable[[], int | None]


class PressureMetrics(Collector):
    """Gauges of one process."""

    def __init__(self, pressures: Sequence[Pressure]) -> None:
        """Each under a name of its own."""
        self._pressures = pressures

    def describe(self) -> list[Metric]:
        """Nothing is read while it is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Whole numbers of one process, read from the thread that answers Prometheus."""
        for pressure in self._pressures:
            if (value := pressure.now()) is not None:
                yield GaugeMetricFamily(pressure.name, pressure.meaning, value)


def pressures(
    app: FastAPI, ingest: IngestService, courier: AsyncProducer, connections: Connections, disk: DiskRoom
) -> Sequence[Pressure]:
    """Those of a process that answers and takes events. Each has a limit among the settings."""
    state = app.state

    def inflight() -> int:
        return courier.under_way.records

    return [
        Pressure("galatea_connections", "Connections that are open.", lambda: len(connections)),
        Pressure("galatea_requests_in_flight", "Requests that are worked on.", lambda: state.in_flight.now),
        Pressure("galatea_ingests_in_flight", "Those with events.", lambda: ingest.in_flight),
        Pressure("galatea_bodies_bytes", "Bytes of bodies that are held.", lambda: state.bodies.held),
        Pressure("galatea_live_followers", "Who follows live answers.", state.live.followers.total),
        Pressure("galatea_producer_inflight_records", "Events sent but not acknowledged.", inflight),
        Pressure("galatea_courier_records", "The former name of galatea_producer_inflight_records.", inflight),
        Pressure("galatea_courier_bytes", "Their bytes.", lambda: courier.under_way.size),
        Pressure("galatea_disk_free_bytes", "What is left of the disk.", disk.free),
    ]
