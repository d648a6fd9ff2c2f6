"""What every answer says about itself."""

from msgspec import UNSET

from serving_layer.query.read_snapshot import Basis
from serving_layer.query.timestamps import stamp
from serving_layer.responses.metrics import AsOf, Provenance


def as_of(basis: Basis, waiting: int) -> AsOf:
    """The part `as_of` of an answer. `missing` is there only when a partial answer had to do without a layer."""
    return AsOf(
        publication=basis.pointer.publication,
        cut=stamp(basis.pointer.cut),
        speed_as_of=stamp(basis.speed_as_of),
        waiting_for_batch=waiting,
        layers=basis.layers,
        missing=basis.missing or UNSET,
    )


def provenance(basis: Basis) -> Provenance:
    """The same without `waiting_for_batch`, which belongs to windows."""
    return Provenance(
        publication=basis.pointer.publication,
        cut=stamp(basis.pointer.cut),
        speed_as_of=stamp(basis.speed_as_of),
        layers=basis.layers,
        missing=basis.missing or UNSET,
    )
