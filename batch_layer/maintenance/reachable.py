"""What garbage collection keeps: what a kept publication names, and what an unfinished recompute may still need (R11).

Pure: no I/O, no clock.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from views.control.recompute import ENDS, RESUMABLE, owner


class HistoryEntry(NamedTuple):
    """A publication as garbage collection sees it."""

    number: int
    manifest: str
    published_at: datetime
    is_collected: bool


class RecomputeState(NamedTuple):
    """A recompute as garbage collection sees it; its runs are named by its id, see `run_named`."""

    state: str | None
    updated_at: datetime | None


@dataclass(frozen=True)
class Retention:
    """Keep the newest `publications`, those that were current within `shown`, and previews made within `shown`."""

    publications: int
    shown: timedelta


@dataclass(frozen=True)
class LiveRecomputes:
    """The recomputes whose cells may still be needed at `now`. `held`: ids that a process has locked."""

    recomputes: Mapping[str, RecomputeState]
    held: Collection[str]
    keep: Retention
    now: datetime

    def needs(self, run: str) -> bool:
        """Whether the run's recompute is in progress, can be resumed, or is a preview that is still shown."""
        return self._is_live(owner(run))

    def has_ended_without(self, run: str) -> bool:
        """Whether it belonged to a recompute that published nothing and is no longer needed."""
        own = self.recomputes.get(owner(run))
        return own is not None and own.state != "published" and not self.needs(run)

    def abandoned(self) -> list[str]:
        """The ids of recomputes that are in progress by their state, but have not been worked on for a long time."""
        return sorted(id_ for id_, each in self.recomputes.items() if each.state not in ENDS and not self._is_live(id_))

    def _is_live(self, id_: str) -> bool:
        if id_ in self.held:
            return True
        found = self.recomputes.get(id_)
        if found is None:
            return False
        age = max(2 * RESUMABLE, self.keep.shown) if found.state == "previewed" else 2 * RESUMABLE
        return found.updated_at is None or found.updated_at > self.now - age


class RunCells(NamedTuple):
    """The cells of a view and UTC day that a run wrote."""

    view: str
    day: date
    run: str


@dataclass(frozen=True)
class Reachable:
    """What is kept: the cells that a kept manifest names, and everything of runs that are needed."""

    named: Collection[RunCells]
    live: LiveRecomputes
    young: Collection[str] = frozenset()
    """Runs that wrote something recently."""

    def keeps(self, cells: RunCells) -> bool:
        """Whether these cells are kept."""
        return cells in self.named or cells.run in self.young or self.live.needs(cells.run)


def kept_publications(entries: Iterable[HistoryEntry], current: int, keep: Retention, now: datetime) -> set[int]:
    """The numbers of publications that are kept whole: never a collected one, always the current one."""
    listed = sorted(entries)
    shown = {each.number for each, after in pairwise(listed) if after.published_at > now - keep.shown}
    whole = [each.number for each in listed if each.manifest and not each.is_collected]
    return {current} | (set(whole) & (shown | set(whole[-keep.publications :])))
