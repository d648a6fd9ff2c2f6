"""Records of every sensor source and of the weather, made of a few integers that Hypothesis can draw and shrink."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from master_dataset.source import Source
from master_dataset.sources import registered_sources

BEGIN = datetime(2026, 3, 27, 12, tzinfo=UTC)
Drawn = tuple[int, int, int]
"""Minutes since BEGIN, an amount from 0 to 4,000, and one of a few kinds."""


def record(topic: str, drawn: Drawn, store: str = "1") -> bytes:
    """The record that the numbers stand for. It happened at BEGIN + minutes, to the second where it is an interval."""
    minute, amount, kind = drawn
    at = BEGIN + timedelta(minutes=minute)
    said = {"operation_id": store, "happened_at": written(at), **_MAKES[topic](at, amount, kind)}
    return json.dumps(said).encode()


def topics() -> list[str]:
    """Those that `record` knows: all but the receipts."""
    return [topic for topic in registered_sources() if topic in _MAKES]


def source_of(topic: str) -> Source[Any]:
    return registered_sources()[topic]


def written(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _pick(kind: int, *words: str) -> str:
    return words[kind % len(words)]


def _interval(at: datetime) -> dict[str, Any]:
    return {"sensor_id": "s", "interval_ms": 60_000 * (15 - at.minute % 15)}


def _counts(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    groups = {"group_in": amount // 2, "group_out": kind} if kind % 2 else {}
    staff = {"staff_in": kind, "staff_out": 0} if kind % 3 else {}
    people = {"people_in": amount, "people_out": amount // 3}
    return _interval(at) | people | groups | staff | {"line": _pick(kind, "A", "B")}


def _demographics(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    who = {"age_band": _pick(amount, "15-24", "65+", "unknown"), "gender": _pick(kind, "female", "male", "unknown")}
    return _interval(at) | who | {"people": 1 + amount}


def _weather(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    clouds = {"cloud_permille": amount % 1001} if kind % 2 else {}
    payload_fields = {"temperature_mc": amount * 10 - 20_000, "precipitation_um": kind, "wind_mm_s": amount}
    return {**_interval(at), **payload_fields, **clouds, "provider": "p"}


def _beat(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    return _interval(at) | {"sensor_id": f"s{amount % 2}", "source": _pick(kind, "wifi_sightings", "queue_events")}


def _queue(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    which = _pick(kind, "join", "service_start", "abandon", "leave")
    lasted = timedelta(seconds=amount)
    starts = {"service_started_at": written(at - lasted), "joined_at": written(at - lasted)} if which == "leave" else {}
    joined = {"joined_at": written(at - lasted)} if which in ("service_start", "abandon") else {}
    length = {"length_after": amount % 7} if kind % 3 else {}
    return {"sensor_id": "q", "queue": _pick(amount, "Q1", "Q2"), "track": f"t{amount}", "kind": which} | (
        starts | joined | length
    )


def _zone(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    entered = {"entered_at": written(at - timedelta(seconds=amount * 4))} if kind % 2 else {}
    where = {"sensor_id": "z", "zone": _pick(amount, "shoes", "hats"), "track": f"t{amount}"}
    return where | entered | {"kind": "exit" if kind % 2 else "enter"}


def _staff(at: datetime, amount: int, kind: int) -> dict[str, Any]:
    started = written(at - timedelta(seconds=amount * 14))
    who = {"staff": f"s{amount}", "kind": _pick(kind, "worked", "planned"), "role": _pick(amount, "checkout", "other")}
    return who | {"started_at": started} | ({"sign": -1, "revision": 1} if kind % 3 == 2 else {})


def _sighting(_: datetime, amount: int, kind: int) -> dict[str, Any]:
    device = {"device": f"{amount % 3:032x}", "salt_id": "x", "zone": _pick(kind, "inside", "outside")}
    return device | {"sensor_id": "ap", "signal_dbm": -(amount % 128), "randomized": bool(kind % 3)}


_MAKES: Mapping[str, Callable[[datetime, int, int], dict[str, Any]]] = {
    "people_counts": _counts,
    "demographics": _demographics,
    "weather_observations": _weather,
    "sensor_heartbeats": _beat,
    "queue_events": _queue,
    "zone_presence": _zone,
    "staff_hours": _staff,
    "wifi_sightings": _sighting,
}


def observation(  # noqa: PLR0913 - the fields of an observation
    happened_at: str,
    celsius: float,
    *,
    rain_mm: float = 0,
    wind_m_s: float = 0,
    cloud_percent: float | None = None,
    provider: str = "s1",
    store: str = "1",
) -> bytes:
    """One of a quarter hour."""
    clouds = {} if cloud_percent is None else {"cloud_permille": round(cloud_percent * 10)}
    payload_fields = {
        "temperature_mc": round(celsius * 1000),
        "precipitation_um": round(rain_mm * 1000),
        "wind_mm_s": round(wind_m_s * 1000),
    }
    identity = {"operation_id": store, "happened_at": happened_at, "provider": provider, "interval_ms": 900_000}
    return json.dumps(identity | payload_fields | clouds).encode()
