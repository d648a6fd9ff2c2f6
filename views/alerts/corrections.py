"""The records by which a publication corrects alerts. Batch requests them, the alert processor emits them."""

from typing import NamedTuple

from msgspec.structs import replace

from views.alerts.alert import Alert, AlertCause, AlertStatus, Window, follow_up, format_instant, raised_id
from views.alerts.audit_facts import AuditScope
from views.alerts.evaluation import ThresholdResult
from views.alerts.rule import Threshold
from views.alerts.rule_history import VersionedRule
from views.alerts.sentences import stated_bound
from views.alerts.shop_clock import ShopClock
from views.core.local_time import Span


class CorrectionReason(NamedTuple):
    """The corrected numbers, and why they differ."""

    verdict: ThresholdResult
    sentence: str
    cause: AlertCause


def retraction(status: AlertStatus, reason: CorrectionReason, scope: AuditScope) -> Alert:
    """The record that an alert was wrong."""
    first, verdict = status.raised, reason.verdict
    at = format_instant(scope.until_ms)
    record = follow_up(
        first, "retracted", value=verdict.value, sentence=reason.sentence, raised_at=at, reason=reason.cause
    )
    return replace(
        record,
        baseline=verdict.baseline,
        provisional=False,
        publication=scope.publication,
        cause=reason.cause,
        shown=first.value,
        corrected=verdict.value,
    )


def window_of(span: Span) -> Window:
    """A span as records write it."""
    return Window(format_instant(span.start * 1000), format_instant(span.end * 1000))


class AuditCase(NamedTuple):
    """A threshold rule, and the window of a store that it is judged for."""

    each: VersionedRule
    rule: Threshold
    shop: ShopClock
    span: Span

    @property
    def alert_id(self) -> str:
        """The id under which the speed layer raises the alert."""
        store = self.shop.store
        return raised_id(self.rule.id, self.each.version, (store.tenant, store.id), window_of(self.span), {})

    @property
    def spans(self) -> list[Span]:
        """The window, and the one it is compared with."""
        if self.rule.versus is None:
            return [self.span]
        return [self.span, self.shop.week_before(self.rule.window, self.span)]


def late_alerts(
    case: AuditCase, reason: CorrectionReason, scope: AuditScope, before: AlertStatus | None = None
) -> list[Alert]:
    """An alert that was not raised in time, or was withdrawn `before`, and its resolution: its window is over."""
    alert_id = before.successor if before else case.alert_id
    rule, store, verdict, version = case.rule, case.shop.store, reason.verdict, case.each.version
    raised = Alert(
        alert_id=alert_id,
        kind="raised",
        rule=rule.id,
        version=version,
        tenant=store.tenant,
        store=store.id,
        window=window_of(case.span),
        dimensions={},
        value=verdict.value,
        threshold=stated_bound(rule),
        baseline=verdict.baseline,
        sentence=reason.sentence,
        provisional=False,
        late=True,
        raised_at=format_instant(scope.until_ms),
        publication=scope.publication,
        cause=reason.cause,
        shown=before.raised.value if before else None,
        corrected=verdict.value,
    )
    return [raised, resolution_of(raised)]


def resolution_of(late: Alert) -> Alert:
    """The record that resolves a late alert."""
    sentence = "The window was over when the alert was raised."
    record = follow_up(late, "resolved", value=None, sentence=sentence, raised_at=late.raised_at, reason="over")
    return replace(record, provisional=False, late=True, publication=late.publication)
