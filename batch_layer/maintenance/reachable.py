"""What the collector may take away: everything that no kept publication names and no living work may still need (R11).

Pure: no store, no clock.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from views.control.recompute import ENDS, owner

RESUMABLE = timedelta(days=1)
"""A recompute that was not touched for so long is planned anew, under another run's name, when it is resumed.

Its cells are kept for twice as long, so that no resumption crosses a collection.
"""


class Entry(NamedTuple):
    """A publication as the collector sees it."""

    number: int
    manifest: str
    published_at: datetime
    is_collected: bool


class Work(NamedTuple):
    """A recompute as the collector sees it; its runs are named by its id, see `run_named`."""

    state: str | None
    updated_at: datetime | None


@dataclass(frozen=True)
class Keep:
    """The newest `publications`, those that readers were shown within `shown`, and previews as young as that."""

    publications: int
    shown: timedelta


@dataclass(frozen=True)
class Living:
    """The recomputes whose cells somebody may still need, at `now`. `held`: ids that a process holds."""

    works: Mapping[str, Work]
    held: Collection[str]
    keep: Keep
    now: datetime

    def needs(self, run: str) -> bool:
        """Whether the run's recompute goes on, may be resumed, or is a preview that is still shown."""
        return self._lives(owner(run))

    def has_ended_without(self, run: str) -> bool:
        """Whether it belonged to a recompute that published nothing, and is needed no more."""
        own = self.works.get(owner(run))
        return own is not None and own.state != "published" and not self.needs(run)

    def abandoned(self) -> list[str]:
        """The ids of recomputes that are said to go on, while nobody has worked on them for long."""
        return sorted(id_ for id_, work in self.works.items() if work.state not in ENDS and not self._lives(id_))

    def _lives(self, id_: str) -> bool:
        if id_ in self.held:
            return True
        work = self.works.get(id_)
        if work is None:
            return False
        age = max(2 * RESUMABLE, self.keep.shown) if work.state == "previewed" else 2 * RESUMABLE
        return work.updated_at is None or work.updated_at > self.now - age


class Place(NamedTuple):
    """The cells of a view and UTC day that a run wrote."""

    view: str
    day: date
    run: str


@dataclass(frozen=True)
class Reach:
    """What stays: `places` that a kept manifest names, and everything of runs that are needed."""

    places: Collection[Place]
    living: Living
    young: Collection[str] = frozenset()
    """Runs that wrote something lately."""

    def keeps(self, place: Place) -> bool:
        """Whether these cells stay."""
        return place in self.places or place.run in self.young or self.living.needs(place.run)


def kept(entries: Iterable[Entry], current: int, keep: Keep, now: datetime) -> set[int]:
    """The numbers of publications that stay whole. One that was collected never comes back; the current one stays."""
    listed = sorted(entries)
    shown = {each.number for each, after in pairwise(listed) if after.published_at > now - keep.shown}
    whole = [each.number for each in listed if each.manifest and not each.is_collected]
    return {current} | (set(whole) & (shown | set(whole[-keep.publications :])))
