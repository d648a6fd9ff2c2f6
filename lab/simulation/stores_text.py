"""Stores written as a `stores.yaml`, the reverse of reading one."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from master_dataset.registry.stores import Sensor, Store, Zone

PLACES = {"people_counts": "line", "queue_events": "queue"}
"""What the place of a sensor is called; else it is a zone."""


def stores_text(stores: Sequence[Store]) -> str:
    """Write them; what is not said of a store is left out."""
    written = {"stores": [_said(_store(store)) for store in stores]}
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
        "sensors": [_said(_sensor(sensor)) for sensor in store.sensors],
        "zones": [_said(_zone(zone)) for zone in store.zones],
    }


def _sensor(sensor: Sensor) -> Mapping[str, Any]:
    place = PLACES.get(sensor.source, "zone")
    days = {"from": _text(sensor.since), "to": _text(sensor.until)}
    return {"id": sensor.id, "source": sensor.source, place: sensor.place, **days}


def _zone(zone: Zone) -> Mapping[str, Any]:
    return {"id": zone.id, "m2": _text(zone.m2)}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value}
