"""What a kind of context has to give."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from serving_layer.asked import Asked
from serving_layer.merge import Cell
from views.core import View

Row = dict[str, object]
ReadCells = Callable[[View, str, int, int], Awaitable[list[Cell]]]
"""The merged cells of a view and a store with a window in [start, end), seconds since 1970."""


class Kind(Protocol):
    """One kind, by the name that `context=` asks for."""

    @property
    def name(self) -> str:
        """As it is asked for."""

    @property
    def views(self) -> Sequence[str]:
        """The views it reads; without them it is not available."""

    async def told(self, asked: Asked, read: ReadCells) -> Row:
        """What the answer says under that name: `rows`, and where they come from."""
