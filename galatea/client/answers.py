"""Answers about metrics and cells. Numbers are as the API wrote them: `int`, or `Decimal` where there is a point.

What the API lists: metrics, stores, receipts, publications; and how fresh it is. Names as the API writes them.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from galatea.client.dataframes import Tidy

Number = int | Decimal
Value = Number | tuple[dict[str, Any], ...] | None
"""A tuple of items for the few metrics whose unit is `list`. None: nobody can know, which is not zero."""


class AsOf(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer rests on.

    `publication` and its `cut`: batch covers what was received before. `speed_as_of`: speed has read a record received
    then. `waiting_for_batch`: events left to the next publication. `layers` were read; those in `missing` could not be.
    """

    publication: int
    cut: datetime
    speed_as_of: datetime | None = None
    waiting_for_batch: int | None = None
    layers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One window of a series, from `start` (UTC) on.

    `final`: it can only be corrected by a later publication; otherwise it can still grow. With `compare`: `before` is
    the value of the counterpart, `change` the difference in percent, `change_points` in percentage points, `days` how
    many days either side has where they differ; `partial`: both sides end where the answer knows no more. With the
    grain `hour_of_week`: `weekday` (Monday is 1), `hour`, and how many hours went in (`hours_present`).
    """

    start: datetime
    value: Value
    final: bool
    flags: tuple[str, ...] = ()
    before: Value = None
    change: Number | None = None
    change_points: Number | None = None
    before_flags: tuple[str, ...] = ()
    days: dict[str, int] | None = None
    partial: bool = False
    weekday: int | None = None
    hour: int | None = None
    hours_present: Number | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The points of one store, and of one value of each dimension that was split `by`, in its `timezone`."""

    store: str
    timezone: str
    points: tuple[Point, ...]
    dimensions: dict[str, str | None] = {}
    compared: dict[str, Any] | None = None


class Answer(Tidy, msgspec.Struct, frozen=True, kw_only=True):
    """One metric over time.

    `unit`: `money` (in the major unit of `currency`), `n`, `percent`, `ms` and so on. `flags` are of the whole answer,
    `event_flags` count odd events behind it. `left_out`: stores that `comp` left out, and why. `next`: there are more
    stores; ask again with `after`.
    """

    metric: str
    unit: str
    grain: str
    series: tuple[Series, ...]
    as_of: AsOf
    timezone: str | None = None
    currency: str | None = None
    compare: str | None = None
    change_unit: str | None = None
    hours: str = "all"
    only_covered: bool = False
    partial: bool = False
    flags: tuple[str, ...] = ()
    event_flags: dict[str, int] = {}
    left_out: tuple[dict[str, Any], ...] = ()
    context: dict[str, Any] | None = None
    next: str | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        """Of all series, one after the other."""
        return tuple(point for series in self.series for point in series.points)

    @property
    def each(self) -> tuple["Answer", ...]:
        """Only this one."""
        return (self,)


class Answers(Tidy, msgspec.Struct, frozen=True, kw_only=True):
    """Several metrics of one moment, in the order they were asked for. Tables hold them one below the other."""

    answers: tuple[Answer, ...]
    as_of: AsOf
    next: str | None = None

    def __getitem__(self, metric: str) -> Answer:
        """The answer of one metric. KeyError if it was not asked for."""
        found = {answer.metric: answer for answer in self.answers}
        return found[metric]

    @property
    def each(self) -> tuple[Answer, ...]:
        """All of them."""
        return self.answers


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The states of one cell from each layer; None: that layer knows nothing of it. Money is in minor units here."""

    store: str
    window: datetime
    dimensions: dict[str, str | None]
    batch: dict[str, Any] | None
    speed: dict[str, Any] | None
    merged: dict[str, Any] | None


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of one view, and what they rest on."""

    view: str
    cells: tuple[Cell, ...]
    as_of: AsOf


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A number that can be asked for: `metric` is its id, `formula` how it is made from the states of `views`."""

    metric: str
    name: str
    formula: str
    unit: str
    views: tuple[str, ...]
    flags: tuple[str, ...] = ()
    grains: tuple[str, ...] = ()
    note: str = ""


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """A registered shop, in the words of stores.yaml."""

    id: str
    timezone: str
    name: str = ""
    tenant: str | None = None
    currency: str | None = None
    opening_hours: dict[str, Any] = {}
    floor_m2: Number | None = None
    open_since: date | None = None
    country: str | None = None
    subdivision: str | None = None
    day_starts_at: Any = None
    closed_on: tuple[Any, ...] = ()
    week_starts_on: Any = None
    comp_start_date: date | None = None
    conversion_target: Number | None = None
    sensors: tuple[dict[str, Any], ...] = ()
    zones: tuple[dict[str, Any], ...] = ()


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt as it was received, beside its place: the till, its number, and when. `receipt` is all that it said."""

    happened_at: datetime
    received_at: datetime
    vendor_fiscal_module: str
    transaction_id: str
    receipt: dict[str, Any]


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How far each layer has read.

    `speed_lag_ms`: for how long the oldest record that speed has not read is waiting. `archive_lag_ms`: how much older
    the archive's newest record is than speed's. `speed`, `archive`: by partition. `alarms`: what asks for an operator.
    """

    publication: int
    cut: datetime
    published_at: datetime | None = None
    generation: int | None = None
    layers: tuple[str, ...] = ()
    speed_as_of: datetime | None = None
    speed_lag_ms: int | None = None
    archive_as_of: datetime | None = None
    archive_lag_ms: int | None = None
    speed: tuple[dict[str, Any], ...] = ()
    archive: tuple[dict[str, Any], ...] = ()
    lag: tuple[dict[str, Any], ...] = ()
    alarms: tuple[dict[str, Any], ...] = ()


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """One switch of all views. `collected`: its cells are gone. `restores`: the publication that it shows again.

    What its recompute did, None where it did not say: `partitions` (pairs of view and day), `days`, `blocks` written,
    `rows` read, `seconds` from question to publication, and the same by view.
    """

    publication: int
    cut: datetime
    published_at: datetime | None = None
    by: str = ""
    why: str = ""
    collected: bool = False
    restores: int | None = None
    rows: int | None = None
    partitions: int | None = None
    days: int | None = None
    blocks: int | None = None
    seconds: Number | None = None
    views: dict[str, Any] | None = None
