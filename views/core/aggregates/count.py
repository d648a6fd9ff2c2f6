"""How many rows there are, or how many of them a condition holds for."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.column import Column
from views.core.aggregates.number import Number


@dataclass(frozen=True)
class Count(Number):
    """The state is the number. `where`: a Spark SQL condition; a row where it is NULL does not count."""

    where: str = "true"

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(f"if({self.where}, 1L, 0L)", "sum")}
