"""How far a partition is done without a gap: only that may be committed, else a record that is still under way is lost.

Offsets have gaps of their own (markers of transactions), so what is between two records counts as done.
"""

from collections import OrderedDict


class Prefix:
    """Of one partition. It remembers what is under way and no more, however much was done behind that."""

    def __init__(self) -> None:
        """Nothing has begun."""
        self._open: OrderedDict[int, None] = OrderedDict()
        self._next: int | None = None

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._open)

    @property
    def position(self) -> int | None:
        """Before it all is done; None as long as nothing has begun."""
        return next(iter(self._open), self._next)

    def begin(self, offset: int) -> None:
        """A record is under way. Offsets come in rising order."""
        self._open[offset] = None
        self._next = offset + 1

    def done(self, offset: int) -> None:
        """It is done."""
        del self._open[offset]
