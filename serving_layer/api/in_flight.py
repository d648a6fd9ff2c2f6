"""How many requests are worked on at once, and what each of them holds meanwhile.

A request is not worked on while its client is what is waited for: neither before its body has arrived nor once its
answer has begun. So whoever sends slowly, or reads slowly, takes no place from others.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

PLACE = "galatea.place"


class InFlight:
    """Of one process and event loop. `now`: how many there are."""

    def __init__(self, most: int) -> None:
        """`most`: beyond it a request that comes is refused."""
        self.most = most
        self.now = 0

    @property
    def is_full(self) -> bool:
        """Whether another one is too many."""
        return self.now >= self.most


class Place:
    """What one request holds until its answer begins."""

    __slots__ = ("_ends", "_held", "_is_over", "_of")

    def __init__(self, of: InFlight) -> None:
        """Takes it."""
        self._of, self._held, self._is_over = of, 0, False
        self._ends: list[Callable[[int], None]] = []
        self.take()

    def take(self) -> None:
        """Work begins, or goes on."""
        if not self._held and not self._is_over:
            self._held = 1
            self._of.now += 1

    def leave(self) -> None:
        """The client is waited for."""
        self._of.now -= self._held
        self._held = 0

    def until_the_end(self, end: Callable[[int], None]) -> None:
        """Do this, with the status of the answer, when that begins; with 500 when there will be none."""
        self._ends.append(end)

    def end(self, status: int = 500) -> None:
        """The answer begins, or there will be none."""
        self.leave()
        self._is_over = True
        while self._ends:
            self._ends.pop()(status)


def place_of(scope: MutableMapping[str, Any]) -> Place:
    """That of a request, by its ASGI scope."""
    place: Place = scope[PLACE]
    return place
