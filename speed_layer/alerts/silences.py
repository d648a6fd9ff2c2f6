"""Silence rules: no sign of life for some minutes, while the store is open and the log itself has no gap."""

from decimal import Decimal

from speed_layer.alerts.scan import Detection, Scan, open_alert_key
from speed_layer.alerts.state import HOUR_MS, MAX_NAMES, MINUTE_MS
from views.alerts.rule import Silence
from views.alerts.rule_history import VersionedRule
from views.alerts.shop_clock import ShopClock

ANY = ""
"""In place of a sensor: the last sign of life of anything in the store."""


def on_event(scan: Scan, shop: ShopClock, sensor: str, at_ms: int) -> None:
    """Something in the store showed a sign of life at that moment."""
    store, at_ms = shop.store.id, min(at_ms, scan.state.log_ms)  # a clock may be fast
    signs = scan.state.signs.setdefault(store, {})
    is_followed = sensor in signs or len(signs) <= MAX_NAMES
    for name in {ANY, sensor} if is_followed else {ANY}:
        signs[name] = max(signs.get(name, at_ms), at_ms)
    for versioned, rule in scan.rules(Silence, shop):
        for name in [ANY] if rule.per == "store" else [sensor]:
            key = open_alert_key(store, versioned, name)
            open_ = scan.state.opened.get(key)
            if open_ and signs.get(name, open_.since_ms) > open_.since_ms:
                scan.emitter.resolve(key, "heard", f"{_who(rule, name)} has sent events again.")


def on_tick(scan: Scan) -> None:
    """Time has passed: look for silences."""
    for shop in scan.shops(list(scan.state.signs)):
        for versioned, rule in scan.rules(Silence, shop):
            signs = scan.state.signs[shop.store.id]
            for name in [ANY] if rule.per == "store" else sorted(set(signs) - {ANY}):
                _check(scan, versioned, rule, shop, name)
    _resolve_expired(scan)


def _check(scan: Scan, versioned: VersionedRule, rule: Silence, shop: ShopClock, name: str) -> None:
    state, store = scan.state, shop.store.id
    key = open_alert_key(store, versioned, name)
    opened = 0
    if rule.hours == "open":
        since = shop.open_since(state.log_ms // 1000)
        if since is None:
            if key in state.opened:
                scan.emitter.resolve(key, "closed", "The store has closed.")
            return
        opened = since * 1000
    if key in state.opened:
        if opened > state.opened[key].since_ms:
            scan.emitter.resolve(key, "closed", "The store has closed and opened again.")
        else:
            return
    since_ms = max(state.signs[store][name], opened, state.awake_ms)
    silent = (state.log_ms - since_ms) // MINUTE_MS
    if silent >= rule.minutes:
        detection = Detection(
            versioned,
            shop,
            name,
            since_ms,
            state.log_ms + HOUR_MS,
            Decimal(silent),
            Decimal(rule.minutes),
            f"{_who(rule, name)} of store {store} has been silent for {silent} minutes.",
            dimensions={"sensor_id": name} if name else {},
        )
        scan.emitter.raise_alert(detection)


def _resolve_expired(scan: Scan) -> None:
    """Resolve alerts on sensors that have been silent beyond the time that is remembered."""
    rules = {each.key for each in scan.rule_set.by_topic.get(scan.topic, ()) if isinstance(each.rule, Silence)}
    silent = {key: open_ for key, open_ in scan.state.opened.items() if open_.key in rules}
    for key, open_ in sorted(silent.items()):
        if open_.name not in scan.state.signs.get(open_.store, {}):
            scan.emitter.resolve(key, "forgotten", "It has been silent for so long that it is no longer watched.")


def _who(rule: Silence, name: str) -> str:
    return f"The sensor {name}" if name else f"The source {rule.source}"
