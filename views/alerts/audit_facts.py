"""What an audit asks of the corrected facts of a publication. Whoever has them answers: no engine here."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from views.alerts.alert import AlertCause
from views.core.local_time import Span


@dataclass(frozen=True)
class AuditScope:
    """Of one audit. All times are milliseconds since 1970.

    `since_ms`: the cut of the publication that was looked at last; `until_ms`: of the one that is looked at now.
    `oldest_ms`: windows that ended before are let be, as the log may have forgotten what was told of them.
    `grace_ms`, `fresh_ms`, `kept_ms`: how long after its end a window is judged first, and may still raise, by whoever
    follows the log; and how far back that remembers cells.
    """

    publication: int
    since_ms: int
    until_ms: int
    oldest_ms: int
    grace_ms: int
    fresh_ms: int
    kept_ms: int

    def due_ms(self, end_s: int) -> int:
        """When a window with that end is judged."""
        return end_s * 1000 + self.grace_ms

    def is_due(self, end_s: int) -> bool:
        """Whether the publication says all of it, and the log what was told."""
        return end_s * 1000 >= self.oldest_ms and self.due_ms(end_s) <= self.until_ms


class SignQuery(NamedTuple):
    """Signs of life within (`since_ms`, `until_ms`). `sensor`: None: of the store. `is_new`: never asked for before."""

    store: str
    sensor: str | None
    since_ms: int
    until_ms: int
    is_new: bool


class SignOfLife(NamedTuple):
    """`waited`: it was too old on arrival to be followed; `miskeyed`: it lay in another partition than its store's."""

    at_ms: int
    received_ms: int
    waited: bool
    miskeyed: bool = False


class CauseQuery(NamedTuple):
    """Why numbers of these windows are others than was known when the log was at `after_ms`."""

    view: str
    store: str
    spans: tuple[Span, ...]
    after_ms: int


class AuditFacts(Protocol):
    """Everything received before the cut, as the publication says it."""

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:
        """The states of a view in a window, in the order of `Followed.states`; None: no event."""

    def touched(self, view: str) -> Mapping[str, Collection[int]]:
        """Store to the quarters whose cells are others than at the last audit, or were not over by then."""

    def has_cells(self, view: str, store: str, span: Span) -> bool:
        """Whether the store has any event there."""

    def signs(self, source: str, wanted: Collection[SignQuery]) -> Mapping[SignQuery, Sequence[SignOfLife]]:
        """By what was asked for; of old ones, what came since the last audit is enough."""

    def causes(self, asked: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        """Of each question its answer. All that an audit has are asked at once."""
