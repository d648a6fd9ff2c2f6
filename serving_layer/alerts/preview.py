"""What a rule would be, before it is written: accepted or not, why, which stores it would watch, and from when on."""

from typing import Any

import orjson

from master_dataset.errors import BadRule, UnknownName
from serving_layer.alerts.rule_entry import written_of
from serving_layer.alerts.rules import AlertRules, Author
from serving_layer.query.timestamps import stamp
from views.alerts.in_words import in_words

SHOWN_STORES = 20


def preview(rules: AlertRules, author: Author, said: object) -> dict[str, Any]:
    """As the API shows it. StoreUnavailable."""
    try:
        rule = rules.judged(author, said)
        before = _before(rules, author.tenant, rule.id)
        if before is None:
            rules.refuse_many(author.tenant, len(rules.listed(author.tenant)) + 1)
    except BadRule as error:
        problem = {"field": error.field, "title": error.message, "detail": error.do, "code": error.code}
        nothing: dict[str, Any] = {
            "in_words": None,
            "stores": [],
            "stores_total": 0,
            "effective_at": None,
            "rule": None,
            "before": None,
        }
        return {"accepted": False, "fires": error.fires, "problem": problem, **nothing}
    watched = sorted(each.id for each in author.stores.values() if rule.watches(each.id, each.tenant))
    return {
        "accepted": True, "fires": None, "problem": None, "in_words": in_words(rule),
        "stores": watched[:SHOWN_STORES], "stores_total": len(watched),
        "effective_at": stamp(rules.effective_at()), "rule": written_of(rule), "before": before,
    }  # fmt: skip


def _before(rules: AlertRules, tenant: str, id_: str) -> orjson.Fragment | None:
    try:
        found = rules.one(tenant, id_).rule
    except UnknownName:
        return None
    return written_of(found) if found else None
