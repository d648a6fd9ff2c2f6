"""Compares emitted alerts with the corrected numbers of a publication: which were wrong, and which are missing.

    AlertStatus of each emitted alert ---> does its window still hold? ----------> retraction, or late alert again
    windows whose numbers have changed --> does a rule hold without an alert? ---> late alert
    emitted silences --------------------> was there a sign of life after all? --> retraction

Pure: log, rules and facts are arguments, and equal arguments give equal records. Windows are evaluated once they are
    over at the cut; an alert that rests on records received after the cut is left to the next publication. Levels
    depend on the
order of single events, which cells do not keep, so they are not audited.
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
_SENSOR = "sensor_id"
RuleKey = tuple[str, str, int]
"""Tenant, id and version."""


class _Finding(NamedTuple):
    """A difference, and the records that correct it once its cause is known."""

    query: CauseQuery
    records: Callable[[AlertCause], Iterable[Alert]]


@dataclass(frozen=True)
class Audit:
    """The audit of the threshold rules by one publication.

    Attributes:
        history: The rules and stores in effect at each moment.
        rules: Every version of every rule.
        noted_ms: Store to the receipt time since which the log has known it.
        facts: The corrected numbers.
        statuses: The emitted alerts, by the id under which each was raised.
        unseen: Ids of requested records that the last finished audit had not read. They come from an audit that was
            overtaken, possibly with other numbers, so they are judged again.
    """

    history: RuleHistory
    rules: Mapping[RuleKey, Rule]
    noted_ms: Mapping[str, int]
    facts: AuditFacts
    scope: AuditScope
    statuses: Mapping[str, AlertStatus]
    unseen: Collection[str] = ()

    def corrections(self) -> Iterator[Alert]:
        """The records to emit, in a fixed order. All causes are looked up together, after everything else."""
        found = list(self._findings())
        causes = self.facts.causes({each.query for each in found if isinstance(each, _Finding)})
        for each in found:
            if isinstance(each, _Finding):
                yield from each.records(self._cause(each.query, causes[each.query]))
            else:
                yield each

    def _findings(self) -> Iterator[Alert | _Finding]:
        for _, status in sorted(self.statuses.items()):
            if status.raised.late and not status.is_resolved:
                yield resolution_of(status.raised)  # the audit that requested the alert ended before this record
            yield from self._recheck(status)
        for view in sorted({_view_of(rule) for rule in self._thresholds}):
            for store, quarters in sorted(self.facts.touched(view).items()):
                ends = {end for quarter in quarters for end in self._window_ends(store, quarter)}
                for end in sorted(end for end in ends if self.scope.is_due(end)):
                    yield from self._missed(view, store, end)

    def _recheck(self, status: AlertStatus) -> Iterator[_Finding]:
        """Whether an emitted alert is still right, and a withdrawn one still wrong."""
        case, last = self._case(status.raised), status.last
        rests_on_later = last.publication is None and last.raised_ms >= self.scope.until_ms
        if case is None or rests_on_later or not self._is_news(case, last):
            return
        result = self._evaluate(case)
        if result.holds == (not status.is_withdrawn) or (result.holds and status.successor in self.statuses):
            return

        def records(cause: AlertCause) -> Iterable[Alert]:
            if result.holds:
                shown = "again" if cause == "unexplained" and status.is_corrected else cause
                reason = CorrectionReason(result, alert_sentence(case.rule, case.shop, result), shown)
                return late_alerts(case, reason, self.scope, status)
            reason = CorrectionReason(result, withdrawal_sentence(case.rule, case.shop, result), cause)
            return [retraction(status, reason, self.scope)]

        # What was received at its cut is new to a record that a publication requested.
        yield _Finding(_cause_query(case, last.raised_ms - (last.publication is not None)), records)

    def _case(self, alert: Alert) -> AuditCase | None:
        """What the alert is about, if it is of a threshold and its window can be evaluated now."""
        rule = self.rules.get((alert.tenant, alert.rule, alert.version))
        if not isinstance(rule, Threshold) or rule.metric not in alertable_metrics() or alert.window.end is None:
            return None
        span = Span(parse_instant_ms(alert.window.start) // 1000, parse_instant_ms(alert.window.end) // 1000)
        if not self.scope.is_due(span.end):
            return None
        shop = self.history.at(self.scope.due_ms(span.end) if alert.late else alert.raised_ms).shops.get(alert.store)
        return AuditCase(VersionedRule(rule, alert.version), rule, shop, span) if shop else None

    def _is_news(self, case: AuditCase, last: Alert) -> bool:
        """Whether no audit has evaluated the case with these numbers."""
        if last.raised_ms >= self.scope.since_ms or self.scope.due_ms(case.span.end) > self.scope.since_ms:
            return True
        if last.alert_id in self.unseen:
            return True
        touched = self.facts.touched(_view_of(case.rule)).get(case.shop.store.id, ())
        return any(at in touched for span in case.spans for at in range(span.start, span.end, STEP))

    def _window_ends(self, store: str, quarter: int) -> Iterator[int]:
        """The ends of all windows that contain the quarter of an hour, or are compared with one that does."""
        moments = (quarter * 1000, self.scope.until_ms)
        for shop in {id(found): found for at in moments if (found := self.history.at(at).shops.get(store))}.values():
            for length, is_compared in self._lengths:
                yield shop.span(length, quarter).end
                if is_compared:
                    for shift in (-HOUR, 0, HOUR):  # clocks may have been changed in that week
                        yield shop.span(length, quarter + _WEEK + shift).end

    def _missed(self, view: str, store: str, end: int) -> Iterator[_Finding]:
        """The rules that hold for the windows of a store with that end, and have no alert."""
        rule_set = self.history.at(self.scope.due_ms(end))
        shop = rule_set.shops.get(store)
        if shop is None:
            return
        for each in rule_set.rules_of(view_named(view).source.topic, shop):
            if isinstance(each.rule, Threshold) and _view_of(each.rule) == view:
                case = AuditCase(each, each.rule, shop, shop.span(each.rule.window, end - STEP))
                if case.span.end == end and not self._is_emitted(case) and self._has_data_before(case):
                    yield from self._late(case)

    def _late(self, case: AuditCase) -> Iterator[_Finding]:
        result = self._evaluate(case)

        def records(cause: AlertCause) -> Iterable[Alert]:
            reason = CorrectionReason(result, alert_sentence(case.rule, case.shop, result), cause)
            return late_alerts(case, reason, self.scope)

        if result.holds:
            yield _Finding(_cause_query(case, case.span.end * 1000 + self.scope.fresh_ms), records)

    def _evaluate(self, case: AuditCase) -> ThresholdResult:
        view = view_named(_view_of(case.rule))
        [states] = [each.states for each in alertable_views(view.source.topic) if each.view.name == view.name]
        store = case.shop.store.id
        return evaluate_threshold(
            case.rule, case.shop, case.span, states, lambda span: self.facts.sums(view.name, store, span)
        )

    def _is_emitted(self, case: AuditCase) -> bool:
        if case.alert_id in self.statuses:
            return True
        store = case.shop.store
        return (store.tenant, case.rule.id, store.id, window_of(case.span)) in self._valid_windows

    def _has_data_before(self, case: AuditCase) -> bool:
        """As in the speed layer: missing events say nothing about a store that had none before."""
        if case.rule.above is not None and case.rule.versus is None:
            return True
        hour_ms = self.scope.due_ms(case.span.end) // _HOUR_MS * _HOUR_MS
        before = Span((hour_ms - self.scope.kept_ms) // 1000, min(case.spans).start)
        return self.facts.has_cells(_view_of(case.rule), case.shop.store.id, before)

    def _cause(self, query: CauseQuery, cause: AlertCause) -> AlertCause:
        is_new_store = self.noted_ms.get(query.store, 0) > min(query.spans).start * 1000
        return "late" if cause == "unexplained" and is_new_store else cause

    @cached_property
    def _thresholds(self) -> list[Threshold]:
        known = alertable_metrics()
        return [rule for rule in self.rules.values() if isinstance(rule, Threshold) and rule.metric in known]

    @cached_property
    def _lengths(self) -> set[tuple[WindowLength, bool]]:
        """The lengths of windows, and whether they are compared with a week before."""
        return {(rule.window, rule.versus is not None) for rule in self._thresholds}

    @cached_property
    def _valid_windows(self) -> set[tuple[str, str, str, Window]]:
        """Tenant, rule, store and window of valid alerts: another version of the rule does not alert again."""
        valid = [status.raised for status in self.statuses.values() if not status.is_withdrawn]
        return {(alert.tenant, alert.rule, alert.store, alert.window) for alert in valid}


def _cause_query(case: AuditCase, after_ms: int) -> CauseQuery:
    return CauseQuery(_view_of(case.rule), case.shop.store.id, tuple(case.spans), after_ms)


def _view_of(rule: Threshold) -> str:
    return alertable_metrics()[rule.metric].view


class _EmittedSilence(NamedTuple):
    status: AlertStatus
    rule: Silence
    query: SignQuery


def retracted_silences(
    rules: Mapping[RuleKey, Rule], facts: AuditFacts, scope: AuditScope, statuses: Mapping[str, AlertStatus]
) -> Iterator[Alert]:
    """Retractions of silences during which there were signs of life, in a fixed order.

    A retracted silence stays retracted, and missing events raise no silence late.
    """
    by_source: dict[str, list[_EmittedSilence]] = {}
    for _, status in sorted(statuses.items()):
        alert = status.raised
        rule = rules.get((alert.tenant, alert.rule, alert.version))
        since_ms = parse_instant_ms(alert.window.start)
        is_in_scope = scope.oldest_ms <= since_ms and alert.raised_ms < scope.until_ms
        if isinstance(rule, Silence) and is_in_scope and not status.is_withdrawn:
            until_ms, is_new = since_ms + rule.minutes * MINUTE_MS, alert.raised_ms >= scope.since_ms
            query = SignQuery(alert.store, alert.dimensions.get(_SENSOR), since_ms, until_ms, is_new)
            by_source.setdefault(rule.source, []).append(_EmittedSilence(status, rule, query))
    for source, silences in sorted(by_source.items()):
        found = facts.signs(source, {each.query for each in silences})
        for each in silences:
            signs = sorted(found.get(each.query, ()))
            if not was_silent(each.rule, (sign.at_ms for sign in signs), each.query.since_ms):
                yield _retracted_silence(each, signs, scope)


def _retracted_silence(silence: _EmittedSilence, signs: list[SignOfLife], scope: AuditScope) -> Alert:
    alert, query = silence.status.raised, silence.query
    within = [sign for sign in signs if query.since_ms < sign.at_ms < query.until_ms]
    # The record that moves the time of the log on is counted after the silence is raised.
    later = [sign for sign in within if sign.received_ms >= alert.raised_ms]
    cause: AlertCause = "unexplained"
    if any(sign.misrouted for sign in within):
        cause = "miskeyed"
    elif later:
        cause = "waited" if all(sign.waited for sign in later) else "late"
    minutes = Decimal((within[0].at_ms - query.since_ms) // MINUTE_MS)
    who = f"The sensor {query.sensor}" if query.sensor else f"The source {silence.rule.source}"
    sentence = f"{who} of store {alert.store} sent events after {minutes} minutes, which became known later."
    reason = CorrectionReason(ThresholdResult(holds=False, value=minutes), sentence, cause)
    return retraction(silence.status, reason, scope)
