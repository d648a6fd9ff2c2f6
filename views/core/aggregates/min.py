"""The least of whole numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.aggregate import State
from views.core.aggregates.column import Column


@dataclass(frozen=True)
class Min:
    """The state is the least value, or None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; of two the least stays."""
        return {"": Column(self.of, "min")}

    def present(self, state: State) -> int | None:
        """The value itself."""
        return state[0]
