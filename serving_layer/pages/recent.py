"""Answers of the overview of many stores, which may be some seconds old: adding up hundreds of stores takes a while.

Every answer is exact as of its own snapshot, and the page shows the time of that snapshot. docs/explanation/caching.md
says how old it may be.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import LRUCache

from serving_layer.caching import retrieve_exception
from serving_layer.store.snapshot import ReadVersion

MANY_STORES = 100
"""From so many stores on, answers may be some seconds old."""
TIMES_COMPUTED, MOST_SECONDS = 10, 20.0
"""Once computed, they are shown for that many times as long as it took, and at most for so many seconds."""
RENEWED_AFTER = 0.25
"""Of that time, after which the next visit has them computed again in the background."""
PAGES_KEPT = 64

Result = TypeVar("Result")


@dataclass(frozen=True)
class Computed(Generic[Result]):
    """Answers, and what they were computed from.

    Attributes:
        version: what they were computed from.
        result: the answers.
        at: when they were there, in monotonic seconds.
        lasts: for how many seconds from then on they may be shown while events arrive.
    """

    version: ReadVersion
    result: Result
    at: float
    lasts: float


Compute = Callable[[ReadVersion], Awaitable[Result]]


class RecentAnswers(Generic[Result]):
    """The answers of pages about many stores, within bounds. Belongs to one event loop.

    Nothing but events may have arrived since: a publication, a change of the registry or another day needs new answers.
    """

    def __init__(self, clock: Callable[[], float], is_kept: Callable[[Result], bool]) -> None:
        """Nothing is kept yet.

        Args:
            clock: monotonic seconds.
            is_kept: whether a result may be shown again: what failed may not.
        """
        self._clock, self._is_kept = clock, is_kept
        self._kept: LRUCache[Hashable, Computed[Result]] = LRUCache(PAGES_KEPT)
        self._computing: dict[Hashable, asyncio.Task[Computed[Result]]] = {}

    async def get(self, page: Hashable, version: ReadVersion, compute: Compute[Result]) -> Computed[Result]:
        """The answers of a page.

        Args:
            page: the visibility scope of the visitor, and all that the page asks for.
            version: what they would be computed from now.
            compute: computes them. If it raises, everybody who waits for them gets the exception, and nothing is kept.
        """
        key = (page, version.key_without_events)
        kept = self._kept.get(key)
        if kept is not None and kept.version.key == version.key:
            return kept
        age = 0.0 if kept is None else self._clock() - kept.at
        if kept is None or age > kept.lasts:
            return await asyncio.shield(self._computed(key, version, compute))
        if age > RENEWED_AFTER * kept.lasts:
            self._computed(key, version, compute).add_done_callback(retrieve_exception)
        return kept

    def _computed(
        self, key: Hashable, version: ReadVersion, compute: Compute[Result]
    ) -> "asyncio.Task[Computed[Result]]":
        """The computation that is under way, or a new one."""
        if key not in self._computing:
            self._computing[key] = asyncio.ensure_future(self._compute(key, version, compute))
        return self._computing[key]

    async def _compute(self, key: Hashable, version: ReadVersion, compute: Compute[Result]) -> Computed[Result]:
        began_at = self._clock()
        try:
            result = await compute(version)
        finally:
            del self._computing[key]
        at = self._clock()
        found = Computed(version, result, at, min(TIMES_COMPUTED * (at - began_at), MOST_SECONDS))
        if self._is_kept(result):
            self._kept[key] = found
        return found
