"""Raises and resolves: keeps what is open, and makes the records of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from speed_layer.alerts.state import Open, State
from views.alerts.alert import Alert, Place, Window, following_id, raised_id, written
from views.alerts.rule_history import Numbered
from views.alerts.shop_clock import ShopClock


class Found(NamedTuple):
    """That a rule holds. `name`: which of several of the store's: the sensor, queue or window; empty: the store.

    `since_ms`, `until_s`: of the window; 0: nobody knows its end. `forget_ms`: until when it might be found again.
    """

    each: Numbered
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
class Telling:
    """What one record of the log leads to. `place`: of the record."""

    state: State
    place: Place
    told: list[Alert] = field(default_factory=list)

    def tell(self, found: Found) -> None:
        """Raise it, unless it was raised before."""
        each, store = found.each, found.shop.store
        window = Window(written(found.since_ms), written(found.until_s * 1000) if found.until_s else None)
        of = (store.tenant, store.id)
        alert_id = raised_id(each.rule.id, each.version, of, window, found.dimensions)
        if alert_id in self.state.known:
            return
        alert = Alert(
            alert_id=alert_id,
            kind="raised",
            rule=each.rule.id,
            version=each.version,
            tenant=store.tenant,
            store=store.id,
            window=window,
            dimensions=found.dimensions,
            value=found.value,
            threshold=found.threshold,
            baseline=found.baseline,
            sentence=found.sentence,
            raised_at=written(self.state.log_ms),
            place=self.place,
        )
        self.state.known[alert_id] = found.forget_ms
        key = opened_key(store.id, each, found.name)
        self.state.opened[key] = Open(alert, each.key, store.id, found.name, found.since_ms, found.until_s)
        self.told.append(alert)

    def resolve(self, key: str, reason: str, sentence: str, value: Decimal | None = None) -> None:
        """Say that it is over. `key`: of what is open."""
        alert = self.state.opened.pop(key).alert
        self.told.append(
            Alert(
                alert_id=following_id(alert.alert_id, "resolved"),
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
                raised_at=written(self.state.log_ms),
                reason=reason,
                place=self.place,
            )
        )


def opened_key(store: str, each: Numbered, name: str) -> str:
    """Under which something open of a store is found."""
    return f"{store}\0{each.key}\0{name}"
