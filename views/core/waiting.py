"""Which events only batch counts, by when they happened and were received: the rule of the speed layer, for one event.

The speed layer leaves them to the next publication and counts them as waiting (R5, R6): `speed_layer.contributions`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Self

from master_dataset.visits.visit import VisitRules
from views.core.view import View

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class WaitingRule:
    """Which events wait.

    Attributes:
        oldest: The greatest age on arrival of events that the speed layer counts (A of R5).
        visits: When sightings make a visit.
        sightings: The topics from whose events visits are made.
    """

    oldest: timedelta
    visits: VisitRules
    sightings: frozenset[str]

    @classmethod
    def of(cls, views: Iterable[View], oldest: timedelta, visits: VisitRules) -> Self:
        """The rule for these views."""
        return cls(oldest, visits, frozenset(view.source.topic for view in views if view.counts_visits))

    def waits(self, topic: str, happened_ms: int, received_ms: int) -> bool:
        """Whether at least one view counts the event only once it is published."""
        age = received_ms - happened_ms
        if age > self._oldest_ms:
            return True
        if topic not in self.sightings:
            return False
        least, greatest = self.visits.fresh_ages
        return not least <= age <= greatest

    @cached_property
    def _oldest_ms(self) -> int:
        """The greatest whole number of milliseconds that is not more than `oldest`."""
        return self.oldest // _MS
