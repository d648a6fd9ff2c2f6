"""How much memory what was met may take: at its limit the relay stops by name, and forgets nothing."""

from master_dataset.errors import OperatorError

IDENTITY_BYTES = 128
"""What an identity takes in a set, measured, the free places of the set included."""
DEFAULT_MB = 256
_MB = 1 << 20


class Room:
    """One for all partitions of a process."""

    def __init__(self, limit_mb: int) -> None:
        """Nothing is held yet."""
        self._limit_mb = limit_mb
        self._held: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """What the identities of all partitions take."""
        return sum(list(self._held.values())) * IDENTITY_BYTES

    def hold(self, partition: int, identities: int) -> None:
        """A partition remembers so many. OperatorError if all together take more than they may."""
        self._held[partition] = identities
        if self.bytes > self._limit_mb * _MB:
            what = f"the identities of the last day take more than the {self._limit_mb} MB that alerts may use"
            do = "raise GALATEA_ALERTS_IDENTITIES_MB if there is memory; none may be forgotten before its day is over"
            raise OperatorError(what, do=do)
