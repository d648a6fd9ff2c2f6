"""The health of registered sensors: when each was last alive, for how much of the time, and how far counters drift."""

from collections.abc import Sequence
from datetime import date
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from serving_layer.responses.encoding import Instant
from serving_layer.responses.metrics import AsOf

SensorState = Literal["ok", "gaps", "silent", "never", "unknown"]
MeasuredBy = Literal["sensor", "line", "other_lines"]


class SensorDay(Struct, kw_only=True):
    """A business day of a sensor. Null: not known, or the sensor was not expected, which is not zero.

    `coverage_percent`: of the time that is over. Of door counters: `people_in`, `people_out` and `drift_percent`, once
    the day is over and if the sensor was registered for all of it.
    """

    day: date
    coverage_percent: float | None
    people_in: int | UnsetType | None = UNSET
    people_out: int | UnsetType | None = UNSET
    drift_percent: float | UnsetType | None = UNSET


class SensorHealth(Struct, kw_only=True):
    """A sensor that is registered for a day of the range, `from` (inclusive) `to` (exclusive); null: no bound.

    `measured_by`: what its signals are counted by. `sensor`: its own heartbeats. `line`: the counts of its door line.
    `other_lines`: it is registered without a line, so the counts of all lines that are no other sensor's. Null: nothing
    shows whether it is alive. `shared`: other sensors are measured by the same, so the numbers are of all of them.
    `state`: at the end of the range, or now. `last_signal`: start of the last 15-minute window with a signal; null:
    there is none in the range. `silent_minutes`: for how long the store has been open since that window, or since the
    range began. `coverage_percent`: part of the expected time that it was alive. `drift_percent`, of door counters:
    people in minus people out, in percent of people in, over all days that have both.
    """

    store: str
    timezone: str
    sensor: str
    source: str
    place: str | None
    start: date | None = field(name="from")
    end: date | None = field(name="to")
    measured_by: MeasuredBy | None
    shared: bool
    state: SensorState
    last_signal: Instant | None
    silent_minutes: int | None
    coverage_percent: float | None
    drift_percent: float | UnsetType | None = UNSET
    days: Sequence[SensorDay]


class SensorStore(Struct):
    """A store of the page, also if it has no sensors. `sensors`: how many there are in the range, in any state.

    `drift_percent`: of all its doors together. Null: it has no door counter, or no day is over. `drift_high`: whether
    that is above 5 %. Visitors may leave by another door, so the drift of one door of several is no error.
    """

    store: str
    name: str
    sensors: int
    drift_percent: float | None
    drift_high: bool | None


class SensorList(Struct):
    """The sensors of a page of stores, by store and as they are registered. `next`: the `after` of the next page.

    `silent_after`: open minutes without a signal after which a sensor is silent.
    """

    silent_after: int
    stores: Sequence[SensorStore]
    sensors: Sequence[SensorHealth]
    as_of: AsOf
    next: str | None
