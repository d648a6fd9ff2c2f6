"""How many different ones there are: an HLL sketch, as the exact set would hold every one of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from views.core.aggregates.aggregate import State
from views.core.aggregates.column import Column
from views.core.sketch import estimate


@dataclass(frozen=True)
class CountDistinct:
    """The state is a sketch (`views.core.sketch`). `of`: Spark SQL of what is told apart; NULL does not count."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One sketch; of two their union."""
        return {"": Column(f"if(({self.of}) is null, null, xxhash64({self.of}))", "union")}

    def present(self, state: State) -> int | None:
        """The estimate, rounded: exact up to 384."""
        [sketch] = state
        return round(estimate(sketch)) if isinstance(sketch, str) else None

    def shown(self, state: State) -> str | None:
        """The sketch in base64, as DataSketches reads it."""
        [sketch] = state
        return sketch if isinstance(sketch, str) else None
