"""An average that stays right when parts of it are put together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from views.core.aggregates.aggregate import Shown, State
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
        total, n = (int(value or 0) for value in state)
        return Fraction(total, n) if n else None

    def shown(self, state: State) -> Shown:
        """The sum and the number."""
        return dict(zip(("sum", "n"), state, strict=True))
