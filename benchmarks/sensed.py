"""Records of every source that happened in the last hours, as many of each, in the order of their stores."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from master_dataset.source import Source
from master_dataset.sources import registered_sources

STORES = 20
HOURS = 6


def sensed(topic: str, number: int) -> Iterator[bytes]:
    """The source's own example at other times, stores and places; the same for the same number."""
    source = registered_sources()[topic]
    chance = Random(topic)  # noqa: S311 - no secret
    began = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS)
    for place in range(number):
        yield json.dumps(_moved(source, place, began, chance)).encode()


def _moved(source: Source[Any], place: int, began: datetime, chance: Random) -> dict[str, object]:
    """Its instants are moved by as much, so that what lasted lasts; in steps of a window, so that none is crossed."""
    said = dict(source.example)
    times = {name: _instant(value) for name, value in said.items() if _is_instant(value)}
    shift = began - times[source.happened_at] + timedelta(minutes=15 * chance.randrange(4 * HOURS))
    said |= {name: (at + shift).isoformat() for name, at in times.items()}
    said[source.store] = str(place % STORES)
    for name in ("sensor_id", "track", "staff", "provider"):
        if name in said:
            said[name] = f"{name}-{place}"  # another event
    if "device" in said:
        said["device"] = f"{chance.randrange(STORES * 500):032x}"
    if "transaction_id" in said:
        said["transaction_id"] = place
    return said


def _is_instant(value: object) -> bool:
    return isinstance(value, str) and len(value) >= len("2026-03-07T10:00:00Z") and value[4:5] == "-" == value[7:8]


def _instant(value: object) -> datetime:
    return datetime.fromisoformat(str(value)).astimezone(UTC)
