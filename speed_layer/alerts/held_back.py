"""Whether an open transaction holds the readers of alerts back, and for how long: they see nothing behind its begin."""

from collections.abc import Mapping
from typing import NamedTuple

LONGEST_SECONDS = 45.0
"""The broker aborts a transaction that is open for 30 s, and looks for such ones every 10 s."""


class Held(NamedTuple):
    """`records`: behind open transactions, whether aborted ones or ends of others among them or not."""

    records: int
    seconds: float

    @property
    def is_too_long(self) -> bool:
        """Nobody has ended it who should have."""
        return self.seconds > LONGEST_SECONDS


class HeldBack:
    """Looks again and again."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._since: dict[int, tuple[int, float]] = {}

    def look(self, ends: Mapping[int, int], stable_ends: Mapping[int, int], now: float) -> Held:
        """`ends`, `stable_ends`: of each partition, the last record and the last that readers may see. `now`: in s.

        A stable end that has moved since is another transaction's.
        """
        before, self._since = self._since, {}
        for partition, end in ends.items():
            stable = stable_ends.get(partition, end)
            if stable < end:
                seen, since = before.get(partition, (stable, now))
                self._since[partition] = (stable, since if seen == stable else now)
        longest = max((now - since for _, since in self._since.values()), default=0.0)
        return Held(sum(ends[each] - stable for each, (stable, _) in self._since.items()), longest)
