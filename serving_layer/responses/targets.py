"""Targets of stores: what a load has made of them."""

from msgspec import Struct

from serving_layer.responses.encoding import Instant


class LoadedTargets(Struct):
    """The targets of a tenant after a load. `count`: of all its targets."""

    tenant: str
    version: str
    count: int
    loaded_at: Instant
