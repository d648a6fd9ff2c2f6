"""Which alarms stand about alerts and those who are told of them: pure rules over what is known."""

from datetime import timedelta

from serving_layer.health.known import Known, Standing

HOOK_STILL = timedelta(seconds=90)
"""Who calls endpoints says at least every thirty seconds how each is doing."""
HOOK_FAILS = timedelta(hours=1)
"""A restart on the other side is over within it."""
ALERTS_STILL = timedelta(seconds=30)
"""Alerts are about a second behind."""
LEFT_OUT_TIME = timedelta(hours=1)
"""It ends so long after the last one; whoever leaves them out says it twice within it."""
AUDIT_TIME = timedelta(hours=1)
"""Within it alerts are compared with a publication, however busy rebuilds are."""


def webhook_retrying(known: Known) -> Standing:
    """Whoever is to be told does not answer, or not as it should."""
    failing = [each.failing_since for each in known.hooks if each.failing_since and not each.suspended_at]
    long = [since for since in failing if known.now - since > HOOK_FAILS]
    if not long:
        return None
    meaning = f"Endpoints of webhooks that have failed for more than an hour: {len(long)}. What follows waits."
    return min(long), meaning, "galatea webhooks list, then show ID says what blocks it"


def webhook_refusing(known: Known) -> Standing:
    """Whoever is to be told takes nothing, and says so: each alert becomes a dead letter."""
    refusing = [each.refusing_since for each in known.hooks if each.refusing_since and not each.suspended_at]
    long = [since for since in refusing if known.now - since > HOOK_FAILS]
    if not long:
        return None
    meaning = f"Endpoints of webhooks that have taken nothing and refused for more than an hour: {len(long)}."
    return min(long), meaning, "galatea webhooks list; galatea dead-letters, reason alert_delivery_rejected, says why"


def webhook_suspended(known: Known) -> Standing:
    """Somebody is told nothing any more, and nobody tries."""
    suspended = [each.suspended_at for each in known.hooks if each.suspended_at]
    if not suspended:
        return None
    meaning = f"Endpoints of webhooks that failed for too long and are called no more: {len(suspended)}."
    return min(suspended), meaning, "galatea webhooks list; when it answers again: galatea webhooks resume ID"


def dispatcher_stands_still(known: Known) -> Standing:
    """Nobody says how the endpoints are doing."""
    heard = [each.seen_at or each.created_at for each in known.hooks if not each.suspended_at]
    still = [at for at in heard if known.now - at > HOOK_STILL]
    if not still:
        return None
    meaning = "The process `dispatcher` no longer says how endpoints of webhooks are doing."
    return min(still), meaning, "galatea status, then logs/dispatcher.log"


def alerts_behind(known: Known) -> Standing:
    """What came in is not judged, or not listed: somebody is not told."""
    if known.alerts_as_of is None or known.now - known.alerts_as_of <= ALERTS_STILL:
        return None
    meaning = "Events that were received since then have not been judged by the rules of alerts, or are not listed."
    return known.alerts_as_of + ALERTS_STILL, meaning, "galatea status, then logs/alerts.log"


def alerts_miskeyed(known: Known) -> Standing:
    """Sales of a store are hidden from its rules, so that they may be silent, or accuse it."""
    if not known.left_out:
        return None
    places = ", ".join(f"`{place}`" for place in sorted({each.place for each in known.left_out}))
    meaning = f"Alerts leave out events of {places}, which lie in another partition than their store's."
    return known.left_out[0].at, meaning, "let the sender use the store as the record's key, hashed by murmur2"


def alerts_unexplained(known: Known) -> Standing:
    """Alerts were told, or not told, of the same events by which a publication says otherwise."""
    if not known.odd_alerts:
        return None
    last = known.odd_alerts[-1]
    meaning = f"By `{last.place}`: {last.detail}"
    return known.odd_alerts[0].at, meaning, "galatea alerts list --json, cause `unexplained`; galatea verify"


def alerts_audit_pending(known: Known) -> Standing:
    """Alerts that the numbers deny stand as if they were right."""
    number = known.pointer.publication
    if not number or known.published_at is None or known.alerts_looked_at == number:
        return None
    since = known.published_at + AUDIT_TIME
    if known.now <= since:
        return None
    return since, f"Alerts were not yet compared with publication `{number}`.", "galatea rebuild, then logs/alerts.log"
