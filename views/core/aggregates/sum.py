"""A total of whole numbers: minor units, thousandths, milliseconds, pieces."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.column import Column
from views.core.aggregates.number import Number


@dataclass(frozen=True)
class Sum(Number):
    """The state is the total. `of`: Spark SQL giving a whole number; NULL adds nothing. No float is ever summed."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(self.of, "sum")}
