"""Level rules: how many people wait in a queue or are inside, and since when there have been more than a rule allows.

A level is that of the newest event by event time: an older one that arrives late changes nothing. It starts again at
zero with each business day, because nobody stays overnight, and counting errors must not accumulate.
"""

from decimal import Decimal

from master_dataset.sources.people_counts import Count
from master_dataset.sources.queue_events import Waiting
from speed_layer.alerts.scan import Detection, Scan, open_alert_key
from speed_layer.alerts.state import HOUR_MS, MAX_NAMES, MINUTE_MS, Level
from views.alerts.rule import Level as LevelRule
from views.alerts.rule_history import VersionedRule
from views.alerts.shop_clock import ShopClock
from views.core.formula import inside
from views.core.local_time import STEP, Span
from views.traffic import TRAFFIC

INSIDE = ""
LATE_MS = 15_000
"""How long an alert waits for late events that show that the level ended in time."""
_STEPS = {"join": 1, "service_start": -1, "abandon": -1, "leave": 0}


def on_event(scan: Scan, shop: ShopClock, payload: object, happened_ms: int) -> None:
    """An event may have changed a level of the store."""
    day_s = shop.business_day(happened_ms // 1000)
    if isinstance(payload, Waiting):
        _set(scan, shop, payload.queue, Level(happened_ms, _length(scan, shop, payload, day_s), day_s))
    elif isinstance(payload, Count):
        ended_ms = happened_ms + payload.interval_ms
        span = Span(day_s, ended_ms // 1000 + STEP)
        _set(scan, shop, INSIDE, Level(ended_ms, _inside(scan, shop, span), day_s))


def on_tick(scan: Scan) -> None:
    """Time has passed: levels may have lasted long enough, or their business day is over."""
    for shop in scan.shops(list(scan.state.levels)):
        levels = scan.state.levels[shop.store.id]
        today = shop.business_day(scan.state.log_ms // 1000)
        for name, level in sorted(levels.items()):
            if level.day_s < today:
                levels[name] = Level(today * 1000, 0, today)
            _compare(scan, shop, name)
            if level.day_s < today:
                del levels[name]
    keys = {each.key for each in scan.rule_set.by_topic.get(scan.topic, ())}
    episodes = scan.state.episodes
    scan.state.episodes = {
        key: kept for key in sorted(episodes) if key in keys and (kept := {k: v for k, v in episodes[key].items() if v})
    }


def _set(scan: Scan, shop: ShopClock, name: str, level: Level) -> None:
    levels = scan.state.levels.setdefault(shop.store.id, {})
    known = levels.get(name)
    if known is None and len(levels) >= MAX_NAMES:
        return
    level.at_ms = min(level.at_ms, scan.state.log_ms)  # a clock may be fast
    if known is not None and known.day_s >= level.day_s:
        if known.day_s > level.day_s or (name != INSIDE and known.at_ms > level.at_ms):
            return
        level.at_ms = max(level.at_ms, known.at_ms)
    levels[name] = level
    _compare(scan, shop, name)


def _length(scan: Scan, shop: ShopClock, payload: Waiting, day_s: int) -> int:
    """The length of a queue: as reported by the sensor, otherwise one more or less than before on that day."""
    if payload.length_after is not None:
        return payload.length_after
    known = scan.state.levels.get(shop.store.id, {}).get(payload.queue)
    is_of_day = known is not None and known.day_s >= day_s  # a clock may be fast, and the log not yet at that day
    return max(0, (known.value if known and is_of_day else 0) + _STEPS[payload.change])


def _inside(scan: Scan, shop: ShopClock, span: Span) -> int:
    own = scan.state.cells.get(TRAFFIC.name, {}).get(shop.store.id, {})
    flows = [(own[at][0], own[at][1]) for at in range(span.start, span.end, STEP) if at in own]
    return ([*inside(flows)] or [0])[-1]


def _compare(scan: Scan, shop: ShopClock, name: str) -> None:
    store = shop.store.id
    level = scan.state.levels[store][name]
    for versioned, rule in scan.rules(LevelRule, shop):
        since = scan.state.episodes.get(versioned.key, {}).get(store, {}).get(name)
        if level.value > rule.above:
            if since is None:
                since = level.at_ms
                scan.state.episodes.setdefault(versioned.key, {}).setdefault(store, {})[name] = since
            waited = rule.minutes * MINUTE_MS + LATE_MS if rule.minutes else 0
            if scan.state.log_ms >= max(since, scan.state.awake_ms if waited else 0) + waited:
                _raise_alert(scan, versioned, rule, shop, name)
        elif since is not None:
            if level.at_ms - since >= rule.minutes * MINUTE_MS > 0:
                _raise_alert(scan, versioned, rule, shop, name)
            del scan.state.episodes[versioned.key][store][name]
            key = open_alert_key(store, versioned, name)
            if key in scan.state.opened:
                what = f"{_what(name)} is down to {level.value}."
                scan.emitter.resolve(key, "over", what, Decimal(level.value))


def _raise_alert(scan: Scan, versioned: VersionedRule, rule: LevelRule, shop: ShopClock, name: str) -> None:
    store = shop.store.id
    since_ms = scan.state.episodes[versioned.key][store][name]
    certain_ms = since_ms + rule.minutes * MINUTE_MS
    if open_alert_key(store, versioned, name) in scan.state.opened or not scan.is_fresh(certain_ms):
        return
    value = scan.state.levels[store][name].value
    lasts = f" for {rule.minutes} minutes" if rule.minutes else ""
    scan.emitter.raise_alert(
        Detection(
            versioned,
            shop,
            name,
            since_ms,
            scan.state.log_ms + HOUR_MS,
            Decimal(value),
            Decimal(rule.above),
            f"{_what(name)} of store {store} has been above {rule.above}{lasts}.",
            dimensions={"queue": name} if name else {},
        )
    )


def _what(name: str) -> str:
    return f"The queue {name}" if name else "The number of people inside"
