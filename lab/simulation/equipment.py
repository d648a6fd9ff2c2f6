"""Which simulated sensors a shop has. Sensors that are registered already are somebody's, and are left alone."""

from collections.abc import Sequence
from dataclasses import replace

from lab.simulation.chance import chance
from master_dataset.registry.stores import Sensor, Store, Zone

PREFIX = "sim-"
"""Of every simulated sensor: nobody may take its records for real."""
DOORS = ("door-main", "door-mall", "door-parking")
ZONES = ("entrance", "offers", "fresh", "shelves")


def equipped(store: Store) -> Store:
    """Give the store with simulated sensors, and with zones if it has none. The same store for the same id."""
    if any(sensor.id.startswith(PREFIX) for sensor in store.sensors):
        return store
    drawn = chance("equipment", store.id)
    lines = DOORS[: drawn.choice((1, 2, 2, 3))]
    queues = ("Q1", "Q2")[: drawn.choice((1, 1, 2))]
    zones = store.zones or tuple(Zone(name) for name in ZONES)
    sensors = [Sensor(f"{PREFIX}cam-{number}", "people_counts", line) for number, line in enumerate(lines, 1)]
    sensors += [Sensor(f"{PREFIX}queue-{queue}", "queue_events", queue) for queue in queues]
    sensors.append(Sensor(f"{PREFIX}face-1", "demographics"))
    sensors += [Sensor(f"{PREFIX}ap-{place}", "wifi_sightings") for place in ("inside", "street")]
    sensors.append(Sensor(f"{PREFIX}floor-1", "zone_presence"))
    return replace(store, sensors=(*store.sensors, *sensors), zones=zones)


def simulated(store: Store, topic: str) -> Sequence[Sensor]:
    """List the simulated sensors of a source."""
    return [sensor for sensor in store.sensors if sensor.source == topic and sensor.id.startswith(PREFIX)]


def doors(store: Store) -> Sequence[str]:
    """List the door lines that are counted; there is always a way in."""
    return [sensor.place or sensor.id for sensor in simulated(store, "people_counts")] or DOORS[:1]
