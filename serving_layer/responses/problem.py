"""An error."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType


class Problem(Struct):
    """RFC 9457. `title` says what happened, `detail` what to do; `code` is stable.

    `field`: the field of the body to change; empty: all of it.
    """

    type: Annotated[str, Meta(extra_json_schema={"format": "uri"})]
    title: str
    detail: str
    code: str
    status: int
    field: str | UnsetType = UNSET
