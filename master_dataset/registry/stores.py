"""The shops: where they are, when they are open, what money they take, which sensors they have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from typing import Self

import msgspec

from master_dataset.registry.currency import DEFAULT_CURRENCY, Currency
from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.terms import Terms


@dataclass(frozen=True)
class Sensor:
    """A sensor that is expected to be alive from the day `since` until before the day `until`; None: always.

    `place`: the door line, zone or queue that it watches, empty if it watches none in particular.
    """

    id: str
    source: str
    place: str = ""
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True)
class Zone:
    """A part of the sales floor."""

    id: str
    m2: Decimal | None = None


@dataclass(frozen=True)
class Store:
    """One shop. `opening_hours`: weekday (`mon`) to periods of local time (`08:00-20:00`); a closing time at or before
    the opening time lies on the next day. None of floor area or opening day means: not said.

    `country`, `subdivision`: ISO 3166, for holidays. `day_starts_at`: local time at which business days begin.
    `closed_on`: local dates without opening hours. `week_starts_on`: a weekday. `comp_start_date`: from when on it is
    a comparable store. `conversion_target`: percent of visitors who should buy.
    """  # noqa: D205 - one sentence needs two lines

    id: str
    timezone: str
    name: str = ""
    tenant: str = "default"
    currency: Currency = DEFAULT_CURRENCY
    opening_hours: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    floor_m2: Decimal | int | None = None
    open_since: date | None = None
    country: str = ""
    subdivision: str = ""
    day_starts_at: str = "00:00"
    closed_on: tuple[date, ...] = ()
    week_starts_on: str = WEEKDAYS[0]
    comp_start_date: date | None = None
    conversion_target: Decimal | None = None
    sensors: tuple[Sensor, ...] = ()
    zones: tuple[Zone, ...] = ()

    @cached_property
    def terms(self) -> Terms:
        """How its records are read."""
        sensors = frozenset((sensor.id, sensor.source) for sensor in self.sensors)
        zones = frozenset(zone.id for zone in self.zones)
        return Terms(self.currency, self.timezone, time.fromisoformat(self.day_starts_at), sensors, zones)

    def to_json(self) -> str:
        """Write it for the registry; `from_json` gives an equal store."""
        return msgspec.json.encode(msgspec.to_builtins(self)).decode()

    @classmethod
    def from_json(cls, body: str) -> Self:
        """Read what `to_json` wrote. Nothing is checked again: it was, when the file was loaded."""
        return msgspec.convert(msgspec.json.decode(body), cls, strict=False)
