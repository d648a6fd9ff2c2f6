"""The records by which a publication corrects what was told: asked for by batch, written by the relay."""

from typing import NamedTuple

from views.alerts.alert import Alert, Cause, Standing, Window, following_id, raised_id, written
from views.alerts.audit_facts import Bounds
from views.alerts.evaluation import Verdict
from views.alerts.rule import Threshold
from views.alerts.rule_history import Numbered
from views.alerts.sentences import bound_said
from views.alerts.shop_clock import ShopClock
from views.core.local_time import Span


class Because(NamedTuple):
    """What the corrected numbers say, and why they are others."""

    verdict: Verdict
    sentence: str
    cause: Cause


def retracted(standing: Standing, because: Because, bounds: Bounds) -> Alert:
    """That an alert was wrong."""
    first, verdict = standing.raised, because.verdict
    return Alert(
        alert_id=following_id(first.alert_id, "retracted"),
        kind="retracted",
        about=first.alert_id,
        rule=first.rule,
        version=first.version,
        tenant=first.tenant,
        store=first.store,
        window=first.window,
        dimensions=first.dimensions,
        value=verdict.value,
        threshold=first.threshold,
        baseline=verdict.baseline,
        sentence=because.sentence,
        provisional=False,
        raised_at=written(bounds.until_ms),
        reason=because.cause,
        publication=bounds.publication,
        cause=because.cause,
        shown=first.value,
        corrected=verdict.value,
    )


def window_of(span: Span) -> Window:
    """As records write it."""
    return Window(written(span.start * 1000), written(span.end * 1000))


class Case(NamedTuple):
    """A bound, and a window of a store that it is about."""

    each: Numbered
    rule: Threshold
    shop: ShopClock
    span: Span

    @property
    def alert_id(self) -> str:
        """Under which the relay would raise it."""
        store = self.shop.store
        return raised_id(self.rule.id, self.each.version, (store.tenant, store.id), window_of(self.span), {})

    @property
    def spans(self) -> list[Span]:
        """The window, and the one that it is compared with."""
        if self.rule.versus is None:
            return [self.span]
        return [self.span, self.shop.week_before(self.rule.window, self.span)]


def raised_late(case: Case, because: Because, bounds: Bounds, before: Standing | None = None) -> list[Alert]:
    """An alert that nobody raised in time, or that was taken back `before`. Its window is over, and so is it."""
    alert_id = before.successor if before else case.alert_id
    rule, store, verdict, version = case.rule, case.shop.store, because.verdict, case.each.version
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
        threshold=bound_said(rule),
        baseline=verdict.baseline,
        sentence=because.sentence,
        provisional=False,
        late=True,
        raised_at=written(bounds.until_ms),
        publication=bounds.publication,
        cause=because.cause,
        shown=before.raised.value if before else None,
        corrected=verdict.value,
    )
    return [raised, over_of(raised)]


def over_of(late: Alert) -> Alert:
    """That an alert that was raised late is over."""
    return Alert(
        alert_id=following_id(late.alert_id, "resolved"),
        kind="resolved",
        about=late.alert_id,
        rule=late.rule,
        version=late.version,
        tenant=late.tenant,
        store=late.store,
        window=late.window,
        dimensions=late.dimensions,
        value=None,
        threshold=late.threshold,
        sentence="The window was over when it was told.",
        provisional=False,
        late=True,
        raised_at=late.raised_at,
        reason="over",
        publication=late.publication,
    )
