"""`/alerts/rules/...`: the form of an alert rule, tried before it is saved. For keys with the scope `configure`."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Response
from fastapi.responses import RedirectResponse

from master_dataset.errors import BadRuleError, GalateaError, UnknownNameError
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from serving_layer.alerts.rules import AlertRules, RuleAuthor, RuleEntry, fields_of, preview
from serving_layer.api.parameters import DEFAULT_TENANT, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.pages.cells import LACKING, metric_name, source_name
from serving_layer.pages.figures import instant, plain_number
from serving_layer.pages.language import MINUS, gettext_noop
from serving_layer.pages.language import gettext as _
from serving_layer.pages.pickers import id_from, lacking_stores, names_of, store_groups
from serving_layer.pages.queries import PageQuery, QueryFailure
from serving_layer.pages.routing import ConfigurerVisit, Form, Visit, page_router
from serving_layer.responses.alerts import RulePreview, RuleProblem
from serving_layer.responses.encoding import Number
from views.alerts.rule import LEVEL_SOURCES, Rule, Threshold, WindowLength
from views.alerts.rule_metrics import alertable_metrics
from views.alerts.rule_validation import KINDS
from views.alerts.shop_clock import ShopClock
from views.core.cut import seconds
from views.core.local_time import ONE_DAY, round_down
from views.registry import view_named

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
    fields = {"kind": kind, "of": of or "queue", "on": "yes"}
    return await _form_page(visit, _Fields(fields, (store[:256],) if store else ()), _tenant(visit, tenant))


@router.get(f"{PATH}/{{id_}}")
async def get_rule(visit: ConfigurerVisit, id_: str, tenant: Tenant = "", kind: str = "level") -> Response:
    """The form of a rule. `kind`: of the rule that replaces an unreadable one."""
    owner = _tenant(visit, tenant)
    entry = await visit.alerting.in_thread(owner, lambda rules: rules.one(owner, id_))
    return await _form_page(visit, _fields_of_entry(entry, kind), owner)


@router.post(PATH)
async def post_rule(visit: ConfigurerVisit) -> Response:
    """Try a rule, save it or remove it; or the form again, with what is wrong."""
    form = await visit.form(MAX_BYTES)
    fields = _Fields({name: form.text(name) for name in form}, tuple(_stores(form)))
    tenant, action = _tenant(visit, form.text("tenant")), form.text("do")
    _, stores = await visit.queries.service.stores.all()
    author = RuleAuthor(tenant, stores)
    try:
        if action == "remove":
            await visit.alerting.in_thread(tenant, lambda rules: rules.remove(tenant, form.text("id"), _version(form)))
            return _back_to_rules(visit, tenant, "removed")
        rule = _rule(form)
        if "id" not in rule:
            rule["id"] = await visit.alerting.in_thread(tenant, lambda rules: _free_id(rules, tenant, rule))
        if action == "save":
            await visit.alerting.in_thread(tenant, lambda rules: _save(rules, author, rule, _version(form)))
            return _back_to_rules(visit, tenant, "saved")
        tried = await visit.alerting.in_thread(tenant, lambda rules: preview(rules, author, rule))
    except GalateaError as error:
        return await _form_page(visit, fields, tenant, error=error)
    fired = await _fired(visit, tried.rule, [store for store in stores.values() if store.tenant == tenant])
    return await _form_page(visit, fields, tenant, tried=Tried(tried, fired))


def _free_id(rules: AlertRules, tenant: str, rule: Mapping[str, Any]) -> str:
    """An id from the name of a new rule, or else from what it is about."""
    about = rule.get("name") or " ".join(str(rule[each]) for each in ("metric", "source", "of", "kind") if each in rule)
    return id_from(about, [entry.id for entry in rules.listed(tenant)]) or id_from(str(rule.get("kind", "rule")), ())


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
    stores = _stores(form)
    return rule | ({"stores": stores} if stores else {}) | {"on": form.text("on") == "yes"}


def _stores(form: Form) -> list[str]:
    """The ids of the stores that were chosen, or typed where there are too many to choose from."""
    return [*form.get("stores", []), *form.ids("other_stores")]


class _Fields(NamedTuple):
    """A form as it is filled in. `stores`: the ids of those that are chosen."""

    texts: Mapping[str, str]
    stores: Sequence[str] = ()


def _fields_of_entry(entry: RuleEntry, kind: str) -> _Fields:
    """The form of a saved rule, filled in. `kind`: for a rule that cannot be read."""
    rule = fields_of(entry.rule) if entry.rule else {}
    fields = {"kind": kind} | {name: str(value) for name, value in rule.items() if name not in ("stores", "on", *SIDES)}
    side = next((side for side in SIDES if rule.get(side) is not None), "above")
    if fields.get("kind") == "threshold":
        fields |= {"side": side, "bound": plain_number(rule[side])}
    elif "above" in rule:
        fields["above"] = str(rule["above"])
    if entry.unreadable:
        fields["unreadable"] = _(entry.in_words) if entry.in_words else ""
    fields |= {
        "on": "yes" if rule.get("on") or entry.unreadable else "",
        "version": str(entry.version),
        "id": entry.id,
    }
    return _Fields(fields, tuple(rule.get("stores", ())))


def _tenant(visit: Visit, tenant: str) -> str:
    return tenant_of(visit.visitor.caller, tenant or None, DEFAULT_TENANT)


def _back_to_rules(visit: Visit, tenant: str, done: str) -> Response:
    filters = {"tenant": tenant} if visit.visitor.caller.sees_all and tenant != DEFAULT_TENANT else {}
    return RedirectResponse(f"/alerts?{urlencode({**filters, 'done': done})}#rules", HTTPStatus.SEE_OTHER)


async def _form_page(
    visit: Visit,
    filled: _Fields,
    tenant: str,
    *,
    tried: "Tried | None" = None,
    error: GalateaError | None = None,
) -> Response:
    """The form as it was filled in, with what the rule would do or what is wrong with it."""
    problem = tried.preview.problem if tried else None
    if error:
        field = error.field if isinstance(error, BadRuleError) else ""
        problem = RuleProblem(field, error.message, error.do, error.code)
    fields, fresh = filled.texts, await visit.fresh()
    kind = fields.get("kind", "") if fields.get("kind") in KINDS else "level"
    stores = [store for store in await visit.queries.stores() if store.tenant == tenant]
    source = _source(kind, fields)
    lacking = await lacking_stores(visit.queries.service, fresh, stores, source) if source else frozenset[str]()
    values = {
        "fields": {**fields, "kind": kind},
        "chosen": filled.stores,
        "kind": kind,
        "tenant": tenant,
        "tried": tried.preview if tried else None,
        "fired": tried.fired if tried else None,
        "problem": problem,
        "is_new": fields.get("version", "") in ("", "0"),
        "sources": sorted((source_name(each), each) for each in registered_sources()),
        "metrics": metric_groups(),
        "groups": store_groups(stores),
        "names": names_of(stores),
        "notes": {id_: _(LACKING[source]) for id_ in lacking} if source in LACKING else {},
    }
    status = error.status if error else HTTPStatus.UNPROCESSABLE_ENTITY if problem else HTTPStatus.OK
    return visit.page("alert_rule.html", fresh, values, status=status)


METRIC_GROUPS = {"sales": gettext_noop("Sales"), "traffic": gettext_noop("Visitors")}
SAME_AS = frozenset({"sales.receipts", "sales.return_tx", "sales.sale_tx"})
"""Counts of events that a metric counts too. Rules may name them; the form offers the metric."""


def metric_groups() -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """The metrics that a rule may watch: id and name, by what they are about."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for id_, metric in alertable_metrics().items():
        name = metric_name(id_)
        if id_ not in SAME_AS:
            groups.setdefault(_(METRIC_GROUPS.get(metric.view, metric.view)), []).append((id_, name))
    return [(name, sorted(metrics, key=lambda each: each[1])) for name, metrics in groups.items()]


def _source(kind: str, fields: Mapping[str, str]) -> str:
    """The source that the rule of a form needs; empty if there is none of that name."""
    if kind == "silence":
        return fields.get("source", "")
    if kind == "level":
        return LEVEL_SOURCES.get(fields.get("of", "queue"), "")
    metric = alertable_metrics().get(fields.get("metric", ""))
    return view_named(metric.view).source.topic if metric else ""


# How often a rule would have fired

TRIED_DAYS, MAX_TRIED_STORES = 28, 20


class Fired(NamedTuple):
    """In how many windows of the last four weeks a rule would have fired, and in how many stores."""

    windows: int
    stores: int


class Tried(NamedTuple):
    """What a rule would watch, and how often it would have fired, if that is known."""

    preview: RulePreview
    fired: Fired | None


async def _fired(visit: Visit, rule: Rule | None, stores: Sequence[Store]) -> Fired | None:
    """As far as one query tells: None for other rules than a bound on a metric itself, or for many stores."""
    watched = [store for store in stores if rule and (rule.stores is None or store.id in rule.stores)]
    if not isinstance(rule, Threshold) or rule.versus or "." in rule.metric or len(watched) > MAX_TRIED_STORES:
        return None
    today = (await visit.fresh()).at.date()
    query = PageQuery(
        rule.metric,
        tuple(store.id for store in watched),
        (today - TRIED_DAYS * ONE_DAY).isoformat(),
        today.isoformat(),
        rule.window,
    )
    result = await visit.queries.answer(query) if watched else None
    if result is None or isinstance(result, QueryFailure):
        return None
    clocks = {store.id: ShopClock(store) for store in watched}
    found = [
        series.store
        for series in result.series
        for point in series.points
        if _exceeds(rule, point.value) and _counts(rule, clocks.get(str(series.store)), point.start)
    ]
    return Fired(len(found), len(set(found)))


def _exceeds(rule: Threshold, value: object) -> bool:
    if not isinstance(value, Number):
        return False
    return value > rule.above if rule.above is not None else rule.below is not None and value < rule.below


def _counts(rule: Threshold, clock: ShopClock | None, start: str) -> bool:
    at = instant(start)
    if clock is None or at is None:
        return False
    length: WindowLength = rule.window
    return not rule.only_open or clock.is_open(length, clock.span(length, round_down(seconds(at))))
