"""How much is done and waited for at once."""

from typing import NamedTuple


class Limits(NamedTuple):
    """`under_way`: calls at once. `waiting`: records taken from the broker and not done. `batch`: records of one call.

    `longest_wait`: seconds between two tries, at most. `leave`: seconds that calls under way have at the end.
    """

    under_way: int = 8
    waiting: int = 1000
    batch: int = 500
    longest_wait: float = 60.0
    leave: float = 10.0


USUAL = Limits()
