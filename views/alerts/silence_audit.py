"""Silences that were none: what was heard later of the minutes in question. Nothing that is missing is raised."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from views.alerts.alert import Alert, Cause, instant_ms
from views.alerts.correction import Because, retracted
from views.alerts.facts import Bounds, Facts, Sign, Wanted
from views.alerts.judge import MINUTE_MS, Verdict, was_silent
from views.alerts.open_alerts import Standing
from views.alerts.rule import Rule, Silence

_SENSOR = "sensor_id"


class _Open(NamedTuple):
    standing: Standing
    rule: Silence
    wanted: Wanted


def retracted_silences(
    rules: Mapping[tuple[str, str, int], Rule], facts: Facts, bounds: Bounds, told: Mapping[str, Standing]
) -> Iterator[Alert]:
    """In a fixed order. A silence that was taken back stays so: what was heard cannot be unheard."""
    by_source: dict[str, list[_Open]] = {}
    for _, standing in sorted(told.items()):
        alert = standing.raised
        rule = rules.get((alert.tenant, alert.rule, alert.version))
        since_ms = instant_ms(alert.window.start)
        is_in = bounds.oldest_ms <= since_ms and alert.raised_ms < bounds.until_ms
        if isinstance(rule, Silence) and is_in and not standing.is_taken_back:
            until_ms, is_new = since_ms + rule.minutes * MINUTE_MS, alert.raised_ms >= bounds.since_ms
            wanted = Wanted(alert.store, alert.dimensions.get(_SENSOR), since_ms, until_ms, is_new)
            by_source.setdefault(rule.source, []).append(_Open(standing, rule, wanted))
    for source, opened in sorted(by_source.items()):
        signs = facts.signs(source, {each.wanted for each in opened})
        for each in opened:
            heard = sorted(signs.get(each.wanted, ()))
            if not was_silent(each.rule, (sign.at_ms for sign in heard), each.wanted.since_ms):
                yield _retracted(each, heard, bounds)


def _retracted(each: _Open, signs: list[Sign], bounds: Bounds) -> Alert:
    alert, wanted = each.standing.raised, each.wanted
    heard = [sign for sign in signs if wanted.since_ms < sign.at_ms < wanted.until_ms]
    # Time is let pass before the record is heard that it passes with.
    later = [sign for sign in heard if sign.received_ms >= alert.raised_ms]
    cause: Cause = "unexplained"
    if any(sign.miskeyed for sign in heard):
        cause = "miskeyed"
    elif later:
        cause = "waited" if all(sign.waited for sign in later) else "late"
    minutes = Decimal((heard[0].at_ms - wanted.since_ms) // MINUTE_MS)
    who = f"The sensor {wanted.sensor}" if wanted.sensor else f"The source {each.rule.source}"
    sentence = f"{who} of store {alert.store} was heard after {minutes} minutes, which was known later."
    return retracted(each.standing, Because(Verdict(holds=False, value=minutes), sentence, cause), bounds)
