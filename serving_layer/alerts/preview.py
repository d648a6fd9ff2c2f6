"""What a rule would be, before it is written: accepted or not, why, which stores it would watch, and from when on."""

from master_dataset.errors import BadRule, UnknownName
from serving_layer.alerts.rules import AlertRules, Author
from serving_layer.query.timestamps import stamp
from serving_layer.responses.alerts import RulePreview, RuleProblem
from views.alerts.in_words import in_words
from views.alerts.rule import Rule

SHOWN_STORES = 20


def preview(rules: AlertRules, author: Author, said: object) -> RulePreview:
    """As the API shows it. StoreUnavailable."""
    try:
        rule = rules.judged(author, said)
        before = _before(rules, author.tenant, rule.id)
        if before is None:
            rules.refuse_many(author.tenant, len(rules.listed(author.tenant)) + 1)
    except BadRule as error:
        return RulePreview(
            accepted=False,
            fires=error.fires,
            problem=RuleProblem(error.field, error.message, error.do, error.code),
            in_words=None,
            stores=[],
            stores_total=0,
            effective_at=None,
            rule=None,
            before=None,
        )
    watched = sorted(each.id for each in author.stores.values() if rule.watches(each.id, each.tenant))
    return RulePreview(
        accepted=True,
        fires=None,
        problem=None,
        in_words=in_words(rule),
        stores=watched[:SHOWN_STORES],
        stores_total=len(watched),
        effective_at=stamp(rules.effective_at()),
        rule=rule,
        before=before,
    )


def _before(rules: AlertRules, tenant: str, id_: str) -> Rule | None:
    try:
        return rules.one(tenant, id_).rule
    except UnknownName:
        return None
