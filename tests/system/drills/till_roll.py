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
    _firsts: dict[tuple[str, int], Delivery] = field(default_factory=dict, repr=False)
    """By receipt, which lies in one partition, that of its store: the one with the least offset."""
    _old: list[Delivery] = field(default_factory=list, repr=False)
    _young_receipts: int = 0
    _young_minor: int = 0
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
            self._keep_first(delivery)
            place = {"partition": delivery.partition, "offset": delivery.offset}
            self._add(Operation.ACK, delivery.slip, **place, received_us=micros(delivery.received_at))

    def _keep_first(self, delivery: Delivery) -> None:
        """What is due is asked again and again, so all but the old ones is summed up as it arrives."""
        identity = delivery.slip.identity
        if identity is None:
            return
        if delivery.is_old:
            self._old.append(delivery)
        former = self._firsts.get(identity)
        if former is not None and former.offset < delivery.offset:
            return
        self._firsts[identity] = delivery
        for each, times in ((former, -1), (delivery, 1)):
            if each is not None and not each.is_old:
                self._young_receipts += times
                self._young_minor += times * each.slip.minor

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
        return len(self.deliveries) - self.broken - len(self._firsts)

    def due(self, cut: datetime) -> Due:
        """Of everything acknowledged: what was received before the cut, and the young rest; what waits since then."""
        with self._lock:
            received = [each for each in self._old if each.received_at < cut]
            old = [each.slip.minor for each in received if self._is_first(each)]
            waiting = len(self._old) - len(received)
            return Due(self._young_receipts + len(old), self._young_minor + sum(old), waiting)

    def shown(self, cut: datetime) -> list[Delivery]:
        """The first deliveries that an answer at a cut contains."""
        with self._lock:
            firsts = list(self._firsts.values())
        return [each for each in firsts if not each.is_old or each.received_at < cut]

    def _is_first(self, delivery: Delivery) -> bool:
        return delivery.slip.identity is not None and self._firsts[delivery.slip.identity] is delivery
