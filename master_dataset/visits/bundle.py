"""Bundles: sightings of a device as they were received, until nothing comes for more than a gap.

Closing by receipt never changes a visit that was shown: what comes after the close is in another bundle. So a bundle,
like an event, lies wholly on one side of every cut: by the epoch of (its last receipt + gap).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from master_dataset.visits.visit import Sighting, Stretch, Visit, VisitRules, stretched, visits_of


@dataclass(frozen=True, slots=True)
class Bundle:
    """Of one store, device, business day and partition. `newest`: when the sighting happened that was received last."""

    first_received: int
    last_received: int
    newest: int
    stretches: tuple[Stretch, ...]

    @classmethod
    def of(cls, sighting: Sighting, gap: int) -> "Bundle":
        """A bundle that begins."""
        return cls(sighting.received, sighting.received, sighting.happened, stretched((), sighting, gap))

    def takes(self, received: int, gap: int) -> bool:
        """Whether what is received then belongs to it."""
        return received - self.last_received <= gap

    def plus(self, sighting: Sighting, gap: int) -> "Bundle":
        """It with one more sighting; where stamps step back, the latest stands."""
        last = max(self.last_received, sighting.received)
        return Bundle(self.first_received, last, sighting.happened, stretched(self.stretches, sighting, gap))

    def closes_at(self, gap: int) -> int:
        """From when on nothing can belong to it any more."""
        return self.last_received + gap

    def visits(self, rules: VisitRules) -> Iterator[Visit]:
        """The visits it holds; what was received for too long is stationary."""
        if self.last_received - self.first_received > rules.longest:
            yield Visit(self.newest, 0, is_stationary=True)
        else:
            yield from visits_of(self.stretches, rules)


def bundled(sightings: Iterable[Sighting], gap: int) -> Iterator[Bundle]:
    """The bundles of sightings that are given in the order of their partition."""
    bundle: Bundle | None = None
    for each in sightings:
        if bundle is not None and bundle.takes(each.received, gap):
            bundle = bundle.plus(each, gap)
            continue
        if bundle is not None:
            yield bundle
        bundle = Bundle.of(each, gap)
    if bundle is not None:
        yield bundle
