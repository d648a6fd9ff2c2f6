"""The corrected facts of a publication that an audit of alerts needs. The batch layer implements `AuditFacts`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from views.alerts.alert import AlertCause
from views.core.local_time import Span


@dataclass(frozen=True)
class AuditScope:
    """The publication that is audited, and the time that the audit covers. All times are ms since 1970.

    Attributes:
        publication: Its number.
        since_ms: The cut of the publication that was audited last.
        until_ms: The cut of this one.
        oldest_ms: Windows that ended before are not audited, as the log may have lost their alerts.
        grace_ms: How long after its end the speed layer judges a window first.
        fresh_ms: How long after its end the speed layer may still raise an alert.
        kept_ms: How far back the speed layer remembers cells.
    """

    publication: int
    since_ms: int
    until_ms: int
    oldest_ms: int
    grace_ms: int
    fresh_ms: int
    kept_ms: int

    def due_ms(self, end_s: int) -> int:
        """When a window that ends then (seconds) is judged."""
        return end_s * 1000 + self.grace_ms

    def is_due(self, end_s: int) -> bool:
        """Whether the publication contains the whole window, and the log its alerts."""
        return end_s * 1000 >= self.oldest_ms and self.due_ms(end_s) <= self.until_ms


class SignQuery(NamedTuple):
    """A query for signs of life within (`since_ms`, `until_ms`).

    Attributes:
        store: Id of the store.
        sensor: Of one sensor; None: of anything in the store.
        since_ms: Exclusive.
        until_ms: Exclusive.
        is_new: Whether no earlier audit made this query.
    """

    store: str
    sensor: str | None
    since_ms: int
    until_ms: int
    is_new: bool


class SignOfLife(NamedTuple):
    """An event that shows that a store or sensor was alive at `at_ms`.

    Attributes:
        at_ms: When it was alive.
        received_ms: When the event was received.
        waited: Whether it was too old on arrival for the speed layer.
        misrouted: Whether it lay in another partition than its store's.
    """

    at_ms: int
    received_ms: int
    waited: bool
    misrouted: bool = False


class CauseQuery(NamedTuple):
    """A query for why the numbers of these windows differ from those that the log had at `after_ms`."""

    view: str
    store: str
    spans: tuple[Span, ...]
    after_ms: int


class AuditFacts(Protocol):
    """Everything that was received before the cut, by the numbers of the publication."""

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:
        """The states of a view in a window, in the order of `AlertableView.states`; None without an event."""

    def touched(self, view: str) -> Mapping[str, Collection[int]]:
        """Store to the quarters of an hour whose cells have changed since the last audit, or were not over then."""

    def has_cells(self, view: str, store: str, span: Span) -> bool:
        """Whether the store has any event there."""

    def signs(self, source: str, queries: Collection[SignQuery]) -> Mapping[SignQuery, Sequence[SignOfLife]]:
        """The signs of life for each query; for one that is not new, those received since the last audit suffice."""

    def causes(self, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        """The cause for each query. An audit queries all of them at once."""
