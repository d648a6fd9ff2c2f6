"""Silence: no sign of life for some minutes, while the shop is open and the log itself was there to hear one."""

from decimal import Decimal

from speed_layer.alerts.scan import Found, Look, opened_key
from speed_layer.alerts.state import HOUR_MS, MINUTE_MS
from views.alerts.rule import Silence
from views.alerts.rule_history import Numbered
from views.alerts.shop_clock import ShopClock

ANY = ""
"""The name under which a store's own last sign of life is kept, beside those of its sensors."""


def heard(look: Look, shop: ShopClock, sensor: str, at_ms: int) -> None:
    """Somebody or something was alive until then."""
    store, at_ms = shop.store.id, min(at_ms, look.state.log_ms)  # a clock may be fast
    signs = look.state.signs.setdefault(store, {})
    for name in {ANY, sensor}:
        signs[name] = max(signs.get(name, at_ms), at_ms)
    for each, rule in look.rules(Silence, shop):
        for name in [ANY] if rule.per == "store" else [sensor]:
            key = opened_key(store, each, name)
            open_ = look.state.opened.get(key)
            if open_ and signs[name] > open_.since_ms:
                look.telling.resolve(key, "heard", f"{_who(rule, name)} is heard again.")


def passed(look: Look) -> None:
    """Time has passed."""
    for shop in look.shops(list(look.state.signs)):
        for each, rule in look.rules(Silence, shop):
            signs = look.state.signs[shop.store.id]
            for name in [ANY] if rule.per == "store" else sorted(set(signs) - {ANY}):
                _look_at(look, each, shop, name)
    _give_up(look)


def _look_at(look: Look, each: Numbered, shop: ShopClock, name: str) -> None:
    rule, state, store = each.rule, look.state, shop.store.id
    assert isinstance(rule, Silence)  # noqa: S101 - `rules` chose it by its kind
    key = opened_key(store, each, name)
    opened = 0
    if rule.hours == "open":
        since = shop.open_since(state.log_ms // 1000)
        if since is None:
            if key in state.opened:
                look.telling.resolve(key, "closed", "The store has closed.")
            return
        opened = since * 1000
    if key in state.opened:
        if opened > state.opened[key].since_ms:
            look.telling.resolve(key, "closed", "The store has closed, and opened again.")
        else:
            return
    since_ms = max(state.signs[store][name], opened, state.awake_ms)
    silent = (state.log_ms - since_ms) // MINUTE_MS
    if silent >= rule.minutes:
        found = Found(
            each,
            shop,
            name,
            since_ms,
            state.log_ms + HOUR_MS,
            Decimal(silent),
            Decimal(rule.minutes),
            f"{_who(rule, name)} of store {store} has been silent for {silent} minutes.",
            dimensions={"sensor_id": name} if name else {},
        )
        look.telling.tell(found)


def _give_up(look: Look) -> None:
    """A sensor that nobody has heard for longer than the log is remembered is no longer waited for."""
    rules = {each.key for each in look.page.by_topic.get(look.topic, ()) if isinstance(each.rule, Silence)}
    silent = {key: open_ for key, open_ in look.state.opened.items() if open_.key in rules}
    for key, open_ in sorted(silent.items()):
        if open_.name not in look.state.signs.get(open_.store, {}):
            look.telling.resolve(key, "forgotten", "It was silent for so long that it is no longer waited for.")


def _who(rule: Silence, name: str) -> str:
    return f"The sensor {name}" if name else f"The source {rule.source}"
