"""Types of parameters that several routes share: days, publication numbers, tenants, names and reasons."""

import re
from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from master_dataset.errors import UnknownNameError
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.keys.key import Caller

A_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _as_text(day: object) -> object:
    """A number, also one in a text, would be understood as seconds since 1970, and another day would be answered."""
    if day is not None and not (isinstance(day, str) and A_DAY.fullmatch(day)):
        raise ValueError("a day is a text such as `2026-11-21`")
    return day


Day = Annotated[date, BeforeValidator(_as_text)]


Number = Annotated[int, Field(ge=0, le=MAX_PUBLICATION)]
AsOfNumber = Annotated[
    int | None,
    Field(ge=0, le=MAX_PUBLICATION, description="Answer from this publication alone, exactly as it was published."),
]


DEFAULT = "default"
TenantName = Annotated[
    str | None,
    Field(max_length=256, min_length=1, description="For keys of all tenants: whose. A tenant's key says it already."),
]


def tenant_of(caller: Caller, named: str | None, otherwise: str) -> str:
    """The tenant of the key, or the one that is named. UnknownNameError for another one than the key's."""
    if caller.tenant is None:
        return named or otherwise
    if named not in (None, caller.tenant):
        raise UnknownNameError("tenant", named or "", (), do="Leave `tenant` out.")
    return caller.tenant


PRINTED = r"^[^\x00-\x1f\x7f]+$"

Name = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=PRINTED)]
Reason = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=PRINTED),
    Field(description="Kept in the history."),
]
