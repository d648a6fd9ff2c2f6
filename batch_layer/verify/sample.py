"""Some days of many, drawn by chance that can be repeated."""

import random
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Sample:
    """`number` days at most. The same `seed` draws the same days of the same ones."""

    number: int
    seed: int

    def draw(self, days: Collection[date]) -> list[date]:
        """In order."""
        known = sorted(days)
        return sorted(random.Random(self.seed).sample(known, min(self.number, len(known))))  # noqa: S311 - no secret
