"""`/alerts/rules/...`: the form of an alert rule, tried before it is saved. For keys with the scope `configure`."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from master_dataset.errors import BadRuleError, GalateaError, UnknownNameError
from master_dataset.sources import registered_sources
from serving_layer.alerts.rules import AlertRules, RuleAuthor, RuleEntry, fields_of, preview
from serving_layer.api.parameters import DEFAULT_TENANT, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.pages.figures import plain_number
from serving_layer.pages.language import MINUS
from serving_layer.pages.routing import ConfigurerVisit, Form, Visit, page_router
from serving_layer.responses.alerts import RulePreview, RuleProblem
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.rule_validation import KINDS

router = page_router()
PATH = "/alerts/rules"
MAX_BYTES = 1_000_000
MAX_VERSION_DIGITS = 9
COUNTED = ("", "queue", "occupancy")
COMMON_FIELDS = ("kind", "id", "name")
KIND_FIELDS = {
    "threshold": ("metric", "window", "hours", "versus"),
    "silence": ("source", "minutes", "per", "hours"),
    "level": ("of", "above", "minutes"),
}
SIDES = ("above", "below")
Tenant = Annotated[str, Query(max_length=256)]


@router.get(f"{PATH}/new")
async def get_new(
    visit: ConfigurerVisit, kind: str = "level", tenant: Tenant = "", of: str = "", store: str = ""
) -> Response:
    """An empty form for a rule of that kind."""
    if kind not in KINDS or of not in COUNTED:
        raise UnknownNameError("kind", kind, KINDS)
    fields = {"kind": kind, "of": of or "queue", "stores": store[:256], "on": "yes"}
    return await _form_page(visit, fields, _tenant(visit, tenant))


@router.get(f"{PATH}/{{id_}}")
async def get_rule(visit: ConfigurerVisit, id_: str, tenant: Tenant = "", kind: str = "level") -> Response:
    """The form of a rule. `kind`: of the rule that replaces an unreadable one."""
    owner = _tenant(visit, tenant)
    entry = await visit.alerting.in_thread(lambda rules: rules.one(owner, id_))
    return await _form_page(visit, {"kind": kind, **_fields_of_entry(entry)}, owner)


@router.post(PATH)
async def post_rule(visit: ConfigurerVisit) -> Response:
    """Try a rule, save it or remove it; or the form again, with what is wrong."""
    form = await visit.form(MAX_BYTES)
    fields = {name: form.text(name) for name in form} | {"stores": " ".join(form.get("stores", []))}
    tenant, action = _tenant(visit, form.text("tenant")), form.text("do")
    _, stores = await visit.queries.service.stores.all()
    author = RuleAuthor(tenant, stores)
    try:
        if action == "remove":
            await visit.alerting.in_thread(lambda rules: rules.remove(tenant, form.text("id"), _version(form)))
            return _back_to_rules(visit, tenant, "removed")
        rule = _rule(form)
        if action == "save":
            await visit.alerting.in_thread(lambda rules: _save(rules, author, rule, _version(form)))
            return _back_to_rules(visit, tenant, "saved")
        tried = await visit.alerting.in_thread(lambda rules: preview(rules, author, rule))
    except GalateaError as error:
        return await _form_page(visit, fields, tenant, error=error)
    return await _form_page(visit, fields, tenant, tried=tried)


def _save(rules: AlertRules, author: RuleAuthor, rule: Mapping[str, Any], version: int) -> RuleEntry:
    if version:
        return rules.replace(author, str(rule.get("id", "")), rule, version)
    return rules.create(author, rule)


def _version(form: Form) -> int:
    """The version that the form was filled with; 0 for a new rule."""
    text = form.text("version") or "0"
    if not text.isdecimal() or len(text) > MAX_VERSION_DIGITS:
        raise BadQuestionError("The form does not say which version it was made from.", do="Open the rule again.")
    return int(text)


def _rule(form: Form) -> dict[str, Any]:
    """The body that `POST /v1/alert-rules` would get, which knows what is allowed. Empty fields are left out."""
    kind, side, bound = form.text("kind"), form.text("side"), form.text("bound")
    rule: dict[str, Any] = form.texts(*COMMON_FIELDS, *KIND_FIELDS.get(kind, ()))
    if kind == "threshold" and side in SIDES and bound:
        rule[side] = bound.replace(",", "").replace(MINUS, "-")
    stores = form.ids("stores")
    return rule | ({"stores": stores} if stores else {}) | {"on": form.text("on") == "yes"}


def _fields_of_entry(entry: RuleEntry) -> Mapping[str, str]:
    """The form of a saved rule, filled in."""
    rule = fields_of(entry.rule) if entry.rule else {}
    fields = {name: str(value) for name, value in rule.items() if name not in ("stores", "on", *SIDES)}
    side = next((side for side in SIDES if rule.get(side) is not None), "above")
    if fields.get("kind") == "threshold":
        fields |= {"side": side, "bound": plain_number(rule[side])}
    elif "above" in rule:
        fields["above"] = str(rule["above"])
    if entry.unreadable:
        fields["unreadable"] = entry.in_words or ""
    return fields | {
        "stores": " ".join(rule.get("stores", ())),
        "on": "yes" if rule.get("on") or entry.unreadable else "",
        "version": str(entry.version),
        "id": entry.id,
    }


def _tenant(visit: Visit, tenant: str) -> str:
    return tenant_of(visit.visitor.caller, tenant or None, DEFAULT_TENANT)


def _back_to_rules(visit: Visit, tenant: str, done: str) -> Response:
    filters = {"tenant": tenant} if visit.visitor.caller.sees_all and tenant != DEFAULT_TENANT else {}
    return RedirectResponse(f"/alerts?{urlencode({**filters, 'done': done})}#rules", HTTPStatus.SEE_OTHER)


async def _form_page(
    visit: Visit,
    fields: Mapping[str, str],
    tenant: str,
    *,
    tried: RulePreview | None = None,
    error: GalateaError | None = None,
) -> Response:
    """The form as it was filled in, with what the rule would do or what is wrong with it."""
    problem = tried.problem if tried else None
    if error:
        field = error.field if isinstance(error, BadRuleError) else ""
        problem = RuleProblem(field, error.message, error.do, error.code)
    kind = fields.get("kind", "") if fields.get("kind") in KINDS else "level"
    values = {
        "fields": {**fields, "kind": kind},
        "kind": kind,
        "tenant": tenant,
        "tried": tried,
        "problem": problem,
        "is_new": fields.get("version", "") in ("", "0"),
        "sources": list(registered_sources()),
        "metrics": {name: metric.name for name, metric in sorted(alertable_metrics().items())},
    }
    status = error.status if error else HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    return visit.page("alert_rule.html", await visit.fresh(), values, status=status)
