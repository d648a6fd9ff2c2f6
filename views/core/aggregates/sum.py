"""A total of whole numbers: minor units, thousandths, milliseconds, pieces."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.aggregate import State
from views.core.aggregates.column import Column


@dataclass(frozen=True)
class Sum:
    """The state is the total. `of`: Spark SQL giving a whole number; NULL adds nothing. No float is ever summed."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(self.of, "sum")}

    def present(self, state: State) -> int | None:
        """The total itself."""
        return state[0]
