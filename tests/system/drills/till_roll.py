"""What a client has sent, and the response to each: the expected answers follow from these alone."""

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.system.drills.history import History, Operation, micros

OLDEST = timedelta(hours=23)
"""What is older on arrival is left to batch."""


class Slip(NamedTuple):
    """One record. `identity`: None for one that is broken. `minor`: what the receipt adds up to, in cents."""

    value: bytes
    store: str
    identity: tuple[str, int] | None = None
    happened_at: datetime | None = None
    minor: int = 0


class Delivery(NamedTuple):
    """Where it came to lie, and how the broker stamped it."""

    slip: Slip
    partition: int
    offset: int
    received_at: datetime

    @property
    def is_old(self) -> bool:
        """Whether speed leaves it to batch."""
        return self.slip.happened_at is not None and self.received_at - self.slip.happened_at > OLDEST


class Due(NamedTuple):
    """What an answer at a cut has to say."""

    receipts: int
    minor: int
    waiting: int


@dataclass
class TillRoll:
    """Written by one client, in several threads. `handed`: identities that an answer may contain from now on.

    `unknown`: sends whose outcome nobody knows; `failed`: those that were refused for certain. `history`: also gets all
    of it; None: nobody keeps one.
    """

    deliveries: list[Delivery] = field(default_factory=list)
    handed: set[tuple[str, int]] = field(default_factory=set)
    sent: int = 0
    unknown: int = 0
    failed: int = 0
    history: History | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def hand_over(self, slip: Slip) -> None:
        """It is about to be sent."""
        with self._lock:
            self.sent += 1
            if slip.identity is not None:
                self.handed.add(slip.identity)
            happened_us = None if slip.happened_at is None else micros(slip.happened_at)
            self._add(Operation.SEND, slip, minor=slip.minor, happened_us=happened_us)

    def delivered(self, delivery: Delivery) -> None:
        """It was acknowledged."""
        with self._lock:
            self.deliveries.append(delivery)
            place = {"partition": delivery.partition, "offset": delivery.offset}
            self._add(Operation.ACK, delivery.slip, **place, received_us=micros(delivery.received_at))

    def is_unknown(self, slip: Slip) -> None:
        """Nobody knows whether it came to lie."""
        with self._lock:
            self.unknown += 1
            self._add(Operation.UNKNOWN, slip)

    def _add(self, operation: Operation, slip: Slip, **fields: int | None) -> None:
        if self.history is not None:
            number = None if slip.identity is None else slip.identity[1]
            self.history.add(operation, store=slip.store, number=number, **fields)

    @property
    def receipts(self) -> int:
        """How many receipts an answer may contain at most."""
        return len(self.handed)

    @property
    def broken(self) -> int:
        """Acknowledged records that are no receipts."""
        return sum(each.slip.identity is None for each in self.deliveries)

    @property
    def duplicates(self) -> int:
        """Acknowledged deliveries behind the first of their receipt."""
        return len(self.deliveries) - self.broken - len(self._firsts())

    def due(self, cut: datetime) -> Due:
        """Of everything acknowledged: what was received before the cut, and the young rest; what waits since then."""
        shown = self.shown(cut)
        with self._lock:
            waiting = sum(each.is_old and each.received_at >= cut for each in self.deliveries)
        return Due(len(shown), sum(each.slip.minor for each in shown), waiting)

    def shown(self, cut: datetime) -> list[Delivery]:
        """The first deliveries that an answer at a cut contains."""
        return [each for each in self._firsts().values() if not each.is_old or each.received_at < cut]

    def _firsts(self) -> dict[tuple[str, int], Delivery]:
        """A receipt lies in one partition, that of its store: the least offset is the first delivery."""
        with self._lock:
            ordered = sorted(self.deliveries, key=lambda each: each.offset)
        firsts: dict[tuple[str, int], Delivery] = {}
        for each in ordered:
            if each.slip.identity is not None:
                firsts.setdefault(each.slip.identity, each)
        return firsts
