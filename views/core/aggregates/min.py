"""The least of whole numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.column import Column
from views.core.aggregates.number import Number


@dataclass(frozen=True)
class Min(Number):
    """The state is the least value, or None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; of two the least stays."""
        return {"": Column(self.of, "min")}
