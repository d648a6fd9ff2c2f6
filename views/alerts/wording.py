"""How a bound that was crossed is told: the same words, whoever tells it."""

from decimal import Decimal

from views.alerts.followed import followed_metrics
from views.alerts.judge import Verdict
from views.alerts.rule import Threshold
from views.alerts.shop_clock import ShopClock


def bound_said(rule: Threshold) -> Decimal:
    """The bound as somebody wrote it."""
    return rule.above if rule.above is not None else rule.below or Decimal(0)


def sentence_of(rule: Threshold, shop: ShopClock, verdict: Verdict) -> str:
    """What is beyond the bound."""
    side, bound = ("above", rule.above) if rule.above is not None else ("below", rule.below)
    shown = f"{followed_metrics()[rule.metric].name} of store {shop.store.id}: {verdict.value}"
    if rule.versus:
        return f"{shown}, more than {bound} % {side} the {verdict.baseline} of the same time a week before."
    return f"{shown}, {side} {bound}."


def taken_back_because(rule: Threshold, shop: ShopClock, verdict: Verdict) -> str:
    """What is no longer beyond the bound."""
    name = followed_metrics()[rule.metric].name
    if not rule.versus:
        return f"{name} of store {shop.store.id} is {verdict.value} by now, and not beyond the bound."
    compared = f"compared with {verdict.baseline} of a week before"
    return f"{name} of store {shop.store.id} is {verdict.value} by now, {compared}, and not beyond the bound."
