"""How responses are encoded as JSON, and the types that all of them share."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

JSON = "application/json"
Number = int | float | Decimal
"""Written digit by digit: money is a Decimal and never goes through a float."""
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601 in UTC with `Z`; milliseconds where there are any."""
Optional = UnsetType
"""Beside a field's type: the field may be absent."""

Model = TypeVar("Model")

encode = msgspec.json.Encoder(decimal_format="number").encode
"""The bytes of a response, or of a part of one. Decimals are JSON numbers."""


def encoded(json: str | bytes, _: type[Model]) -> Model:
    """JSON that says a `Model` already: it goes into a response as it is, byte for byte, without being parsed."""
    return cast("Model", msgspec.Raw(json))


def fields_of(response: msgspec.Struct) -> dict[str, Any]:
    """The fields that are written, by the names that the JSON has: for whoever prints a response as a table."""
    names = zip(response.__struct_fields__, response.__struct_encode_fields__, strict=True)
    return {said: value for name, said in names if (value := getattr(response, name)) is not msgspec.UNSET}


class PartitionProgress(Struct, frozen=True):
    """How far the speed layer has read a partition: everything before `position`. `needed`: the position to reach."""

    topic: str
    partition: int
    position: int
    needed: int

    @property
    def lack(self) -> int:
        """How many offsets are left to read."""
        return max(self.needed - self.position, 0)


class ReadProgress(Struct, frozen=True):
    """How far an answer would reach, and what it would have to reach.

    `cut`: of the publication. `cut_needed`: the earliest that contains what only batch counts; null if that does not
    matter. `positions`: the partitions that were not read far enough.
    """

    cut: Instant
    cut_needed: Instant | None
    positions: Sequence[PartitionProgress]


class Problem(Struct):
    """RFC 9457. `title` says what happened, `detail` what to do; `code` is stable. `type`: the path of what it means.

    `field`: the field of the body to change; empty: all of it. `progress`: with `not_yet`.
    """

    type: Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})]
    title: str
    detail: str
    code: str
    status: int
    field: str | UnsetType = UNSET
    progress: ReadProgress | UnsetType = UNSET


class ProblemType(Struct, frozen=True):
    """What a code means. `type`: the path of this page; `acts`: who has to do something; `status`: of the response."""

    type: str
    code: str
    meaning: str
    acts: str
    status: int


class ProblemTypeList(Struct):
    """Every code, in order."""

    problems: Sequence[ProblemType]


def iso_epoch(at: int) -> str:
    """ISO 8601 in UTC with `Z`."""
    return f"{datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()}Z"


@overload
def iso_instant(at: datetime) -> str: ...
@overload
def iso_instant(at: None) -> None: ...
@overload
def iso_instant(at: datetime | None) -> str | None: ...
def iso_instant(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with `Z`; milliseconds where there are any."""
    if at is None:
        return None
    spec = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"
