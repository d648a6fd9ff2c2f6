"""Between a rule and the fields of its form.

`/alerts/rules/…`: a rule as a form: tried before it is saved, changed, removed. For keys that may `configure`.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from master_dataset.errors import BadRuleError, GalateaError, UnknownNameError
from master_dataset.sources import registered_sources
from serving_layer.alerts.rules import AlertRules, RuleAuthor, RuleEntry, fields_of, preview
from serving_layer.api.parameters import DEFAULT, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.pages.alerts import MINUS, plain
from serving_layer.pages.routing import ConfigurerVisit, Fields, Visit, first, read_own_form, routes
from serving_layer.responses.alerts import RulePreview, RuleProblem
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.rule_validation import KINDS

OF_ALL = ("kind", "id", "name")
OF_KIND = {
    "threshold": ("metric", "window", "hours", "versus"),
    "silence": ("source", "minutes", "per", "hours"),
    "level": ("of", "above", "minutes"),
}
SIDES = ("above", "below")


def rule_of(fields: Fields) -> dict[str, Any]:
    """A rule in the words of `POST /v1/alert-rules`, which knows what is allowed. What is empty is left out."""
    kind = first(fields, "kind")
    names = (*OF_ALL, *OF_KIND.get(kind, ()))
    said: dict[str, Any] = {name: value for name in names if (value := first(fields, name))}
    if kind == "threshold" and first(fields, "side") in SIDES and (bound := first(fields, "bound")):
        said[first(fields, "side")] = bound.replace(",", "").replace(MINUS, "-")
    stores = [store for text in fields.get("stores", []) for store in text.replace(",", " ").split()]
    return said | ({"stores": stores} if stores else {}) | {"on": first(fields, "on") == "yes"}


def filled(entry: RuleEntry) -> Mapping[str, str]:
    """The fields of a rule that is there."""
    rule = entry.rule
    said = fields_of(rule) if rule else {}
    told = {name: str(value) for name, value in said.items() if name not in ("stores", "on", *SIDES)}
    side = next((side for side in SIDES if said.get(side) is not None), "above")
    if told.get("kind") == "threshold":
        told |= {"side": side, "bound": plain(said[side])}
    elif "above" in said:
        told["above"] = str(said["above"])
    if entry.unreadable:
        told["unreadable"] = entry.in_words or ""
    return told | {
        "stores": " ".join(said.get("stores", ())),
        "on": "yes" if said.get("on") or entry.unreadable else "",
        "version": str(entry.version),
        "id": entry.id,
    }


router = routes()
PATH = "/alerts/rules"
MOST_BYTES = 1_000_000
Tenant = Annotated[str, Query(max_length=256)]
OF = ("", "queue", "occupancy")


@router.get(f"{PATH}/new")
async def get_new(
    visit: ConfigurerVisit, kind: str = "level", tenant: Tenant = "", of: str = "", store: str = ""
) -> Response:
    """An empty form for a rule of that kind."""
    if kind not in KINDS or of not in OF:
        raise UnknownNameError("kind", kind, KINDS)
    said = {"kind": kind, "of": of or "queue", "stores": store[:256], "on": "yes"}
    return await _form(visit, said, _whose(visit, tenant))


@router.get(f"{PATH}/{{id_}}")
async def get_rule(visit: ConfigurerVisit, id_: str, tenant: Tenant = "", kind: str = "level") -> Response:
    """The form as the rule says it now. `kind`: of what replaces one that cannot be read."""
    whose = _whose(visit, tenant)
    entry = await visit.alerting.beside(lambda rules: rules.one(whose, id_))
    return await _form(visit, {"kind": kind, **filled(entry)}, whose)


@router.post(PATH)
async def post_rule(visit: ConfigurerVisit) -> Response:
    """Try what a rule would be, save it or remove it; or the form again, with what is wrong."""
    fields = await read_own_form(visit.request, visit.visitor, MOST_BYTES)
    said = {name: first(fields, name) for name in fields}
    whose, does = _whose(visit, said.get("tenant", "")), said.get("do")
    _, stores = await visit.answers.all.stores.all()
    author = RuleAuthor(whose, stores)
    try:
        if does == "remove":
            await visit.alerting.beside(lambda rules: rules.remove(whose, said.get("id", ""), _seen(said)))
            return _back(visit, whose, "removed")
        rule = rule_of(fields)
        if does == "save":
            await visit.alerting.beside(lambda rules: _save(rules, author, rule, said))
            return _back(visit, whose, "saved")
        tried = await visit.alerting.beside(lambda rules: preview(rules, author, rule))
    except GalateaError as error:
        return await _form(visit, _again(fields, said), whose, refused=error)
    return await _form(visit, _again(fields, said), whose, tried=tried)


def _save(rules: AlertRules, author: RuleAuthor, rule: Mapping[str, Any], said: Mapping[str, str]) -> RuleEntry:
    seen = _seen(said)
    if seen:
        return rules.replace(author, str(rule.get("id", "")), rule, seen)
    return rules.create(author, rule)


def _seen(said: Mapping[str, str]) -> int:
    """The version that the form was filled with; 0: there was none."""
    text = said.get("version", "") or "0"
    if not text.isdecimal() or len(text) > 9:  # noqa: PLR2004 - of a version
        raise BadQuestionError("The form does not say which version it was made from.", do="Open the rule again.")
    return int(text)


def _again(fields: Fields, said: Mapping[str, str]) -> dict[str, str]:
    """What was filled in, so that nothing has to be said twice."""
    return {**said, "stores": " ".join(fields.get("stores", []))}


def _whose(visit: Visit, tenant: str) -> str:
    return tenant_of(visit.visitor.caller, tenant or None, DEFAULT)


def _back(visit: Visit, whose: str, done: str) -> Response:
    more = {"tenant": whose} if visit.visitor.caller.sees_all and whose != DEFAULT else {}
    return RedirectResponse(f"/alerts?{urlencode({**more, 'done': done})}#rules", HTTPStatus.SEE_OTHER)


async def _form(
    visit: Visit,
    said: Mapping[str, str],
    whose: str,
    *,
    tried: RulePreview | None = None,
    refused: GalateaError | None = None,
) -> Response:
    problem = tried.problem if tried else None
    if refused:
        field = refused.field if isinstance(refused, BadRuleError) else ""
        problem = RuleProblem(field, refused.message, refused.do, refused.code)
    kind = said.get("kind", "") if said.get("kind") in KINDS else "level"
    told = {
        "said": {**said, "kind": kind},
        "kind": kind,
        "whose": whose,
        "tried": tried,
        "problem": problem,
        "is_new": said.get("version", "") in ("", "0"),
        "sources": list(registered_sources()),
        "metrics": {name: metric.name for name, metric in sorted(alertable_metrics().items())},
        "quoted": quote,
    }
    status = refused.status if refused else HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    return visit.page("alert_rule.html", await visit.fresh(), told, status=status)
