"""Publications in memory: what a log says when it is read whole, and what an audit asks for after each cut."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from master_dataset.parsing.parse import is_marker, parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import LogRecord
from views.alerts.alert import Alert, AlertCause, alert_statuses
from views.alerts.audit import Audit, RuleKey, retracted_silences
from views.alerts.audit_facts import AuditScope, CauseQuery, SignOfLife, SignQuery
from views.alerts.rule import Rule
from views.alerts.rule_history import RuleHistory
from views.alerts.rule_metrics import alertable_views
from views.alerts.timings import AlertTimings
from views.core.local_time import Span, round_down

TIMINGS = AlertTimings()
OLDEST_MS = 23 * 3_600_000
BACK_S = 27 * 3600


def ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


@dataclass(frozen=True)
class Fact:
    """A first delivery."""

    store: str
    happened_ms: int
    received_ms: int
    adds: Sequence[int]

    @property
    def quarter(self) -> int:
        return round_down(self.happened_ms // 1000)

    @property
    def waited(self) -> bool:
        return self.received_ms - self.happened_ms > OLDEST_MS


def facts_of(topic: str, entries: Iterable[LogRecord]) -> list[Fact]:
    """The first delivery of each identity, whatever came between."""
    source, met, found = registered_sources()[topic], set[str](), list[Fact]()
    [followed] = alertable_views(topic) or [None]
    for entry in entries:
        if is_marker(entry.headers):
            continue
        event = parse(source, entry.value, lambda _: DEFAULT_TERMS, received_us=entry.received_ms * 1000)
        if isinstance(event, Event) and event.identity not in met:
            met.add(event.identity)
            adds = followed.contribution(event.payload) if followed else ()
            found.append(Fact(event.store, event.happened_ms, entry.received_ms, adds))
    return found


@dataclass(frozen=True)
class MemoryFacts:
    """Facts of one source, from its first deliveries."""

    facts: Sequence[Fact]
    since_ms: int
    until_ms: int

    def _before(self, cut_ms: int, store: str, span: Span) -> list[Fact]:
        of = (each for each in self.facts if each.store == store and each.received_ms < cut_ms)
        return [each for each in of if span.start <= each.quarter < span.end]

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:  # noqa: ARG002 - it is of one view
        found = self._before(self.until_ms, store, span)
        return [sum(column) for column in zip(*(each.adds for each in found), strict=True)] if found else None

    def touched(self, view: str) -> Mapping[str, Collection[int]]:  # noqa: ARG002 - likewise
        found: dict[str, set[int]] = {}
        for each in self.facts:
            is_new = self.since_ms <= each.received_ms < self.until_ms
            if is_new or (each.received_ms < self.until_ms and each.quarter >= self.since_ms // 1000 - BACK_S):
                found.setdefault(each.store, set()).add(each.quarter)
        return found

    def has_cells(self, view: str, store: str, span: Span) -> bool:  # noqa: ARG002 - likewise
        return bool(self._before(self.until_ms, store, span))

    def signs(self, source: str, queries: Collection[SignQuery]) -> Mapping[SignQuery, Sequence[SignOfLife]]:  # noqa: ARG002
        known = [each for each in self.facts if each.received_ms < self.until_ms]
        signs = [(e.store, SignOfLife(min(e.happened_ms, e.received_ms), e.received_ms, e.waited)) for e in known]
        return {each: [sign for store, sign in signs if store == each.store] for each in queries}

    def causes(self, queries: Collection[CauseQuery]) -> Mapping[CauseQuery, AlertCause]:
        return {each: self._cause(each) for each in queries}

    def _cause(self, query: CauseQuery) -> AlertCause:
        found = [each for span in query.spans for each in self._before(self.until_ms, query.store, span)]
        if any(each.received_ms > query.after_ms and not each.waited for each in found):
            return "late"
        return "waited" if any(each.waited for each in found) else "unexplained"


@dataclass
class Publications:
    """Publications over one log. `log`: the emitted alerts; `requests`: what publications requested.

    `noted`: how many of these the last one had read that moved on.
    """

    topic: str
    rule_history: RuleHistory
    rules: Mapping[RuleKey, Rule]
    log: list[Alert] = field(default_factory=list)
    requests: list[Alert] = field(default_factory=list)
    cut_ms: int = 0
    number: int = 0
    noted: int = 0

    def publish(self, entries: Sequence[LogRecord], cut_ms: int, oldest_ms: int = 0) -> list[Alert]:
        """What is asked for after a cut. `entries`: all there are, also those received later."""
        self.number += 1
        found, self.noted = self.looked(entries, cut_ms, oldest_ms), len(self.requests)
        self.requests += found
        self.cut_ms = cut_ms
        return found

    def looked(self, entries: Sequence[LogRecord], cut_ms: int, oldest_ms: int = 0) -> list[Alert]:
        """What would be asked for."""
        facts = MemoryFacts(facts_of(self.topic, entries), self.cut_ms, cut_ms)
        timings = (ms(TIMINGS.grace), ms(TIMINGS.fresh), ms(TIMINGS.kept))
        bounds = AuditScope(self.number, self.cut_ms, cut_ms, oldest_ms, *timings)
        statuses = alert_statuses(self.log, self.requests)
        unseen = {each.alert_id for each in self.requests[self.noted :]}
        audit = Audit(self.rule_history, self.rules, {}, facts, bounds, statuses, unseen)
        return [*audit.corrections(), *retracted_silences(self.rules, facts, bounds, statuses)]
