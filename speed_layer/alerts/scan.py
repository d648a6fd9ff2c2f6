"""Raises and resolves: keeps what is open, and makes the records of it.

What the rules are looked at with: the state, what holds at this moment of the log, and where alerts are told.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple, TypeVar

from speed_layer.alerts.state import Horizons, OpenAlert, State
from views.alerts.alert import Alert, LogPosition, Window, follow_up_id, format_instant, raised_id
from views.alerts.rule import Rule
from views.alerts.rule_history import RuleSet, VersionedRule
from views.alerts.shop_clock import ShopClock
from views.core.local_time import STEP, Span


class Detection(NamedTuple):
    """That a rule holds. `name`: which of several of the store's: the sensor, queue or window; empty: the store.

    `since_ms`, `until_s`: of the window; 0: nobody knows its end. `forget_ms`: until when it might be found again.
    """

    versioned: VersionedRule
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
    """What one record of the log leads to. `place`: of the record."""

    state: State
    place: LogPosition
    emitted: list[Alert] = field(default_factory=list)

    def raise_alert(self, found: Detection) -> None:
        """Raise it, unless it was raised before."""
        versioned, store = found.versioned, found.shop.store
        window = Window(format_instant(found.since_ms), format_instant(found.until_s * 1000) if found.until_s else None)
        of = (store.tenant, store.id)
        alert_id = raised_id(versioned.rule.id, versioned.version, of, window, found.dimensions)
        if alert_id in self.state.known:
            return
        alert = Alert(
            alert_id=alert_id,
            kind="raised",
            rule=versioned.rule.id,
            version=versioned.version,
            tenant=store.tenant,
            store=store.id,
            window=window,
            dimensions=found.dimensions,
            value=found.value,
            threshold=found.threshold,
            baseline=found.baseline,
            sentence=found.sentence,
            raised_at=format_instant(self.state.log_ms),
            place=self.place,
        )
        self.state.known[alert_id] = found.forget_ms
        key = open_alert_key(store.id, versioned, found.name)
        self.state.opened[key] = OpenAlert(alert, versioned.key, store.id, found.name, found.since_ms, found.until_s)
        self.emitted.append(alert)

    def resolve(self, key: str, reason: str, sentence: str, value: Decimal | None = None) -> None:
        """Say that it is over. `key`: of what is open."""
        alert = self.state.opened.pop(key).alert
        self.emitted.append(
            Alert(
                alert_id=follow_up_id(alert.alert_id, "resolved"),
                kind="resolved",
                about=alert.alert_id,
                rule=alert.rule,
                version=alert.version,
                tenant=alert.tenant,
                store=alert.store,
                window=alert.window,
                dimensions=alert.dimensions,
                value=value,
                threshold=alert.threshold,
                sentence=sentence,
                raised_at=format_instant(self.state.log_ms),
                reason=reason,
                place=self.place,
            )
        )


def open_alert_key(store: str, versioned: VersionedRule, name: str) -> str:
    """Under which something open of a store is found."""
    return f"{store}\0{versioned.key}\0{name}"


Kind = TypeVar("Kind", bound=Rule)


@dataclass(frozen=True)
class Scan:
    """At one record of one (topic, partition)."""

    topic: str
    state: State
    rule_set: RuleSet
    horizons: Horizons
    emitter: Emitter

    def rules(self, kind: type[Kind], shop: ShopClock) -> Iterator[tuple[VersionedRule, Kind]]:
        """Of one kind that watch the store, in a fixed order."""
        for versioned in self.rule_set.rules_of(self.topic, shop):
            if isinstance(versioned.rule, kind):
                yield versioned, versioned.rule

    def shops(self, stores: Sequence[str]) -> Iterator[ShopClock]:
        """Those that are registered, in a fixed order."""
        for store in sorted(stores):
            if store in self.rule_set.shops:
                yield self.rule_set.shops[store]

    def is_fresh(self, since_ms: int) -> bool:
        """Whether what became certain then is still worth telling."""
        return since_ms + to_ms(self.horizons.fresh) >= self.state.log_ms

    def sums(self, view: str, store: str, span: Span) -> list[int] | None:
        """The states of a view in a window; None: no event."""
        own = self.state.cells.get(view, {}).get(store, {})
        parts = [own[quarter] for quarter in range(span.start, span.end, STEP) if quarter in own]
        return [sum(versioned) for versioned in zip(*parts, strict=True)] if parts else None


def to_ms(length: timedelta) -> int:
    """In milliseconds."""
    return length // timedelta(milliseconds=1)
