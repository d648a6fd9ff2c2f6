"""Simulated stores and sensors: which sensors a store gets, invented stores, and writing them as `stores.yaml`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import yaml

from lab.simulation.store_day import random_stream
from master_dataset.registry.stores import WEEKDAYS, Sensor, Store, Zone, currency

PREFIX = "sim-"
"""Prefix of every simulated sensor, so that its records cannot be mistaken for real ones."""
DOORS = ("door-main", "door-mall", "door-parking")
ZONES = ("entrance", "offers", "fresh", "shelves")


def equipped(store: Store) -> Store:
    """Return the store with simulated sensors, and zones if it has none. The same id gives the same sensors.

    Sensors that are registered already are left alone.
    """
    if any(sensor.id.startswith(PREFIX) for sensor in store.sensors):
        return store
    rng = random_stream("equipment", store.id)
    lines = DOORS[: rng.choice((1, 2, 2, 3))]
    queues = ("Q1", "Q2")[: rng.choice((1, 1, 2))]
    zones = store.zones or tuple(Zone(name) for name in ZONES)
    sensors = [Sensor(f"{PREFIX}cam-{number}", "people_counts", line) for number, line in enumerate(lines, 1)]
    sensors += [Sensor(f"{PREFIX}queue-{queue}", "queue_events", queue) for queue in queues]
    sensors.append(Sensor(f"{PREFIX}face-1", "demographics"))
    sensors += [Sensor(f"{PREFIX}ap-{place}", "wifi_sightings") for place in ("inside", "street")]
    sensors.append(Sensor(f"{PREFIX}floor-1", "zone_presence"))
    return replace(store, sensors=(*store.sensors, *sensors), zones=zones)


def simulated(store: Store, topic: str) -> Sequence[Sensor]:
    """Return the simulated sensors of a source."""
    return [sensor for sensor in store.sensors if sensor.source == topic and sensor.id.startswith(PREFIX)]


def doors(store: Store) -> Sequence[str]:
    """Return the door lines with a counter, or one line if there is none."""
    return [sensor.place or sensor.id for sensor in simulated(store, "people_counts")] or DOORS[:1]


CITIES = (
    ("Bratislava", "Europe/Bratislava", "EUR", "SK"),
    ("Praha", "Europe/Prague", "CZK", "CZ"),
    ("Wien", "Europe/Vienna", "EUR", "AT"),
    ("London", "Europe/London", "GBP", "GB"),
    ("New York", "America/New_York", "USD", "US"),
    ("Kathmandu", "Asia/Kathmandu", "NPR", "NP"),
)
WEEK = (("08:00-20:00", "09:00-19:00"), ("07:00-21:00", "08:00-20:00"), ("10:00-20:00", "10:00-18:00"))
"""Opening hours from Monday to Saturday, and on Sunday."""
OPEN_SINCE = date(2020, 1, 6)


def invented_stores(number: int) -> Sequence[Store]:
    """Invent stores with sensors. The n-th is always the same."""
    return [equipped(_invented_store(nth)) for nth in range(1, number + 1)]


def _invented_store(nth: int) -> Store:
    city, zone, money, country = CITIES[(nth - 1) % len(CITIES)]
    rng = random_stream("store", str(nth))
    weekday, sunday = rng.choice(WEEK)
    hours = dict.fromkeys(WEEKDAYS[:-1], (weekday,)) | {WEEKDAYS[-1]: (sunday,)}
    return Store(
        id=f"{PREFIX}{nth}",
        timezone=zone,
        name=f"Simulated shop {nth}, {city}",
        currency=currency(money),
        opening_hours=hours,
        floor_m2=rng.randrange(200, 2000, 10),
        open_since=OPEN_SINCE,
        country=country,
    )


PLACES = {"people_counts": "line", "queue_events": "queue"}
"""Name of a sensor's place in `stores.yaml`; otherwise `zone`."""


def stores_text(stores: Sequence[Store]) -> str:
    """Write stores as `stores.yaml`, without empty fields."""
    written = {"stores": [_without_empty(_store(store)) for store in stores]}
    return yaml.safe_dump(written, allow_unicode=True, sort_keys=False, default_flow_style=None, width=120)


def _store(store: Store) -> Mapping[str, Any]:
    return {
        "id": store.id,
        "name": store.name,
        "tenant": store.tenant,
        "timezone": store.timezone,
        "currency": store.currency.code,
        "opening_hours": {day: list(periods) for day, periods in store.opening_hours.items()},
        "floor_m2": _text(store.floor_m2),
        "open_since": _text(store.open_since),
        "country": store.country,
        "subdivision": store.subdivision,
        "day_starts_at": store.day_starts_at,
        "closed_on": [day.isoformat() for day in store.closed_on],
        "week_starts_on": store.week_starts_on,
        "comp_start_date": _text(store.comp_start_date),
        "conversion_target": _text(store.conversion_target),
        "sensors": [_without_empty(_sensor(sensor)) for sensor in store.sensors],
        "zones": [_without_empty(_zone(zone)) for zone in store.zones],
    }


def _sensor(sensor: Sensor) -> Mapping[str, Any]:
    place = PLACES.get(sensor.source, "zone")
    days = {"from": _text(sensor.since), "to": _text(sensor.until)}
    return {"id": sensor.id, "source": sensor.source, place: sensor.place, **days}


def _zone(zone: Zone) -> Mapping[str, Any]:
    return {"id": zone.id, "m2": _text(zone.m2)}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _without_empty(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value}
