"""Bounds of metrics: judged with every event while it is too much, and when the window is over in any case."""

from speed_layer.alerts.scan import Found, Look, ms, opened_key
from speed_layer.alerts.state import HOUR_MS
from views.alerts.evaluation import is_running, judge
from views.alerts.rule import Threshold
from views.alerts.rule_history import Numbered
from views.alerts.rule_metrics import followed_metrics, followed_views
from views.alerts.sentences import bound_said, sentence_of
from views.alerts.shop_clock import ShopClock
from views.core.local_time import STEP, Span
from views.core.metric import Metric


def heard(look: Look, shop: ShopClock, quarter: int) -> None:
    """An event was added to that quarter of an hour."""
    for each, rule in look.rules(Threshold, shop):
        span = shop.span(rule.window, quarter)
        if look.is_fresh(span.end * 1000) and (is_running(rule) or span.end <= look.state.closed_s):
            _judge(look, each, shop, span)


def passed(look: Look) -> None:
    """Time has passed: windows may be over."""
    _give_up(look)
    state, grace = look.state, ms(look.horizons.grace)
    over = (state.log_ms - grace) // 1000 // STEP * STEP
    if over <= state.closed_s or state.log_ms < state.awake_ms + grace:
        return
    first = max(state.closed_s, over - ms(look.horizons.fresh) // 1000) + STEP
    state.closed_s = over
    for end in range(first // STEP * STEP, over + 1, STEP):
        _close(look, end)
    _resolve_followed(look)


def _close(look: Look, end: int) -> None:
    stores = {store for view in followed_views(look.topic) for store in look.state.cells.get(view.view.name, {})}
    for shop in look.shops(sorted(stores)):
        for each, rule in look.rules(Threshold, shop):
            span = shop.span(rule.window, end - STEP)
            if span.end == end and look.is_fresh(end * 1000):
                _judge(look, each, shop, span)


def _judge(look: Look, each: Numbered, shop: ShopClock, span: Span) -> None:
    rule, store = each.rule, shop.store.id
    assert isinstance(rule, Threshold)  # noqa: S101 - `rules` chose it by its kind
    metric = followed_metrics()[rule.metric]
    [states] = [followed.states for followed in followed_views(look.topic) if followed.view.name == metric.view]
    if not _is_known_since(look, metric, rule, shop, span):
        return
    verdict = judge(rule, shop, span, states, lambda of: look.sums(metric.view, store, of))
    name = str(span.start)
    key = opened_key(store, each, name)
    if verdict.holds:
        found = Found(
            each,
            shop,
            name,
            span.start * 1000,
            span.end * 1000 + 2 * ms(look.horizons.fresh),
            verdict.value,
            bound_said(rule),
            sentence_of(rule, shop, verdict),
            verdict.baseline,
            span.end,
        )
        look.telling.tell(found)
    elif key in look.state.opened:
        what = f"{metric.name} is {verdict.value} after later events, and no longer beyond the bound."
        look.telling.resolve(key, "corrected", what, verdict.value)


def _is_known_since(look: Look, metric: Metric, rule: Threshold, shop: ShopClock, span: Span) -> bool:
    """Whether there are events from before: of a log that begins inside a window nobody knows what is missing."""
    if rule.above is not None and rule.versus is None:
        return True
    first = min(look.state.cells.get(metric.view, {}).get(shop.store.id, {span.end: []}))
    return first < (shop.week_before(rule.window, span) if rule.versus else span).start


def _give_up(look: Look) -> None:
    """Resolve alerts whose window has left the horizon without a later window having been judged."""
    rules = {each.key for each in look.page.by_topic.get(look.topic, ()) if isinstance(each.rule, Threshold)}
    kept_ms = look.state.log_ms // HOUR_MS * HOUR_MS - ms(look.horizons.kept)
    for key, open_ in sorted(look.state.opened.items()):
        if open_.key in rules and open_.until_s * 1000 < kept_ms:
            look.telling.resolve(key, "forgotten", "Its window is so old that it is no longer followed.")


def _resolve_followed(look: Look) -> None:
    """What was beyond its bound in one window is over when the next one has been judged."""
    rules = {each.key: each.rule for each in look.page.by_topic.get(look.topic, ())}
    for key, open_ in sorted(look.state.opened.items()):
        rule, shop = rules.get(open_.key), look.page.shops.get(open_.store)
        if isinstance(rule, Threshold) and shop and shop.span(rule.window, open_.until_s).end <= look.state.closed_s:
            look.telling.resolve(key, "over", "The window after it is over as well.")
