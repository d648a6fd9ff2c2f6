"""A bounded memory of things that never change, by weight: what was used longest ago goes first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Lru(Generic[Value]):
    """Holds at most `capacity` of weight. A thing heavier than that is not kept at all."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in the unit of the weights."""
        self._capacity = capacity
        self._held: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable) -> Value | None:
        """The thing, or None."""
        entry = self._held.get(key)
        if entry is None:
            return None
        self._held.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, weight: int = 1) -> None:
        """Keep the thing, and let go of others until it fits."""
        if key in self._held:
            self._weight -= self._held.pop(key)[1]
        if weight > self._capacity:
            return
        self._held[key] = (value, weight)
        self._weight += weight
        while self._weight > self._capacity:
            _, (_, released) = self._held.popitem(last=False)
            self._weight -= released
