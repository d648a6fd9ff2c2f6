"""One scan of the rules: what they look at, and how they raise and resolve alerts.

Each record of the log leads to one `Scan`. The rules (thresholds, silences, levels) read the state through it, and emit
through its `Emitter`, which records open alerts in the state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from speed_layer.alerts.state import OpenAlert, State
from views.alerts.alert import Alert, LogPosition, Window, follow_up, format_instant, raised_id
from views.alerts.rule import Rule
from views.alerts.rule_history import RuleSet, VersionedRule
from views.alerts.shop_clock import ShopClock
from views.alerts.timings import AlertTimings
from views.core.local_time import STEP, Span

AnyRule = TypeVar("AnyRule", bound=Rule)


class Detection(NamedTuple):
    """That a rule holds.

    Attributes:
        rule: The rule.
        shop: The store.
        name: What the rule is about within the store: a sensor, queue or window; empty for the store itself.
        since_ms: Start of the window.
        forget_ms: Until when the rule might hold again for the same window.
        until_s: End of the window; 0 if it is not known.
    """

    rule: VersionedRule
    shop: ShopClock
    name: str
    since_ms: int
    forget_ms: int
    value: Decimal | None
    threshold: Decimal
    sentence: str
    baseline: Decimal | None = None
    until_s: int = 0
    dimensions: Mapping[str, str] = {}


@dataclass
class Emitter:
    """Collects the alerts that one record of the log leads to."""

    state: State
    position: LogPosition
    emitted: list[Alert] = field(default_factory=list)

    def raise_alert(self, detection: Detection) -> None:
        """Raise the alert unless it was raised before."""
        rule, store = detection.rule, detection.shop.store
        end = format_instant(detection.until_s * 1000) if detection.until_s else None
        window = Window(format_instant(detection.since_ms), end)
        alert_id = raised_id(rule.rule.id, rule.version, (store.tenant, store.id), window, detection.dimensions)
        if alert_id in self.state.known:
            return
        alert = Alert(
            alert_id=alert_id,
            kind="raised",
            rule=rule.rule.id,
            version=rule.version,
            tenant=store.tenant,
            store=store.id,
            window=window,
            dimensions=detection.dimensions,
            value=detection.value,
            threshold=detection.threshold,
            baseline=detection.baseline,
            sentence=detection.sentence,
            raised_at=format_instant(self.state.log_ms),
            place=self.position,
        )
        self.state.known[alert_id] = detection.forget_ms
        self.state.opened[open_alert_key(store.id, rule, detection.name)] = OpenAlert(
            alert, rule.key, store.id, detection.name, detection.since_ms, detection.until_s
        )
        self.emitted.append(alert)

    def resolve(self, key: str, reason: str, sentence: str, value: Decimal | None = None) -> None:
        """Resolve the open alert with that key."""
        alert = self.state.opened.pop(key).alert
        at = format_instant(self.state.log_ms)
        resolved = follow_up(alert, "resolved", value=value, sentence=sentence, raised_at=at, reason=reason)
        self.emitted.append(replace(resolved, place=self.position))


def open_alert_key(store: str, rule: VersionedRule, name: str) -> str:
    """The key of an open alert. `name`: as in `Detection`."""
    return f"{store}\0{rule.key}\0{name}"


@dataclass(frozen=True)
class Scan:
    """The rules and the state at one record of one (topic, partition)."""

    topic: str
    state: State
    rule_set: RuleSet
    timings: AlertTimings
    emitter: Emitter

    def rules(self, kind: type[AnyRule], shop: ShopClock) -> Iterator[tuple[VersionedRule, AnyRule]]:
        """The rules of one kind that watch the store, in a fixed order."""
        for each in self.rule_set.rules_of(self.topic, shop):
            if isinstance(each.rule, kind):
                yield each, each.rule

    def shops(self, stores: Sequence[str]) -> Iterator[ShopClock]:
        """The clocks of registered stores, in a fixed order."""
        for store in sorted(stores):
            if store in self.rule_set.shops:
                yield self.rule_set.shops[store]

    def is_fresh(self, since_ms: int) -> bool:
        """Whether a condition that became certain at this time may still raise an alert."""
        return since_ms + to_ms(self.timings.fresh) >= self.state.log_ms

    def sums(self, view: str, store: str, span: Span) -> list[int] | None:
        """The states of a view in a window; None without an event."""
        own = self.state.cells.get(view, {}).get(store, {})
        parts = [own[quarter] for quarter in range(span.start, span.end, STEP) if quarter in own]
        return [sum(each) for each in zip(*parts, strict=True)] if parts else None


def to_ms(length: timedelta) -> int:
    """Whole milliseconds."""
    return length // timedelta(milliseconds=1)
