"""An average that stays right when parts of it are put together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from views.core.aggregates.aggregate import State
from views.core.aggregates.column import Column


@dataclass(frozen=True)
class Mean:
    """The state is (sum, n): an average of averages is wrong. `of`: Spark SQL, a whole number; NULL does not count."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """The sum of the values and their number."""
        return {"sum": Column(self.of, "sum"), "n": Column(f"if(({self.of}) is null, 0L, 1L)", "sum")}

    def present(self, state: State) -> Fraction | None:
        """Exact; rounded once, where it is printed. None without a value."""
        total, n = state
        return Fraction(total or 0, n) if n else None
