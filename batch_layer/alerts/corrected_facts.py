"""The facts of an audit of alerts: published cells, correction ledgers, and the master dataset for single events.

sums, touched, has_cells <- PublishedCells        signs <- ArchivedSigns
causes                   <- LedgerCauses, and ArchivedSigns for windows that no ledger mentions
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson

from batch_layer.alerts.archived_signs import ArchivedEvent, ArchivedSigns, TimeRange
from batch_layer.alerts.published_cells import PublishedCells
from views.alerts.alert import AlertCause
from views.alerts.audit_facts import CauseQuery, SignOfLife, SignQuery
from views.core.cut import instant
from views.core.large_blocks import days_of_lines
from views.core.local_time import STEP, Span, round_down
from views.registry import view_named

if TYPE_CHECKING:
    from cassandra.cluster import Session

_LEDGER = "SELECT lines, written_at FROM ledgers WHERE subject = ?"
_BLOCK = "SELECT block FROM corrections WHERE subject = ? AND view_name = ? AND store = ? AND day = ?"
_LEDGER_CAUSES: Sequence[AlertCause] = ("unexplained", "miskeyed", "definition changed", "rolled back", "waited")
_SOONER = timedelta(days=1)
"""An event may be an hour ahead of its receipt; the rest allows for clock differences."""


@dataclass(frozen=True)
class LedgerCauses:
    """Causes by the correction ledgers of the publications `first` to `last`, as far as they are written."""

    session: "Session"
    first: int
    last: int

    def causes(self, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        """The most serious cause for each query; no entry if no cell of its windows was corrected."""
        found: dict[CauseQuery, set[str]] = {each: set() for each in queries}
        places: dict[tuple[str, str, date], list[tuple[CauseQuery, Span]]] = {}
        for each in queries:
            for span in each.spans:
                for day in {instant(at).date() for at in (span.start, span.end - 1)}:  # no window is longer than two
                    places.setdefault((each.view, each.store, day), []).append((each, span))
        since_s = min((span.start for each in queries for span in each.spans), default=0)
        for lines in self._written(instant(since_s) - _SOONER) if queries else ():
            for place, own in places.items():
                block = self._block(lines, *place)
                for each, span in own:
                    found[each].update(_within(block, span))
        gravest = {
            each: next((cause for cause in _LEDGER_CAUSES if cause in causes), None) for each, causes in found.items()
        }
        return {each: cause for each, cause in gravest.items() if cause is not None}

    def _written(self, since: datetime) -> Iterator[str]:
        """Subjects of lines, newest first. A ledger written before the windows began says nothing about them."""
        for number in range(self.last, self.first - 1, -1):
            row = self.session.execute(self.session.prepare(_LEDGER), (str(number),)).one()
            if row and row.written_at and row.written_at.replace(tzinfo=UTC) < since:
                return
            if row and row.lines:
                yield row.lines

    def _block(self, lines: str, view: str, store: str, day: date) -> Any:  # noqa: ANN401 - of two forms
        found: list[Any] = []
        select = self.session.prepare(_BLOCK)
        for kept_under in days_of_lines(day):
            row = self.session.execute(select, (lines, view, store, kept_under)).one()
            if row is None:
                break
            part = orjson.loads(row.block)
            if isinstance(part, Mapping):
                return part
            found += part
        return found


def _within(by_ledgers: Any, span: Span) -> Iterator[str]:  # noqa: ANN401 - likewise
    if isinstance(by_ledgers, Mapping):  # one line for the whole day
        yield by_ledgers["whole"]
        return
    yield from (line["cause"] for line in by_ledgers if span.start <= line["window"] < span.end)


_MS = timedelta(milliseconds=1)
_EVENT_CAUSES: Sequence[AlertCause] = ("miskeyed", "late", "waited", "unexplained")
_since, _until = attrgetter("since_ms"), attrgetter("until_ms")


@dataclass(frozen=True)
class CorrectedFacts:
    """Implements `AuditFacts`.

    Attributes:
        since: The cut of the publication that was audited last.
        oldest: The greatest age on arrival of events that the speed layer counts (A of R5).
    """

    cells: PublishedCells
    ledgers: LedgerCauses
    archived: ArchivedSigns
    since: datetime
    oldest: timedelta
    _touched: dict[str, Mapping[str, set[int]]] = field(default_factory=dict)

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:
        """See `AuditFacts`."""
        return self.cells.sums(view, store, span)

    def has_cells(self, view: str, store: str, span: Span) -> bool:
        """See `AuditFacts`."""
        return self.cells.has_cells(view, store, span)

    def touched(self, view: str) -> Mapping[str, Collection[int]]:
        """See `AuditFacts`."""
        if view not in self._touched:
            self._touched[view] = self.cells.touched(view)
        return self._touched[view]

    def signs(self, source: str, queries: Collection[SignQuery]) -> Mapping[SignQuery, Sequence[SignOfLife]]:
        """See `AuditFacts`. Reads the source twice: completely for new queries, and only new events for the others."""
        found: dict[SignQuery, list[SignOfLife]] = {each: [] for each in queries}
        for is_new in (True, False):
            by_store: dict[str, list[SignQuery]] = {}
            for each in sorted((each for each in queries if each.is_new == is_new), key=_since):
                by_store.setdefault(each.store, []).append(each)
            longest_ms = max((each.until_ms - each.since_ms for own in by_store.values() for each in own), default=0)
            within = {store: TimeRange(own[0].since_ms, max(map(_until, own))) for store, own in by_store.items()}
            for event in self.archived.events_within(source, within, *([] if is_new else [self.since])):
                for each in _about(by_store[event.store], event, longest_ms):
                    waited = self._waited(event)
                    found[each].append(SignOfLife(event.at_ms, event.received_ms, waited, event.misrouted))
        return found

    def causes(self, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        """See `AuditFacts`. The ledgers first; for the rest each source and day is read once."""
        by_ledgers = self.ledgers.causes(queries)
        by_source: dict[str, list[CauseQuery]] = {}
        for each in queries:
            if each not in by_ledgers:
                by_source.setdefault(view_named(each.view).source.topic, []).append(each)
        left = [self._by_events(source, own) for source, own in sorted(by_source.items())]
        return {each: cause for found in (by_ledgers, *left) for each, cause in found.items()}

    def _by_events(self, source: str, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        found: dict[CauseQuery, set[AlertCause]] = {each: {"unexplained"} for each in queries}
        stores: dict[date, set[str]] = {}
        about: dict[tuple[str, int], list[CauseQuery]] = {}
        for each in queries:
            for span in each.spans:
                for quarter in range(span.start, span.end, STEP):
                    about.setdefault((each.store, quarter), []).append(each)
                    stores.setdefault(instant(quarter).date(), set()).add(each.store)
        for day, own in sorted(stores.items()):
            for event in self.archived.events_on(source, own, day):
                for each in about.get((event.store, round_down(event.happened_ms // 1000)), ()):
                    found[each].add(self._cause(event, each.after_ms))
        return {each: next(cause for cause in _EVENT_CAUSES if cause in causes) for each, causes in found.items()}

    def _cause(self, each: ArchivedEvent, after_ms: int) -> AlertCause:
        """The cause by a single event."""
        if each.misrouted:
            return "miskeyed"
        if self._waited(each):
            return "waited"
        return "late" if each.received_ms > after_ms else "unexplained"

    def _waited(self, each: ArchivedEvent) -> bool:
        return each.received_ms - each.happened_ms > self.oldest // _MS


def _about(queries: Sequence[SignQuery], event: ArchivedEvent, longest_ms: int) -> Iterator[SignQuery]:
    """The queries of a store, sorted by their start, that the event is a sign of life for."""
    at_ms = event.at_ms
    first = bisect_left(queries, at_ms - longest_ms, key=_since)
    for each in queries[first : bisect_left(queries, at_ms, key=_since)]:
        if at_ms < each.until_ms and each.sensor in (None, event.sensor):
            yield each
