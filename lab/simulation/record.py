"""One record of a simulated sensor before it is written as bytes, and after."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lab.simulation.clock import SECOND_MS, written
from lab.simulation.shop_day import ShopDay

LATENCY_MS = (200, 2 * SECOND_MS)


class Record(NamedTuple):
    """`sent_ms`: when it is sent; `sensor`: who sends it, empty where the source has no sensors."""

    sent_ms: int
    topic: str
    sensor: str
    body: Mapping[str, Any]


class Delivery(NamedTuple):
    """What goes to a topic, and when (UTC)."""

    send_at: datetime
    topic: str
    value: bytes


class Wire:
    """Makes the records of one source and day: the fields that all have, and a second of latency at most two."""

    def __init__(self, day: ShopDay, topic: str) -> None:
        """`topic` of the source."""
        self._store, self._topic, self._chance = day.store.id, topic, day.chance(f"wire {topic}")

    def record(self, at_ms: int, sensor: str, said: Mapping[str, Any], known_ms: int | None = None) -> Record:
        """Something that happened at `at_ms`. `known_ms`: when the sensor knows it, such as the end of an interval."""
        body = {"happened_at": written(at_ms), "operation_id": self._store}
        if sensor:
            body["sensor_id"] = sensor
        sent = (at_ms if known_ms is None else known_ms) + self._chance.randint(*LATENCY_MS)
        return Record(sent, self._topic, sensor, {**body, **said})


Records = Iterator[Record]
