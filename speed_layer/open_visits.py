"""The bundles that are open: what a device may still add to. Held by the driver, in the order of their last receipt.

Nothing of it is stored. What is open follows from the topic alone, so a driver that starts reads the last hours of it
again (`speed_layer.heard`).
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from master_dataset.visits.bundle import Bundle
from master_dataset.visits.rows import Row, Whose, rows_of
from master_dataset.visits.visit import Sighting, VisitRules


@dataclass
class OpenVisits:
    """By partition, as its records are in order and no other's are. `skew`: by how much (ms) stamps may step back."""

    rules: VisitRules
    skew: int
    _open: dict[int, OrderedDict[Whose, Bundle]] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)

    def hear(self, partition: int, whose: Whose, sighting: Sighting) -> Iterator[Row]:
        """Take a sighting, those of a partition in its order; gives the visits of the bundle that it closes, if any."""
        bundles, gap = self._open.setdefault(partition, OrderedDict()), self.rules.gap
        bundle = bundles.get(whose)
        closed: Iterator[Row] = iter(())
        if bundle is not None and bundle.takes(sighting.received, gap):
            bundles[whose] = bundle.plus(sighting, gap)
        else:
            closed = rows_of(whose, bundle, self.rules) if bundle is not None else closed
            bundles[whose] = Bundle.of(sighting, gap)
        bundles.move_to_end(whose)
        return closed

    def pass_time(self, partition: int, received: int) -> Iterator[Row]:
        """A record of the partition was received then (in ms): gives the visits of all bundles that it closes.

        Not before the skew is over, too: a stamp that steps back within it may still belong to them, and in batch does.
        """
        now = self._passed[partition] = max(received, self._passed.get(partition, received))
        bundles, closed = self._open.get(partition, OrderedDict()), []
        for whose, bundle in bundles.items():
            at = bundle.closes_at(self.rules.gap)
            if at >= now:  # they are in the order of their last receipt, but for the skew
                break
            if at < now - self.skew:
                closed.append(whose)
        for whose in closed:
            yield from rows_of(whose, bundles.pop(whose), self.rules)

    def __len__(self) -> int:
        """How many bundles are open."""
        return sum(map(len, self._open.values()))
