"""Plays deliveries at the pace at which they were sent, or a multiple of it. The first one is sent at once."""

import time
from collections.abc import Callable, Iterable, Iterator

from lab.simulation.record import Delivery


def paced(
    deliveries: Iterable[Delivery],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Delivery]:
    """Give each when its time has come: `speed` seconds of theirs are one of the clock's. They are not changed."""
    began, first = clock(), None
    for each in deliveries:
        at = each.send_at.timestamp()
        first = at if first is None else first
        ahead = began + (at - first) / speed - clock()
        if ahead > 0:
            sleep(ahead)
        yield each
