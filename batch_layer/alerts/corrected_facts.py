"""Facts of an audit: cells of the publication, its ledgers, and the master dataset where single events matter."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from batch_layer.alerts.archived_signs import ArchivedSigns, Arrival
from batch_layer.alerts.ledger_causes import LedgerCauses
from batch_layer.alerts.published_cells import PublishedCells
from views.alerts.alert import Cause
from views.alerts.facts import Sign, Wanted
from views.core.business_days import Span
from views.core.cut import instant
from views.core.local_time import round_down
from views.registry import view_named

_DAY = timedelta(days=1)
_MS = timedelta(milliseconds=1)
_LONGEST_MS = _DAY // _MS
"""Of what one event tells of: it began at most so long before its sign of life."""


@dataclass(frozen=True)
class CorrectedFacts:
    """`since`: the cut of the last audit. `oldest`: A of R5, what was older on arrival is left to batch."""

    cells: PublishedCells
    ledgers: LedgerCauses
    archived: ArchivedSigns
    since: datetime
    oldest: timedelta
    _touched: dict[str, Mapping[str, set[int]]] = field(default_factory=dict)

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:
        """As Facts."""
        return self.cells.sums(view, store, span)

    def has_cells(self, view: str, store: str, span: Span) -> bool:
        """As Facts."""
        return self.cells.has_cells(view, store, span)

    def touched(self, view: str) -> Mapping[str, Collection[int]]:
        """As Facts."""
        if view not in self._touched:
            self._touched[view] = self.cells.touched(view)
        return self._touched[view]

    def signs(self, source: str, wanted: Collection[Wanted]) -> Mapping[Wanted, Sequence[Sign]]:
        """As Facts: two readings of the source, as of what was asked before only news are read."""
        found: dict[Wanted, Sequence[Sign]] = {}
        for is_new in (True, False):
            own = [each for each in wanted if each.is_new == is_new]
            days = {day for each in own for day in _days(each.since_ms - _LONGEST_MS, each.until_ms)}
            since = [] if is_new else [self.since]
            arrivals = self.archived.arrivals(source, {each.store for each in own}, days, *since)
            by_store: dict[str, list[Arrival]] = {}
            for each in arrivals:
                by_store.setdefault(each.store, []).append(each)
            found |= {each: list(self._heard(each, by_store.get(each.store, ()))) for each in own}
        return found

    def cause(self, view: str, store: str, spans: Sequence[Span], after_ms: int) -> Cause:
        """As Facts: what the ledgers say, or else what came later."""
        told = self.ledgers.cause(view, store, spans)
        if told is not None:
            return told
        days = {day for span in spans for day in _days(span.start * 1000, span.end * 1000 - 1)}
        arrivals = self.archived.arrivals(view_named(view).source.topic, {store}, days)
        own = [each for each in arrivals if any(_lies_in(each, span) for span in spans)]
        if any(each.received_ms > after_ms and not self._waited(each) for each in own):
            return "late"
        return "waited" if any(self._waited(each) for each in own) else "unexplained"

    def _heard(self, wanted: Wanted, arrivals: Sequence[Arrival]) -> Iterator[Sign]:
        for each in arrivals:
            at_ms = min(each.ended_ms, each.received_ms)  # a clock may be fast
            is_of = wanted.sensor is None or each.sensor == wanted.sensor
            if is_of and wanted.since_ms < at_ms < wanted.until_ms:
                yield Sign(at_ms, each.received_ms, self._waited(each))

    def _waited(self, each: Arrival) -> bool:
        return each.received_ms - each.happened_ms > self.oldest // _MS


def _lies_in(each: Arrival, span: Span) -> bool:
    return span.start <= round_down(each.happened_ms // 1000) < span.end


def _days(since_ms: int, until_ms: int) -> Iterator[date]:
    day, last = instant(since_ms // 1000).date(), instant(until_ms // 1000).date()
    while day <= last:
        yield day
        day += _DAY
