"""Whose alerts and rules a question is about: a tenant's own, or those of whichever tenant an operator names."""

from typing import Annotated

from pydantic import Field

from master_dataset.errors import UnknownName
from serving_layer.keys.caller import Caller

DEFAULT = "default"
TenantName = Annotated[
    str | None,
    Field(max_length=256, min_length=1, description="For keys of all tenants: whose. A tenant's key says it already."),
]


def tenant_of(caller: Caller, named: str | None, otherwise: str) -> str:
    """The tenant of the key, or the one that is named. UnknownName for another one than the key's."""
    if caller.tenant is None:
        return named or otherwise
    if named not in (None, caller.tenant):
        raise UnknownName("tenant", named or "", (), do="Leave `tenant` out.")
    return caller.tenant
