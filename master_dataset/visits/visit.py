"""Visits, derived from the Wi-Fi sightings of devices by one rule in both layers.

A bundle collects the sightings of a device as they are received, until none arrives for longer than a gap. Closing by
time of receipt means that a published visit never changes: a later sighting belongs to another bundle. A bundle is on
exactly one side of every cut, like an event: in the epoch of its last receipt + gap.

All times are milliseconds since 1970.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Self

_MS = timedelta(milliseconds=1)
_VERSION = 1
"""Incremented whenever the same sightings would lead to different visits."""


@dataclass(frozen=True)
class VisitRules:
    """The thresholds of visits.

    Attributes:
        gap: A longer absence ends a visit.
        ahead: How far a sensor's clock may be fast.
        min_stay: A shorter stay was outside the store.
        engaged_stay: A shorter stay is a bounce.
        longest: A longer stay is not a visitor.
    """

    gap: int
    ahead: int
    min_stay: int
    engaged_stay: int
    longest: int

    @classmethod
    def of_gap(cls, gap: timedelta) -> Self:
        """Derive the others from the gap: for 30 minutes, 5 minutes, 2 minutes, 5 minutes and 6 hours."""
        own = gap // _MS
        return cls(own, own // 6, own // 15, own // 6, 12 * own)

    def fingerprint(self) -> str:
        """Return all rules and the version of the algorithm as text: equal for equal visits."""
        return f"{_VERSION}: {self.gap} {self.ahead} {self.min_stay} {self.engaged_stay} {self.longest} ms"

    @property
    def fresh_ages(self) -> tuple[int, int]:
        """The least and the greatest age at which a delivery is fresh: its repeats then arrive within one gap of it."""
        return -self.ahead, self.gap - self.ahead

    @property
    def longest_known(self) -> timedelta:
        """How far back sightings matter to an open bundle; one that began earlier is not a visitor in any case."""
        return (self.longest + 2 * self.gap) * _MS


RULES = VisitRules.of_gap(timedelta(minutes=30))


class Sighting(NamedTuple):
    """A router saw a device. `received`: the broker's timestamp."""

    received: int
    happened: int
    is_inside: bool


class Visit(NamedTuple):
    """One visit. `at`: decides its window. `stay`: from the first to the last sighting inside.

    `is_stationary`: staff or a printer, of which nothing else is counted.
    """

    at: int
    stay: int
    is_stationary: bool


class Stretch(NamedTuple):
    """Sightings without an absence of more than a gap. `newest`: when the last received one happened."""

    first: int
    last: int
    first_inside: int | None
    last_inside: int | None
    newest: int

    def plus(self, later: "Stretch") -> "Stretch":
        """Combine it with a stretch that was received later."""
        inside = [each for each in (self.first_inside, later.first_inside) if each is not None]
        until = [each for each in (self.last_inside, later.last_inside) if each is not None]
        return Stretch(
            min(self.first, later.first),
            max(self.last, later.last),
            min(inside, default=None),
            max(until, default=None),
            later.newest,
        )


def add_sighting(stretches: Sequence[Stretch], sighting: Sighting, gap: int) -> tuple[Stretch, ...]:
    """Add a sighting to stretches that lie more than a gap apart. It may join two of them."""
    at, inside = sighting.happened, sighting.happened if sighting.is_inside else None
    own, apart = Stretch(at, at, inside, inside, at), []
    for each in stretches:
        if each.first - gap <= at <= each.last + gap:
            own = each.plus(own)
        else:
            apart.append(each)
    return (*apart, own)


def visits_of(stretches: Sequence[Stretch], rules: VisitRules) -> Iterator[Visit]:
    """Yield a visit for each stretch; one that lasts too long is stationary."""
    for each in sorted(stretches):
        if each.last - each.first > rules.longest:
            yield Visit(each.newest, 0, is_stationary=True)
        else:
            stay = (each.last_inside or 0) - (each.first_inside or 0)
            yield Visit(each.first, stay, is_stationary=False)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The sightings of one store, device, business day and partition. `newest`: when the last received one happened."""

    first_received: int
    last_received: int
    newest: int
    stretches: tuple[Stretch, ...]

    @classmethod
    def of(cls, sighting: Sighting, gap: int) -> "Bundle":
        """Start a bundle."""
        return cls(sighting.received, sighting.received, sighting.happened, add_sighting((), sighting, gap))

    def accepts(self, received: int, gap: int) -> bool:
        """Return whether a sighting received at this time belongs to the bundle."""
        return received - self.last_received <= gap

    def plus(self, sighting: Sighting, gap: int) -> "Bundle":
        """Add a sighting. If timestamps step back, the latest one counts."""
        last = max(self.last_received, sighting.received)
        return Bundle(self.first_received, last, sighting.happened, add_sighting(self.stretches, sighting, gap))

    def closes_at(self, gap: int) -> int:
        """Return when the bundle closes: later sightings start another one."""
        return self.last_received + gap

    def visits(self, rules: VisitRules) -> Iterator[Visit]:
        """Yield its visits. If its sightings arrive over too long a time, it is stationary."""
        if self.last_received - self.first_received > rules.longest:
            yield Visit(self.newest, 0, is_stationary=True)
        else:
            yield from visits_of(self.stretches, rules)


def bundles_of(sightings: Iterable[Sighting], gap: int) -> Iterator[Bundle]:
    """Yield the bundles of sightings, which must be in the order of their partition."""
    bundle: Bundle | None = None
    for each in sightings:
        if bundle is not None and bundle.accepts(each.received, gap):
            bundle = bundle.plus(each, gap)
            continue
        if bundle is not None:
            yield bundle
        bundle = Bundle.of(each, gap)
    if bundle is not None:
        yield bundle
