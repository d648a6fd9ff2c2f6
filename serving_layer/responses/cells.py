"""The cells of a view with the states of each layer."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from serving_layer.responses.encoding import Instant
from serving_layer.responses.metrics import AsOf

StateValue = int | str | Mapping[str, int | str | Sequence[int | str | None] | None] | None
"""A whole number, a sketch as text, or an object for a composite state: `sum` and `n`, or `counts`, `min` and `max`."""
States = Mapping[str, StateValue]


class CellStates(Struct):
    """The states of one store, window and combination of dimensions, by layer. Null: the layer has no such cell.

    Money is in minor units.
    """

    store: str
    window: Instant
    dimensions: Mapping[str, str | None]
    batch: States | None
    speed: States | None
    merged: States


class CellsResponse(Struct):
    """The cells of a view, by store, window and dimensions."""

    view: str
    cells: Sequence[CellStates]
    as_of: AsOf
