"""How much the REST interface has on its hands, read anew each time that Prometheus asks."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from fastapi import FastAPI
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from master_dataset.kafka.producer import Courier
from serving_layer.http.connections import Connections
from serving_layer.ingest.disk_room import DiskRoom
from serving_layer.ingest.ingest import Ingest


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
    app: FastAPI, ingest: Ingest, courier: Courier, connections: Connections, disk: DiskRoom
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
