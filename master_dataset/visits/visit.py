"""A visit: a device comes into range, perhaps into the store, and is gone. One rule makes it, in both layers.

Times are whole milliseconds since 1970.

Bundles: sightings of a device as they were received, until nothing comes for more than a gap.

Closing by receipt never changes a visit that was shown: what comes after the close is in another bundle. So a bundle,
like an event, lies wholly on one side of every cut: by the epoch of (its last receipt + gap).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Self

_MS = timedelta(milliseconds=1)
_VERSION = 1
"""Another one where other visits are made of the same sightings."""


@dataclass(frozen=True)
class VisitRules:
    """`gap`: a longer absence ends a visit. `ahead`: how far a sensor's clock may be fast. `min_stay`: who stays less
    was not in the store. `engaged_stay`: who stays less bounced. `longest`: what lasts longer is no visitor.
    """  # noqa: D205 - one sentence needs two lines

    gap: int
    ahead: int
    min_stay: int
    engaged_stay: int
    longest: int

    @classmethod
    def of_gap(cls, gap: timedelta) -> Self:
        """Of 30 minutes: 5 minutes, 2 minutes, 5 minutes and 6 hours; other gaps keep these ratios."""
        own = gap // _MS
        return cls(own, own // 6, own // 15, own // 6, 12 * own)

    def told(self) -> str:
        """All of them and of which version the rule is that uses them: equal for equal visits."""
        return f"{_VERSION}: {self.gap} {self.ahead} {self.min_stay} {self.engaged_stay} {self.longest} ms"

    @property
    def longest_known(self) -> timedelta:
        """How far back sightings may matter to a bundle that is open: what began earlier is no visitor either way."""
        return (self.longest + 2 * self.gap) * _MS


RULES = VisitRules.of_gap(timedelta(minutes=30))


class Sighting(NamedTuple):
    """A device was heard. `received`: the broker's stamp."""

    received: int
    happened: int
    is_inside: bool


class Visit(NamedTuple):
    """`at`: the instant whose window it belongs to. `stay`: from the first to the last sighting inside.

    `is_stationary`: staff, a printer: nothing else is counted of it.
    """

    at: int
    stay: int
    is_stationary: bool


class Stretch(NamedTuple):
    """Sightings without an absence of more than a gap. `newest`: when the one happened that was received last."""

    first: int
    last: int
    first_inside: int | None
    last_inside: int | None
    newest: int

    def plus(self, later: "Stretch") -> "Stretch":
        """Both as one; `later` was received after it."""
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
    """The stretches, which lie more than a gap apart, with one more sighting: it may join two of them."""
    at, inside = sighting.happened, sighting.happened if sighting.is_inside else None
    own, apart = Stretch(at, at, inside, inside, at), []
    for each in stretches:
        if each.first - gap <= at <= each.last + gap:
            own = each.plus(own)
        else:
            apart.append(each)
    return (*apart, own)


def visits_of(stretches: Sequence[Stretch], rules: VisitRules) -> Iterator[Visit]:
    """Each stretch is a visit, or something stationary if it lasts too long for one."""
    for each in sorted(stretches):
        if each.last - each.first > rules.longest:
            yield Visit(each.newest, 0, is_stationary=True)
        else:
            stay = (each.last_inside or 0) - (each.first_inside or 0)
            yield Visit(each.first, stay, is_stationary=False)


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
        return cls(sighting.received, sighting.received, sighting.happened, add_sighting((), sighting, gap))

    def takes(self, received: int, gap: int) -> bool:
        """Whether what is received then belongs to it."""
        return received - self.last_received <= gap

    def plus(self, sighting: Sighting, gap: int) -> "Bundle":
        """It with one more sighting; where stamps step back, the latest stands."""
        last = max(self.last_received, sighting.received)
        return Bundle(self.first_received, last, sighting.happened, add_sighting(self.stretches, sighting, gap))

    def closes_at(self, gap: int) -> int:
        """From when on nothing can belong to it any more."""
        return self.last_received + gap

    def visits(self, rules: VisitRules) -> Iterator[Visit]:
        """The visits it holds; what was received for too long is stationary."""
        if self.last_received - self.first_received > rules.longest:
            yield Visit(self.newest, 0, is_stationary=True)
        else:
            yield from visits_of(self.stretches, rules)


def bundles_of(sightings: Iterable[Sighting], gap: int) -> Iterator[Bundle]:
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
