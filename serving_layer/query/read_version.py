"""When an answer is of: how far the layers and the registry were. Of one moment a question has one answer."""

from collections.abc import Hashable
from typing import NamedTuple

from serving_layer.query.read_snapshot import Basis


class Moment(NamedTuple):
    """Read once per request, before any row. `registry`: the version of the registered stores."""

    basis: Basis
    registry: int

    @property
    def mark(self) -> tuple[Hashable, ...]:
        """Equal as long as nothing moved that an answer rests on."""
        pointer = self.basis.pointer
        published = (pointer.publication, pointer.cut, pointer.manifest, pointer.generation)
        return (*published, self.basis.positions, self.basis.missing, self.basis.is_past, self.registry)
