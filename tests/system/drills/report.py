"""What a drill is to do, and what came of it."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Order:
    """What a drill does. The stream takes `seconds`, or longer.

    `crashes`: how many points of archive and speed. `pauses`: of how many components.
    """

    seed: int
    receipts: int
    rebuilds: int
    crashes: int
    pauses: int
    seconds: float


@dataclass
class Report:
    """What was done, and what was found. `wrong`: everything that must not be, in words."""

    order: Order
    faults: list[str] = field(default_factory=list)
    sent: int = 0
    acknowledged: int = 0
    events: int = 0
    archived: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    conflicts: int = 0
    cells: int = 0
    differing: int = 0
    answers: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> dict[str, Any]:
        """As it is kept."""
        return {**asdict(self), "verdict": "fail" if self.wrong else "pass"}
