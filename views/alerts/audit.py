"""What a publication's corrected numbers say of the alerts that were told: which were wrong, and which are missing.

Pure: the log, the rules and the facts are handed in, and the same ones lead to the same records. What is told, but not
held by the numbers, is retracted; what holds, and was never told or was taken back, is raised late. Windows are judged
when they are over at the cut: an alert that rests on what was received later is left to the next publication. Levels
follow from the order of single events, which cells do not keep: they are not looked at.

Silences that were none: what was heard later of the minutes in question. Nothing that is missing is raised.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from views.alerts.alert import Alert, AlertCause, AlertStatus, Window, parse_instant_ms
from views.alerts.audit_facts import AuditFacts, AuditScope, CauseQuery, SignOfLife, SignQuery
from views.alerts.corrections import AuditCase, CorrectionReason, late_alerts, resolution_of, retraction, window_of
from views.alerts.evaluation import MINUTE_MS, ThresholdResult, evaluate_threshold, was_silent
from views.alerts.rule import Rule, Silence, Threshold, WindowLength
from views.alerts.rule_history import RuleHistory, VersionedRule
from views.alerts.rule_metrics import alertable_metrics, alertable_views
from views.alerts.sentences import alert_sentence, withdrawal_sentence
from views.alerts.shop_clock import HOUR
from views.core.local_time import STEP, Span
from views.registry import view_named

_WEEK = timedelta(days=7) // timedelta(seconds=1)
_HOUR_MS = HOUR * 1000
RuleKey = tuple[str, str, int]
"""Tenant, id and version."""


class _Finding(NamedTuple):
    """What is to be told, once its cause is known."""

    question: CauseQuery
    told: Callable[[AlertCause], Iterable[Alert]]


@dataclass(frozen=True)
class Audit:
    """`rules`: every version of a bound. `noted_ms`: since when the log has known each store.

    `unseen`: ids of records that were asked for behind what the last audit had read: whoever asked was overtaken by it,
    and its numbers may have been other ones.
    """

    book: RuleHistory
    rules: Mapping[RuleKey, Rule]
    noted_ms: Mapping[str, int]
    facts: AuditFacts
    bounds: AuditScope
    told: Mapping[str, AlertStatus]
    unseen: Collection[str] = ()

    def corrections(self) -> Iterator[Alert]:
        """In a fixed order. Their causes are asked for at once, behind all else."""
        found = list(self._found())
        causes = self.facts.causes({each.question for each in found if isinstance(each, _Finding)})
        for each in found:
            if isinstance(each, _Finding):
                yield from each.told(self._cause(each.question, causes[each.question]))
            else:
                yield each

    def _found(self) -> Iterator[Alert | _Finding]:
        for _, standing in sorted(self.told.items()):
            if standing.raised.late and not standing.is_over:
                yield resolution_of(standing.raised)  # whoever asked for it ended there
            yield from self._looked_at(standing)
        for view in sorted({_view_of(rule) for rule in self._thresholds}):
            for store, quarters in sorted(self.facts.touched(view).items()):
                ends = {end for quarter in quarters for end in self._ends(store, quarter)}
                for end in sorted(end for end in ends if self.bounds.is_due(end)):
                    yield from self._missing(view, store, end)

    @cached_property
    def _thresholds(self) -> list[Threshold]:
        known = alertable_metrics()
        return [each for each in self.rules.values() if isinstance(each, Threshold) and each.metric in known]

    def _looked_at(self, standing: AlertStatus) -> Iterator[_Finding]:
        case, last = self._case(standing.raised), standing.last
        rests_on_later = last.publication is None and last.raised_ms >= self.bounds.until_ms
        if case is None or rests_on_later or not self._is_news(case, last):
            return
        verdict = self._judged(case)
        if verdict.holds == (not standing.is_taken_back) or (verdict.holds and standing.successor in self.told):
            return
        # Of a publication's own record what was received at its cut is news.
        question = _question(case, last.raised_ms - (last.publication is not None))

        def told(cause: AlertCause) -> Iterable[Alert]:
            if verdict.holds:
                said = "again" if cause == "unexplained" and standing.is_corrected else cause
                because = CorrectionReason(verdict, alert_sentence(case.rule, case.shop, verdict), said)
                return late_alerts(case, because, self.bounds, standing)
            because = CorrectionReason(verdict, withdrawal_sentence(case.rule, case.shop, verdict), cause)
            return [retraction(standing, because, self.bounds)]

        yield _Finding(question, told)

    def _case(self, alert: Alert) -> AuditCase | None:
        """What it was about, if that is a bound, and its window can be judged now."""
        rule = self.rules.get((alert.tenant, alert.rule, alert.version))
        if not isinstance(rule, Threshold) or rule.metric not in alertable_metrics() or alert.window.end is None:
            return None
        span = Span(parse_instant_ms(alert.window.start) // 1000, parse_instant_ms(alert.window.end) // 1000)
        if not self.bounds.is_due(span.end):
            return None
        shop = self.book.at(self.bounds.due_ms(span.end) if alert.late else alert.raised_ms).shops.get(alert.store)
        return AuditCase(VersionedRule(rule, alert.version), rule, shop, span) if shop else None

    def _is_news(self, case: AuditCase, last: Alert) -> bool:
        """Whether it was not looked at before with these numbers."""
        if last.raised_ms >= self.bounds.since_ms or self.bounds.due_ms(case.span.end) > self.bounds.since_ms:
            return True
        if last.alert_id in self.unseen:
            return True
        touched = self.facts.touched(_view_of(case.rule)).get(case.shop.store.id, ())
        quarters = (at for each in case.spans for at in range(each.start, each.end, STEP))
        return any(quarter in touched for quarter in quarters)

    def _judged(self, case: AuditCase) -> ThresholdResult:
        view = view_named(_view_of(case.rule))
        [states] = [each.states for each in alertable_views(view.source.topic) if each.view.name == view.name]
        store = case.shop.store.id
        return evaluate_threshold(
            case.rule, case.shop, case.span, states, lambda of: self.facts.sums(view.name, store, of)
        )

    def _ends(self, store: str, quarter: int) -> Iterator[int]:
        """Of every window that such a quarter may count in, or is compared with."""
        moments = (quarter * 1000, self.bounds.until_ms)
        for shop in {id(found): found for at in moments if (found := self.book.at(at).shops.get(store))}.values():
            for length, is_compared in self._lengths:
                yield shop.span(length, quarter).end
                if is_compared:
                    for shift in (-HOUR, 0, HOUR):  # clocks may have been changed in that week
                        yield shop.span(length, quarter + _WEEK + shift).end

    def _missing(self, view: str, store: str, end: int) -> Iterator[_Finding]:
        page = self.book.at(self.bounds.due_ms(end))
        shop = page.shops.get(store)
        if shop is None:
            return
        for each in page.rules_of(view_named(view).source.topic, shop):
            if isinstance(each.rule, Threshold) and _view_of(each.rule) == view:
                case = AuditCase(each, each.rule, shop, shop.span(each.rule.window, end - STEP))
                if case.span.end == end and not self._is_told(case) and self._is_known_since(case):
                    yield from self._raised(case)

    def _raised(self, case: AuditCase) -> Iterator[_Finding]:
        verdict = self._judged(case)

        def told(cause: AlertCause) -> Iterable[Alert]:
            because = CorrectionReason(verdict, alert_sentence(case.rule, case.shop, verdict), cause)
            return late_alerts(case, because, self.bounds)

        if verdict.holds:
            yield _Finding(_question(case, case.span.end * 1000 + self.bounds.fresh_ms), told)

    def _is_told(self, case: AuditCase) -> bool:
        if case.alert_id in self.told:
            return True
        store = case.shop.store
        return (store.tenant, case.rule.id, store.id, window_of(case.span)) in self._standing

    @cached_property
    def _standing(self) -> set[tuple[str, str, str, Window]]:
        """Tenant, rule, store and window of what stands: another version of a rule does not tell it again."""
        of = [each.raised for each in self.told.values() if not each.is_taken_back]
        return {(each.tenant, each.rule, each.store, each.window) for each in of}

    def _is_known_since(self, case: AuditCase) -> bool:
        """As the relay has it: a store of which nothing was known before is not judged by what it lacks."""
        if case.rule.above is not None and case.rule.versus is None:
            return True
        hour_ms = self.bounds.due_ms(case.span.end) // _HOUR_MS * _HOUR_MS
        before = Span((hour_ms - self.bounds.kept_ms) // 1000, min(case.spans).start)
        return self.facts.has_cells(_view_of(case.rule), case.shop.store.id, before)

    def _cause(self, of: CauseQuery, cause: AlertCause) -> AlertCause:
        is_new_store = self.noted_ms.get(of.store, 0) > min(of.spans).start * 1000
        return "late" if cause == "unexplained" and is_new_store else cause

    @cached_property
    def _lengths(self) -> set[tuple[WindowLength, bool]]:
        """Of the windows of bounds, and whether some are compared with a week before."""
        return {(rule.window, rule.versus is not None) for rule in self._thresholds}


def _question(case: AuditCase, after_ms: int) -> CauseQuery:
    return CauseQuery(_view_of(case.rule), case.shop.store.id, tuple(case.spans), after_ms)


def _view_of(rule: Threshold) -> str:
    return alertable_metrics()[rule.metric].view


_SENSOR = "sensor_id"


class _Open(NamedTuple):
    standing: AlertStatus
    rule: Silence
    wanted: SignQuery


def retracted_silences(
    rules: Mapping[tuple[str, str, int], Rule], facts: AuditFacts, bounds: AuditScope, told: Mapping[str, AlertStatus]
) -> Iterator[Alert]:
    """In a fixed order. A silence that was taken back stays so: what was heard cannot be unheard."""
    by_source: dict[str, list[_Open]] = {}
    for _, standing in sorted(told.items()):
        alert = standing.raised
        rule = rules.get((alert.tenant, alert.rule, alert.version))
        since_ms = parse_instant_ms(alert.window.start)
        is_in = bounds.oldest_ms <= since_ms and alert.raised_ms < bounds.until_ms
        if isinstance(rule, Silence) and is_in and not standing.is_taken_back:
            until_ms, is_new = since_ms + rule.minutes * MINUTE_MS, alert.raised_ms >= bounds.since_ms
            wanted = SignQuery(alert.store, alert.dimensions.get(_SENSOR), since_ms, until_ms, is_new)
            by_source.setdefault(rule.source, []).append(_Open(standing, rule, wanted))
    for source, opened in sorted(by_source.items()):
        signs = facts.signs(source, {each.wanted for each in opened})
        for each in opened:
            heard = sorted(signs.get(each.wanted, ()))
            if not was_silent(each.rule, (sign.at_ms for sign in heard), each.wanted.since_ms):
                yield _retracted(each, heard, bounds)


def _retracted(each: _Open, signs: list[SignOfLife], bounds: AuditScope) -> Alert:
    alert, wanted = each.standing.raised, each.wanted
    heard = [sign for sign in signs if wanted.since_ms < sign.at_ms < wanted.until_ms]
    # Time is let pass before the record is heard that it passes with.
    later = [sign for sign in heard if sign.received_ms >= alert.raised_ms]
    cause: AlertCause = "unexplained"
    if any(sign.miskeyed for sign in heard):
        cause = "miskeyed"
    elif later:
        cause = "waited" if all(sign.waited for sign in later) else "late"
    minutes = Decimal((heard[0].at_ms - wanted.since_ms) // MINUTE_MS)
    who = f"The sensor {wanted.sensor}" if wanted.sensor else f"The source {each.rule.source}"
    sentence = f"{who} of store {alert.store} was heard after {minutes} minutes, which was known later."
    return retraction(
        each.standing, CorrectionReason(ThresholdResult(holds=False, value=minutes), sentence, cause), bounds
    )
