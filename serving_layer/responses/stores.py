"""The registered stores and their receipts as they were received."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from master_dataset.fields import object_schema
from master_dataset.sources import source_named
from serving_layer.responses.encoding import Instant, Number

_TILLS = source_named("pos_transactions")


class StoreSensor(Struct):
    """A sensor that is expected to be alive `from` a day until before the day `to`; null: always."""

    id: str
    source: str
    place: str | None
    start: date | None = field(name="from")
    end: date | None = field(name="to")


class StoreZone(Struct):
    """A part of the sales floor."""

    id: str
    m2: Number | None


class StoreGroups(Struct):
    """The groups of a store from business day `valid_from` on; null: from its first day on."""

    valid_from: date | None
    groups: Mapping[str, str]


class RegisteredStore(Struct):
    """A store in the words of `stores.yaml`. Null: not said there.

    `groups`: the newest version. `group_versions`: all of them, oldest first.
    """

    id: str
    name: str
    tenant: str
    timezone: str
    currency: str
    opening_hours: Mapping[str, Sequence[str]]
    floor_m2: Number | None
    open_since: date | None
    country: str | None
    subdivision: str | None
    day_starts_at: str
    closed_on: Sequence[date]
    week_starts_on: str
    comp_start_date: date | None
    conversion_target: Number | None
    sensors: Sequence[StoreSensor]
    zones: Sequence[StoreZone]
    groups: Mapping[str, str]
    group_versions: Sequence[StoreGroups]


class StoreList(Struct):
    """Every store of the caller's tenant, by id."""

    stores: Sequence[RegisteredStore]


class PlanZone(Struct):
    """A zone on a floor plan. `polygon`: its corners, x and y each, as fractions of the image from its upper left."""

    zone: str
    polygon: Sequence[tuple[float, float]]


class StoreFloorPlan(Struct):
    """The floor plan of a store. `version` changes with every save. `image`: the address of its image.

    `bytes`, `width`, `height`: of the image, in pixels.
    """

    store: str
    version: str
    saved_at: Instant
    image: Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})]
    media_type: str
    bytes: int
    width: int
    height: int
    zones: Sequence[PlanZone]


ReceiptText = Annotated[Any, Meta(extra_json_schema=object_schema(_TILLS.fields, {}))]
"""A receipt as it was received, byte for byte."""


class Receipt(Struct):
    """A receipt, and when the platform received it."""

    happened_at: Instant
    received_at: Instant | None
    vendor_fiscal_module: str
    transaction_id: str
    receipt: ReceiptText


class ReceiptPage(Struct):
    """Receipts of a store and UTC day, newest first. `next`: the `after` of the next page, null on the last."""

    store: str
    day: date
    receipts: Sequence[Receipt]
    next: str | None
