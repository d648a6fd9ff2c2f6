"""What a kind of context reads with: the same merged cells, and the same basis, as the answer that it stands beside."""

from collections.abc import Iterable
from dataclasses import dataclass

from serving_layer.query.read_snapshot import Basis
from serving_layer.store.merged_cells import MergedCells
from views.core import View
from views.core.cut import seconds
from views.core.merge import Cell


@dataclass(frozen=True)
class Reading:
    """Belongs to one answer."""

    basis: Basis
    cells: MergedCells

    async def read(self, view: View, store: str, start: int, end: int) -> list[Cell]:
        """The merged cells with a window in [start, end), seconds since 1970. DefinitionNotPublished, CellMissing."""
        return await self.cells.read(self.basis, view, store, start, end)

    def is_final(self, view: View, end: int, cells: Iterable[Cell]) -> bool:
        """Whether these cells, all that there are until `end`, are settled and batch alone gave them."""
        settled = seconds(self.basis.pointer.cut) - int(view.settles_after.total_seconds())
        return not self.basis.missing and end <= settled and all(cell.speed is None for cell in cells)
