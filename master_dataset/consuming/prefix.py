"""How far a partition is done without a gap: only that may be committed, else a record that is still under way is lost.

Offsets have gaps of their own (markers of transactions), so what is between two records counts as done.
"""

from collections import OrderedDict


class Prefix:
    """Of one partition."""

    def __init__(self) -> None:
        """Nothing has begun."""
        self._open: OrderedDict[int, bool] = OrderedDict()
        self.position: int | None = None

    def begin(self, offset: int) -> None:
        """A record is under way. Offsets come in rising order."""
        if self.position is None:
            self.position = offset
        self._open[offset] = False

    def done(self, offset: int) -> None:
        """It is done. `position` moves behind the last record before which all are."""
        self._open[offset] = True
        while self._open:
            first, is_done = next(iter(self._open.items()))
            if not is_done:
                self.position = first
                return
            self._open.popitem(last=False)
            self.position = first + 1
