"""Threshold rules: evaluated when their window is over, and upper bounds on sums also with every event."""

from speed_layer.alerts.scan import Detection, Scan, open_alert_key, to_ms
from speed_layer.alerts.state import HOUR_MS
from views.alerts.evaluation import can_fire_early, evaluate_threshold
from views.alerts.rule import Threshold
from views.alerts.rule_history import VersionedRule
from views.alerts.rule_metrics import alertable_metrics, alertable_views
from views.alerts.sentences import alert_sentence, stated_bound
from views.alerts.shop_clock import ShopClock
from views.core.local_time import STEP, Span
from views.core.metric import Metric


def on_event(scan: Scan, shop: ShopClock, quarter: int) -> None:
    """An event was added to that quarter of an hour."""
    for versioned, rule in scan.rules(Threshold, shop):
        span = shop.span(rule.window, quarter)
        if scan.is_fresh(span.end * 1000) and (can_fire_early(rule) or span.end <= scan.state.closed_s):
            _check(scan, versioned, rule, shop, span)


def on_tick(scan: Scan) -> None:
    """Time has passed: evaluate the windows that are over."""
    _resolve_expired(scan)
    state, grace = scan.state, to_ms(scan.timings.grace)
    over = (state.log_ms - grace) // 1000 // STEP * STEP
    if over <= state.closed_s or state.log_ms < state.awake_ms + grace:
        return
    first = max(state.closed_s, over - to_ms(scan.timings.fresh) // 1000) + STEP
    state.closed_s = over
    for end in range(first // STEP * STEP, over + 1, STEP):
        _close(scan, end)
    _resolve_followed(scan)


def _close(scan: Scan, end: int) -> None:
    stores = {store for view in alertable_views(scan.topic) for store in scan.state.cells.get(view.view.name, {})}
    for shop in scan.shops(sorted(stores)):
        for versioned, rule in scan.rules(Threshold, shop):
            span = shop.span(rule.window, end - STEP)
            if span.end == end and scan.is_fresh(end * 1000):
                _check(scan, versioned, rule, shop, span)


def _check(scan: Scan, versioned: VersionedRule, rule: Threshold, shop: ShopClock, span: Span) -> None:
    store = shop.store.id
    metric = alertable_metrics()[rule.metric]
    [states] = [each.states for each in alertable_views(scan.topic) if each.view.name == metric.view]
    if not _has_data_before(scan, metric, rule, shop, span):
        return
    result = evaluate_threshold(rule, shop, span, states, lambda window: scan.sums(metric.view, store, window))
    name = str(span.start)
    key = open_alert_key(store, versioned, name)
    if result.holds:
        detection = Detection(
            versioned,
            shop,
            name,
            span.start * 1000,
            span.end * 1000 + 2 * to_ms(scan.timings.fresh),
            result.value,
            stated_bound(rule),
            alert_sentence(rule, shop, result),
            result.baseline,
            span.end,
        )
        scan.emitter.raise_alert(detection)
    elif key in scan.state.opened:
        what = f"{metric.name} is {result.value} after later events, and no longer beyond the bound."
        scan.emitter.resolve(key, "corrected", what, result.value)


def _has_data_before(scan: Scan, metric: Metric, rule: Threshold, shop: ShopClock, span: Span) -> bool:
    """Whether there are earlier events: if the log begins inside the window, events may be missing."""
    if rule.above is not None and rule.versus is None:
        return True
    first = min(scan.state.cells.get(metric.view, {}).get(shop.store.id, {span.end: []}))
    return first < (shop.week_before(rule.window, span) if rule.versus else span).start


def _resolve_expired(scan: Scan) -> None:
    """Resolve alerts that no later window has resolved in time: a state restored from the log would not have them."""
    rules = {each.key for each in scan.rule_set.by_topic.get(scan.topic, ()) if isinstance(each.rule, Threshold)}
    expired_ms = scan.state.log_ms // HOUR_MS * HOUR_MS - to_ms(scan.timings.stays_open)
    for key, open_ in sorted(scan.state.opened.items()):
        if open_.key in rules and open_.until_s * 1000 < expired_ms:
            scan.emitter.resolve(key, "forgotten", "Its window is so old that it is no longer watched.")


def _resolve_followed(scan: Scan) -> None:
    """An alert about a window is over once the next window has been evaluated."""
    rules = {each.key: each.rule for each in scan.rule_set.by_topic.get(scan.topic, ())}
    for key, open_ in sorted(scan.state.opened.items()):
        rule, shop = rules.get(open_.key), scan.rule_set.shops.get(open_.store)
        if isinstance(rule, Threshold) and shop and shop.span(rule.window, open_.until_s).end <= scan.state.closed_s:
            scan.emitter.resolve(key, "over", "The window after it is over as well.")
