"""What every answer says about itself."""

from serving_layer.query.read_snapshot import Basis
from serving_layer.query.timestamps import stamp

AsOf = dict[str, object]


def as_of(basis: Basis, waiting: int) -> AsOf:
    """The part `as_of` of an answer. `missing` is there only when a partial answer had to do without a layer."""
    told: AsOf = {
        "publication": basis.pointer.publication,
        "cut": stamp(basis.pointer.cut),
        "speed_as_of": stamp(basis.speed_as_of),
        "waiting_for_batch": waiting,
        "layers": basis.layers,
    }
    return told | {"missing": basis.missing} if basis.missing else told


def rests_on(basis: Basis) -> AsOf:
    """The same without `waiting_for_batch`, which belongs to windows."""
    return {name: told for name, told in as_of(basis, 0).items() if name != "waiting_for_batch"}
