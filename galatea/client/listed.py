"""What the API lists: metrics, stores, receipts, publications; and how fresh it is. Names as the API writes them."""

from datetime import date, datetime
from typing import Any

import msgspec

from galatea.client.answers import Number


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
