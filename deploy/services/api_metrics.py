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
from serving_layer.health.alarms import RULES
from serving_layer.health.freshness import FreshnessReport, FreshnessService
from serving_layer.http.connections import Connections
from serving_layer.ingest.disk_space import DiskSpace
from serving_layer.ingest.ingest import IngestService
from views.control.recompute import Cause

TIMEOUT_SECONDS = 10.0

log = structlog.get_logger()


class ServingMetrics(Collector):
    """What runs, what is published, its age, and open alarms."""

    def __init__(
        self, freshness: FreshnessService, loop: asyncio.AbstractEventLoop, states: Callable[[], Mapping[str, str]]
    ) -> None:
        """`loop` runs `freshness`. `states` reads the state of each component, as recorded by the supervisor."""
        self._freshness, self._loop, self._states = freshness, loop, states

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration reads nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield which components run and, if Cassandra answers, its contents. Called in the thread of a scrape."""
        running = GaugeMetricFamily("galatea_component_running", "Whether the component runs.", labels=["component"])
        for name, state in self._states().items():
            running.add_metric([name], state == State.RUNNING)
        yield running
        reading = asyncio.run_coroutine_threadsafe(self._freshness.read(), self._loop)
        try:
            fresh = reading.result(TIMEOUT_SECONDS)
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
    pointer = fresh.snapshot.pointer
    yield CounterMetricFamily("galatea_publications", "Number of the newest publication.", pointer.publication)
    yield GaugeMetricFamily("galatea_generation", "Generation that is served.", pointer.generation)
    if pointer.publication:
        age = (fresh.at - pointer.cut).total_seconds()
        yield GaugeMetricFamily("galatea_cut_age_seconds", "Age of the published cut.", age)
    if fresh.snapshot.speed_as_of:
        age = (fresh.at - fresh.snapshot.speed_as_of).total_seconds()
        yield GaugeMetricFamily(
            "galatea_speed_as_of_age_seconds", "Age of the newest record that the speed layer has read.", age
        )
    waited = (fresh.at - fresh.late.since).total_seconds() if fresh.late else 0.0
    meaning = "Age of the oldest receipt epoch with events that wait for the next publication; 0 if none wait."
    yield GaugeMetricFamily("galatea_late_events_seconds", meaning, waited)
    if fresh.alerts_as_of:
        age = (fresh.at - fresh.alerts_as_of).total_seconds()
        meaning = "Age of the alerts' as-of time."
        yield GaugeMetricFamily("galatea_alerts_as_of_age_seconds", meaning, age)


def _alarms(fresh: FreshnessReport) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("galatea_alarm", "1 while the alarm is open.", labels=["name"])
    open_alarms = {alarm.name for alarm in fresh.alarms}
    for name in RULES:
        gauge.add_metric([name], name in open_alarms)
    yield gauge


def _corrections(fresh: FreshnessReport) -> Iterator[Metric]:
    if fresh.ledger is not None:
        meaning = "Cells corrected by the newest publication that has a ledger."
        gauge = GaugeMetricFamily("galatea_corrections", meaning, labels=["cause"])
        for cause in get_args(Cause):
            gauge.add_metric([cause], fresh.ledger.cells(cause))
        yield gauge


class Pressure(NamedTuple):
    """A gauge of one process. `now` reads its value; None if there is none."""

    name: str
    meaning: str
    now: Callable[[], int | None]


class PressureMetrics(Collector):
    """How loaded the process is."""

    def __init__(self, pressures: Sequence[Pressure]) -> None:
        """`pressures` have distinct names."""
        self._pressures = pressures

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration reads nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges. Called in the thread of a scrape."""
        for pressure in self._pressures:
            if (value := pressure.now()) is not None:
                yield GaugeMetricFamily(pressure.name, pressure.meaning, value)


def pressures(
    app: FastAPI, ingest: IngestService, producer: AsyncProducer, connections: Connections, disk: DiskSpace
) -> Sequence[Pressure]:
    """List the gauges of the REST interface. Each has a limit among the settings."""
    state = app.state

    def records() -> int:
        return producer.in_flight.records

    def size() -> int:
        return producer.in_flight.size

    return [
        Pressure("galatea_connections", "Open connections.", lambda: len(connections)),
        Pressure("galatea_requests_in_flight", "Requests in process.", lambda: state.in_flight.now),
        Pressure("galatea_ingests_in_flight", "Requests with events in process.", lambda: ingest.in_flight),
        Pressure("galatea_bodies_bytes", "Bytes of request bodies in memory.", lambda: state.bodies.held),
        Pressure("galatea_live_followers", "Clients that follow live answers.", state.live.followers.total),
        Pressure("galatea_producer_inflight_records", "Events sent to the broker and not acknowledged.", records),
        Pressure("galatea_courier_records", "Former name of galatea_producer_inflight_records.", records),
        Pressure("galatea_producer_inflight_bytes", "Bytes of these events.", size),
        Pressure("galatea_courier_bytes", "Former name of galatea_producer_inflight_bytes.", size),
        Pressure("galatea_disk_free_bytes", "Free bytes on the disk.", disk.free),
    ]
