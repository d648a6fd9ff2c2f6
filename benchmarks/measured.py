"""One line of the table: what we reach, what the simplest thing reaches in the same run, and what was promised."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Measured:
    """`ours` and `beside` in `unit`. `limit` bounds their ratio (ours / beside), if something was promised.

    `better`: whether a high or a low ratio is good. `details` are kept with the results and shown beneath the table.
    """

    name: str
    ours: float
    beside: float
    unit: str
    what_is_beside: str
    better: Literal["high", "low"] = "high"
    limit: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times the baseline we reach."""
        return self.ours / self.beside if self.beside else 0.0

    @property
    def holds(self) -> bool | None:
        """Whether the promise is kept; None where none was made."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.better == "high" else self.ratio <= self.limit


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of them lies; of few values the nearest one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
