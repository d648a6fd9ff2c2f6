"""Registered stores: currency, opening hours, sensors, and the terms by which their records are parsed."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import NamedTuple, Self, TypeVar

import iso4217
import msgspec

from master_dataset.errors import RequestError
from master_dataset.registry.time_zones import known_name, zone_named


class Currency(NamedTuple):
    """ISO 4217: `EUR` has 2 digits, `JPY` none, `KWD` 3."""

    code: str
    digits: int


DEFAULT_CURRENCY = Currency("EUR", 2)
M2_DECIMALS, PERCENT_DECIMALS = 2, 4
"""At most, of square metres and of percentages."""


@cache
def currency(code: str) -> Currency:
    """Look up a currency by its ISO 4217 code.

    Raises:
        RequestError: There is no such currency, or it has no minor unit (gold, test codes).
    """
    try:
        entry = iso4217.Currency(code)
    except ValueError:
        entry = None
    if entry is None or entry.exponent is None:
        raise RequestError(f"`{code}` is no currency of ISO 4217.", do="Use a code such as `EUR`, `CZK` or `JPY`.")
    return Currency(entry.code, entry.exponent)


FIRST_DAY, LAST_DAY = date(1800, 1, 1), date(2200, 12, 31)
"""Of everything that is said of a store. No event is later."""
_EPOCH_DAY = date(1970, 1, 1)
MIDNIGHT = time(0)


class Terms(NamedTuple):
    """What must be known about a store to parse its records; it becomes part of every event.

    It cannot change once the store has events. `timezone`, `day_starts_at`: when business days begin. `sensors`: pairs
    of sensor and source, as one camera may feed several sources. `zones`: parts of the sales floor. If sensors or zones
    are empty, none is registered and any is accepted.
    """

    currency: Currency = DEFAULT_CURRENCY
    timezone: str = "UTC"
    day_starts_at: time = MIDNIGHT
    sensors: frozenset[tuple[str, str]] = frozenset()
    zones: frozenset[str] = frozenset()

    def business_day(self, happened_ms: int) -> int:
        """Return the local date of the business day of an instant, as days since 1970.

        A business day begins at the first instant whose local time on that date is `day_starts_at` or later.
        """
        there = datetime.fromtimestamp(happened_ms / 1000, zone_named(self.timezone))
        is_before = there.time() < self.day_starts_at and not self._has_begun(there)
        return (there.date() - _EPOCH_DAY).days - is_before

    def _has_begun(self, there: datetime) -> bool:
        """Whether the day had begun before clocks went back: it begins once."""
        began = datetime.combine(there.date(), self.day_starts_at, there.tzinfo)
        return there.fold == 1 and began.timestamp() <= there.timestamp()

    def knows_sensor(self, sensor: str, source: str) -> bool:
        """Return whether the sensor is registered for the source, or none is registered."""
        return not self.sensors or (sensor, source) in self.sensors


DEFAULT_TERMS = Terms()
"""The terms of a store that is not registered."""


def business_date(day: int) -> date:
    """Return the date of a number of days since 1970."""
    return _EPOCH_DAY + timedelta(days=day)


WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Sensor:
    """A sensor that is expected to be alive from day `since` to before day `until`; None: no bound.

    `place`: the door line, zone or queue that it watches; empty if none in particular.
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
class GroupVersion:
    """The groups that a store is in from business day `valid_from` on; None: from its first day on.

    `values`: name of a group (`region`) to the store's value (`West`). It is the whole set, not a change to the one
    before.
    """

    valid_from: date | None
    values: Mapping[str, str]


class OpeningHours(NamedTuple):
    """When stores are open that have all of this in common. `weekly`: the periods of each weekday, from Monday on."""

    timezone: str
    weekly: tuple[tuple[str, ...], ...]
    closed_on: frozenset[date]


@dataclass(frozen=True)
class Store:
    """One registered store. None and empty values mean that the operator has not said.

    `opening_hours`: weekday (`mon`) to periods of local time (`08:00-20:00`); a closing time at or before the opening
    time lies on the next day. `country`, `subdivision`: ISO 3166, for holidays. `day_starts_at`: local time at which
    business days begin. `closed_on`: local dates without opening hours. `week_starts_on`: a weekday.
    `comp_start_date`: from when on it is a comparable store. `conversion_target`: percent of visitors who should buy.
    `groups`: versions by `valid_from`, oldest first. No record is parsed by them.
    """

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
    groups: tuple[GroupVersion, ...] = ()

    @cached_property
    def terms(self) -> Terms:
        """How its records are parsed."""
        sensors = frozenset((sensor.id, sensor.source) for sensor in self.sensors)
        zones = frozenset(zone.id for zone in self.zones)
        return Terms(self.currency, self.timezone, time.fromisoformat(self.day_starts_at), sensors, zones)

    @cached_property
    def opening(self) -> OpeningHours:
        """When it is open: hashable, and equal for stores that are alike in that."""
        weekly = tuple(tuple(self.opening_hours.get(day, ())) for day in WEEKDAYS)
        return OpeningHours(self.timezone, weekly, frozenset(self.closed_on))

    def group(self, name: str, day: date) -> str | None:
        """Return the store's value of a group on a business day; None if it was in no such group."""
        return self.groups_on(day).get(name)

    def groups_on(self, day: date) -> Mapping[str, str]:
        """Return all groups of the store on a business day, name to value."""
        known = bisect_right(self._groups_since, day)
        return self.groups[known - 1].values if known else {}

    def current_group(self, name: str) -> str | None:
        """Return the value of a group in the newest version, whatever its `valid_from`; None if it has none there."""
        return self.current_groups.get(name)

    @property
    def current_groups(self) -> Mapping[str, str]:
        """All groups of the newest version, name to value."""
        return self.groups[-1].values if self.groups else {}

    @cached_property
    def group_names(self) -> frozenset[str]:
        """The names of all groups that the store is in, or was."""
        return frozenset(name for version in self.groups for name in version.values)

    @cached_property
    def _groups_since(self) -> tuple[date, ...]:
        return tuple(version.valid_from or date.min for version in self.groups)

    def to_json(self) -> str:
        """Encode it for the registry; `from_json` returns an equal store.

        A store without groups is encoded as it was before there were groups, so that it does not count as changed.
        """
        fields = msgspec.to_builtins(self)
        if not self.groups:
            fields.pop("groups", None)  # a store that was decoded without groups has none to encode
        return msgspec.json.encode(fields).decode()

    @classmethod
    def from_json(cls, body: str) -> Self:
        """Decode what `to_json` returned.

        Nothing is validated again, but what a release before the limits took is brought within them: see `known_name`,
        `limited` and `within`.
        """
        store = msgspec.convert(msgspec.json.decode(body), cls, strict=False)
        return replace(
            store,
            timezone=known_name(store.timezone),
            floor_m2=limited(store.floor_m2, M2_DECIMALS) or None,
            conversion_target=limited(store.conversion_target, PERCENT_DECIMALS) or None,
            open_since=within(store.open_since),
            comp_start_date=within(store.comp_start_date),
            sensors=tuple(replace(each, since=within(each.since), until=within(each.until)) for each in store.sensors),
            zones=tuple(replace(zone, m2=limited(zone.m2, M2_DECIMALS) or None) for zone in store.zones),
            groups=tuple(replace(each, valid_from=within(each.valid_from)) for each in store.groups),
        )


_Number = TypeVar("_Number", Decimal, Decimal | int | None, Decimal | None)


def limited(number: _Number, decimals: int) -> _Number:
    """A number as it is, or rounded if it has more decimals.

    A release before the limits has registered any: `1e-999999999999` is short, and would be a fraction of a trillion
    digits.
    """
    if not isinstance(number, Decimal):
        return number
    exponent = number.as_tuple().exponent
    return round(number, decimals) if isinstance(exponent, int) and exponent < -decimals else number


def within(day: date | None) -> date | None:
    """A date, or the limit that it lies beyond.

    A release before the limits has registered any, such as 9999-12-31, from which on there is no later day to count to.
    """
    return None if day is None else min(max(day, FIRST_DAY), LAST_DAY)
