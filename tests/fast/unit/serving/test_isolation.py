"""No route shows a tenant anything of another one, whatever it is asked, nor whether there is anything.

Two deployments differ in what an owner has: every name, text and number of it. A viewer asks both the same, also with
the names that the owner has in the first of them. Nothing that the viewer gets has the mark of the owner, and both
deployments answer alike, so an answer does not even say that a name exists. The owner's own answers have the mark,
which shows that the questions reach what is to be kept apart.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import httpx
import pytest
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import Route

from serving_layer.alerts.history import AlertPosition
from serving_layer.api.alerts import write_token as alert_token
from serving_layer.api.parameters import page_token
from serving_layer.keys.key import SCOPES, Key
from serving_layer.query.stores import write_token as store_token
from tests.support.marked_tenants import DAY, MarkedDeployment, MarkedTenant, begin_of_stream, deployment, world_of
from tests.support.sensors import record, topics
from tests.support.world_api import BEGAN, OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing
from views.core.cut import UNIX_EPOCH

VIEWER = MarkedTenant("viewer99", minor=500, offset=0)
OWNER = MarkedTenant("canary77", minor=700, offset=1, money="KWD")
ANOTHER_OWNER = MarkedTenant("falcon88", minor=900, offset=1, money="EUR")
Place = tuple[str, str]
"""A method and the path of a route."""


class Question(NamedTuple):
    """What a request says. `said`: the body, as JSON unless it is bytes; `form`: of a page; `named`: in its path."""

    query: Mapping[str, object] = {}
    said: object = None
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = {}
    named: Mapping[str, object] = {}


SPAN = {"from": str(DAY), "to": "2026-03-28"}
PAGE = Question()
TEXT, IMAGE = {"Content-Type": "text/csv"}, {"Content-Type": "image/png"}


def own_questions(of: MarkedTenant) -> Mapping[Place, Question]:
    """A question to each route about what the tenant has."""
    rule = {name: value for name, value in of.alert_rule.items() if name != "id"}
    products = f"sku,title\n{of.sku},{of.title}\n".encode()
    targets = f"store,day,metric,value\n{of.store},{DAY},net_sales,5\n".encode()
    note = {"first_day": str(DAY), "kind": "note", "text": f"new-{of.mark}", "stores": [of.store]}
    notes = f"first_day,kind,text,stores\n{DAY},note,new-{of.mark},{of.store}\n".encode()
    replay = {"ids": [f"pos_transactions/0/{of.offset}"], "dry_run": True}
    return {
        ("GET", "/v1/metrics"): Question(),
        ("GET", "/v1/metrics/{metric}"): Question(SPAN | {"by": "store,sku"}),
        ("GET", "/v1/live/{metric}"): Question(SPAN | {"by": "total,sku"}),
        ("GET", "/v1/index/{metric}"): Question(SPAN),
        ("GET", "/v1/views/{view}/cells"): Question(SPAN),
        ("GET", "/v1/raw/pos_transactions"): Question({"store": of.store, "day": str(DAY)}),
        ("GET", "/v1/freshness"): Question(),
        ("GET", "/v1/stores"): Question(),
        ("GET", "/v1/sensors"): Question(SPAN),
        ("GET", "/v1/stores/{store}/floor-plan"): Question(),
        ("PUT", "/v1/stores/{store}/floor-plan"): Question(said={"zones": [of.drawn_zone]}),
        ("DELETE", "/v1/stores/{store}/floor-plan"): Question(),
        ("GET", "/v1/stores/{store}/floor-plan/image"): Question(),
        ("PUT", "/v1/stores/{store}/floor-plan/image"): Question(said=of.plan, headers=IMAGE),
        ("GET", "/v1/products"): Question({"tenant": of.tenant}),
        ("POST", "/v1/products"): Question({"tenant": of.tenant, "replace": "true"}, products, headers=TEXT),
        ("POST", "/v1/targets"): Question({"tenant": of.tenant}, targets, headers=TEXT),
        ("GET", "/v1/reports/{period}"): Question({"day": str(DAY)}),
        ("GET", "/v1/alerts"): Question(),
        ("GET", "/v1/alerts/{alert_id}"): Question(),
        ("GET", "/v1/alert-rules"): Question(),
        ("POST", "/v1/alert-rules"): Question(said=of.alert_rule | {"id": f"{of.rule}-new"}),
        ("GET", "/v1/alert-rules/{id}"): Question(),
        ("PUT", "/v1/alert-rules/{id}"): Question(said=rule | {"minutes": 4}, headers={"If-Match": "*"}),
        ("DELETE", "/v1/alert-rules/{id}"): Question(headers={"If-Match": "*"}),
        ("GET", "/v1/alert-rules/{id}/versions"): Question(),
        ("POST", "/v1/alert-rules/preview"): Question(said=of.alert_rule),
        ("GET", "/v1/publications"): Question(),
        ("POST", "/v1/publications/{number}/rollback"): Question(said={"reason": "a test", "dry_run": True}),
        ("GET", "/v1/corrections"): Question(),
        ("GET", "/v1/dead-letters"): Question(),
        ("GET", "/v1/dead-letters/{topic}/{partition}/{offset}"): Question(),
        ("POST", "/v1/dead-letters/replay"): Question(said=replay),
        ("POST", "/v1/recomputes"): Question(said={"stores": [of.store], "reason": "a test"}),
        ("GET", "/v1/recomputes"): Question(),
        ("GET", "/v1/recomputes/{id}"): Question(),
        ("GET", "/v1/annotations"): Question(),
        ("POST", "/v1/annotations"): Question(said=note),
        ("POST", "/v1/annotations/load"): Question(said=notes, headers=TEXT),
        ("DELETE", "/v1/annotations/{id}"): Question(),
        ("GET", "/v1/saved-views"): Question(),
        ("POST", "/v1/saved-views"): Question(said={"name": f"new-{of.mark}", "address": f"/stores/{of.store}"}),
        ("PATCH", "/v1/saved-views/{id}"): Question(said={"name": f"renamed-{of.mark}"}),
        ("DELETE", "/v1/saved-views/{id}"): Question(),
        ("GET", "/v1/shares"): Question(),
        ("POST", "/v1/shares"): Question(said={"address": f"/stores/{of.store}", "hours": 1}),
        ("DELETE", "/v1/shares/{id}"): Question(),
        ("GET", "/v1/webhooks"): Question(),
        ("POST", "/v1/webhooks"): Question(said={"url": f"https://{of.mark}.example/new"}),
        ("GET", "/v1/webhooks/{webhook}"): Question(),
        ("PATCH", "/v1/webhooks/{webhook}"): Question(said={"batch": 7}),
        ("DELETE", "/v1/webhooks/{webhook}"): Question(),
        ("POST", "/v1/webhooks/{webhook}/rotate"): Question(),
        ("POST", "/v1/webhooks/{webhook}/test"): Question(),
        ("POST", "/v1/webhooks/{webhook}/resume"): Question(),
        ("POST", "/v1/webhooks/{webhook}/skip"): Question(said={"record": f"alerts/0/{of.offset}"}),
        ("POST", "/v1/events/{source}"): Question(said=of.receipt(50)),
        ("GET", "/healthz"): Question(),
        ("GET", "/readyz"): Question(),
        ("GET", "/metrics"): Question(),
        ("GET", "/openapi.json"): Question(),
        ("GET", "/"): PAGE,
        ("GET", "/stores"): PAGE,
        ("GET", "/stores/{id_}"): Question({"day": str(DAY)}),
        ("GET", "/products"): Question({"day": str(DAY)}),
        ("GET", "/receipts"): Question({"store": of.store, "from": f"{DAY}T09:00:00Z"}),
        ("POST", "/language"): Question(form={"language": "de"}),
        ("GET", "/sensors"): PAGE,
        ("GET", "/floor-plans/{id_}"): Question({"day": str(DAY)}),
        ("POST", "/floor-plans/{id_}"): Question(form={"do": "preview", "zones": f"zone-{of.mark} 1 1 50 50"}),
        ("GET", "/reports/{period}"): Question({"day": str(DAY)}),
        ("GET", "/alerts"): PAGE,
        ("GET", "/alerts/rules/new"): PAGE,
        ("GET", "/alerts/rules/{id_}"): PAGE,
        ("POST", "/alerts/rules"): Question(form={"do": "try", "kind": "level", "stores": of.store, "id": of.rule}),
        ("GET", "/layers"): PAGE,
        ("GET", "/publications"): PAGE,
        ("GET", "/publications/{number}/rollback"): PAGE,
        ("POST", "/publications/{number}/rollback"): Question(form={"seen": "0", "reason": "a test"}),
        ("GET", "/corrections"): PAGE,
        ("GET", "/views"): Question({"last": str(DAY)}),
        ("GET", "/recomputes"): Question({"like": of.recompute}),
        ("POST", "/recomputes"): Question(form={"stores": of.store, "mode": "none", "reason": "a test"}),
        ("GET", "/recomputes/{id_}"): PAGE,
        ("GET", "/dead-letters"): PAGE,
        ("POST", "/dead-letters/replay"): Question(form={"source": "pos_transactions", "do": "try"}),
        ("GET", "/dead-letters/{topic}/{partition}/{offset}"): PAGE,
        ("POST", "/dead-letters/{topic}/{partition}/{offset}"): Question(form={"do": "try"}),
        ("GET", "/keys"): Question({"revoked": "none"}),
        ("POST", "/keys"): Question(form={"tenant": "none", "days": "0"}),
        ("POST", "/keys/revoke"): Question(form={"id": of.mark}),
        ("GET", "/stack"): PAGE,
        ("GET", "/annotations"): Question({"first": str(DAY)}),
        ("POST", "/annotations"): Question(form={"kind": "note", "text": "x", "stores": of.store}),
        ("GET", "/saved"): PAGE,
        ("POST", "/saved"): Question(form={"do": "save", "name": of.mark, "address": f"/stores/{of.store}"}),
        ("GET", "/shared/{token}"): PAGE,
        ("GET", "/docs"): PAGE,
        ("GET", "/problems"): PAGE,
        ("GET", "/problems/{code}"): PAGE,
        ("GET", "/login"): PAGE,
        ("POST", "/login"): Question(form={"key": of.mark}),
        ("POST", "/logout"): Question(form={}),
        ("GET", "/static/{name}"): PAGE,
    }


OF_EVERYBODY = "describes the software, not what anybody has"
OF_DEPLOYMENT = "how far the layers have read, which is one thing for all tenants"
COUNTS = "answers with counts or outcomes, and quotes nothing"
REASONS = "lists places and reasons; the record itself has a route of its own"
UNMARKED: Mapping[Place, str] = {
    ("GET", "/v1/metrics"): OF_EVERYBODY,
    ("GET", "/v1/freshness"): OF_DEPLOYMENT,
    ("GET", "/v1/publications"): OF_DEPLOYMENT,
    ("POST", "/v1/publications/{number}/rollback"): OF_DEPLOYMENT,
    ("POST", "/v1/recomputes"): COUNTS,
    ("GET", "/v1/dead-letters"): REASONS,
    ("POST", "/v1/dead-letters/replay"): REASONS,
    ("DELETE", "/v1/webhooks/{webhook}"): "has no body",
    ("DELETE", "/v1/stores/{store}/floor-plan"): "has no body",
    ("GET", "/v1/stores/{store}/floor-plan/image"): "an image; each tenant's has its own size",
    ("POST", "/v1/webhooks/{webhook}/test"): COUNTS,
    ("POST", "/v1/events/{source}"): COUNTS,
    ("GET", "/healthz"): OF_DEPLOYMENT,
    ("GET", "/readyz"): OF_DEPLOYMENT,
    ("GET", "/metrics"): "names no store and no tenant",
    ("GET", "/openapi.json"): OF_EVERYBODY,
    ("GET", "/layers"): OF_DEPLOYMENT,
    ("GET", "/publications"): OF_DEPLOYMENT,
    ("GET", "/publications/{number}/rollback"): OF_DEPLOYMENT,
    ("POST", "/publications/{number}/rollback"): OF_DEPLOYMENT,
    ("GET", "/dead-letters"): REASONS,
    ("POST", "/dead-letters/replay"): REASONS,
    ("GET", "/stack"): OF_DEPLOYMENT,
    ("DELETE", "/v1/annotations/{id}"): "has no body",
    ("DELETE", "/v1/saved-views/{id}"): "has no body",
    ("DELETE", "/v1/shares/{id}"): "has no body",
    ("POST", "/saved"): "a redirection",
    ("POST", "/annotations"): "refuses a form without a day",
    ("GET", "/shared/{token}"): "opened by its token alone, which nobody else has",
    ("GET", "/docs"): OF_EVERYBODY,
    ("GET", "/problems"): OF_EVERYBODY,
    ("GET", "/problems/{code}"): OF_EVERYBODY,
    ("GET", "/login"): OF_EVERYBODY,
    ("POST", "/login"): "refuses a key without saying which",
    ("POST", "/logout"): "a redirection",
    ("POST", "/language"): "a redirection",
    ("GET", "/static/{name}"): OF_EVERYBODY,
}
"""Routes whose answers have no mark, not even those to the owner, each with the reason."""
REFUSED = {
    ("POST", "/alerts/rules"),
    ("POST", "/keys"),
    ("POST", "/keys/revoke"),
    ("POST", "/annotations"),
    ("GET", "/shared/{token}"),
    ("GET", "/publications/{number}/rollback"),
    ("POST", "/publications/{number}/rollback"),
    ("POST", "/v1/publications/{number}/rollback"),
    ("POST", "/recomputes"),
    ("POST", "/login"),
}
"""Routes that refuse an owner: forms that are shown again with what is wrong, and a rollback to what readers see."""
HARMLESS = {
    *("from", "to", "range", "day", "last", "grain", "timezone", "partial", "hours", "history_weeks"),
    *("format", "compare", "comp", "only_covered", "context", "attributes", "sort", "top", "share"),
    *("as_of", "at_least", "max_staleness", "publication", "number", "limit", "page", "before", "restored", "if-match"),
    *("view", "metric", "source", "shade", "cause", "reason", "state", "replayed", "replace", "kind", "of", "done"),
    *("code", "topic", "partition", "name", "days", "period", "silent_after"),
    *("token", "first_day", "last_day", "first", "group", "q", "like", "revoked"),
}
"""Parameters whose values belong to no tenant."""


def arguments(of: MarkedTenant, alert: str) -> Mapping[str, list[object]]:
    """Values of parameters that are names of what the tenant has."""
    return {
        "store": [of.store],
        "sku": [of.sku],
        "category": [of.category],
        "brand": [of.brand],
        "by": [f"group:{of.group}", "group:region", "total,category,brand"],
        "tenant": [of.tenant],
        "rule": [of.rule],
        "search": [of.title],
        "q": [of.store],
        "recompute": [of.recompute],
        "after": [
            of.webhook,
            store_token(of.store),
            page_token(1_774_612_920_000, of.till, "1"),
            page_token("0", 0, of.sku),
            alert_token(AlertPosition(UNIX_EPOCH, alert)),
            page_token("1", "sales", of.store, str(DAY), 0),
        ],
    }


def further_questions() -> Mapping[Place, list[Question]]:
    """What the viewer asks beside its own questions, with names of OWNER where no parameter is."""
    webhook = {"url": "https://viewer.example/", "tenant": OWNER.tenant}
    note = {"first_day": str(DAY), "kind": "note", "text": "x", "stores": [OWNER.store]}
    fields = {"first_day": str(DAY), "kind": "note", "text": "x", "stores": OWNER.store}
    notes = f"first_day,kind,text,stores\n{DAY},note,x,{OWNER.store}\n".encode()
    overview = {"address": "/", "hours": 1, "tenant": OWNER.tenant}
    form = {"do": "save", "kind": "level", "of": "queue", "above": "4", "minutes": "3", "stores": OWNER.store}
    return {
        ("POST", "/v1/alert-rules"): [Question(said=OWNER.alert_rule | {"tenant": OWNER.tenant})],
        ("POST", "/v1/alert-rules/preview"): [Question(said=OWNER.alert_rule | {"tenant": OWNER.tenant})],
        ("POST", "/v1/webhooks"): [Question(said=webhook)],
        ("POST", "/v1/annotations"): [Question(said=note)],
        ("POST", "/v1/annotations/load"): [Question(said=notes, headers=TEXT)],
        ("POST", "/v1/shares"): [Question(said=overview)],
        ("POST", "/annotations"): [
            Question(form=fields),
            Question(form=fields | {"stores": "", "tenant": OWNER.tenant}),
            Question(form={"do": "remove", "id": OWNER.annotation}),
            Question(form={"do": "remove", "id": OWNER.annotation, "tenant": OWNER.tenant}),
        ],
        ("POST", "/saved"): [
            Question(form={"do": "share", "address": "/", "hours": "1", "tenant": OWNER.tenant}),
            Question(form={"do": "share", "address": f"/stores/{OWNER.store}", "hours": "1"}),
            Question(form={"do": "rename", "id": OWNER.view, "name": "x"}),
            Question(form={"do": "remove", "id": OWNER.view}),
            Question(form={"do": "revoke", "id": OWNER.share}),
        ],
        ("POST", "/alerts/rules"): [
            Question(form=form | {"id": "new"}),
            Question(form=form | {"tenant": OWNER.tenant, "id": "new"}),
            Question(form={"do": "remove", "id": OWNER.rule, "version": "1"}),
        ],
        ("POST", "/v1/events/{source}"): [
            Question(said=OWNER.receipt(50, minor=2 * 10**11)),  # more than a line may have if the euro had 1,000 cents
            *(Question(said=record(topic, (1, 5, 1), OWNER.store), named={"source": topic}) for topic in topics()),
        ],
    }


def near(value: object) -> object:
    """A name that a hint might correct."""
    return value[:-1] if isinstance(value, str) else value


def names(of: MarkedTenant, alert: str, path: str) -> Mapping[str, object]:
    """What stands in a path that is about something that the tenant has."""
    ids = {"recomputes": of.recompute, "rules": of.rule, "annotations": of.annotation}
    ids |= {"saved-views": of.view, "shares": of.share}
    id_ = next((each for part, each in ids.items() if part in path), of.store)
    return {
        "id": id_,
        "id_": id_,
        "store": of.store,
        "alert_id": alert,
        "webhook": of.webhook,
        "offset": of.offset,
        "metric": "total_transactions_count" if "index" in path else "sku_net_sales",
        "view": "sales_by_sku",
        "source": "pos_transactions",
        "topic": "pos_transactions",
        "partition": 0,
        "number": 1,
        "period": "weekly",
        "code": "unknown_name",
        "name": "galatea.css",
        "token": "x" * 43,
    }


def routes(asking: Asking) -> dict[Place, Route]:
    """Every route of the application. Convertors are no part of the paths."""
    return {
        (method, re.sub(r":\w+}", "}", route.path)): route
        for route in asking.app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }


def parameters(route: Route) -> Iterator[str]:
    """Names of what the path, the query and the headers of a request may say."""
    if not isinstance(route, APIRoute):
        return
    flat = get_flat_dependant(route.dependant)
    for field in [*flat.path_params, *flat.query_params, *flat.header_params]:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (inner.alias or name for name, inner in kind.model_fields.items())
        else:
            yield field.alias


class Answer(NamedTuple):
    """What came of a question. `names_owner`: whether the question itself had names of the owner."""

    place: Place
    question: str
    names_owner: bool
    status: int
    text: str


class Caller:
    """Asks one deployment, by REST with a key and by pages in a session of the same key."""

    def __init__(self, of: MarkedDeployment, key: str) -> None:
        self.of, self.key = of, key
        self.browsing = Browsing(of.asking)
        self.browsing.sign_in(key)

    def response(self, place: Place, named: Mapping[str, object], question: Question) -> httpx.Response:
        method, template = place
        path = template.format_map({**named, **question.named})
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", **question.headers}
        if "/live/" in path:
            return begin_of_stream(self.of.asking.app, path, dict(question.query), headers)
        if path.startswith(("/v1", "/healthz", "/readyz", "/metrics", "/openapi")):
            asking, query = self.of.asking, dict(question.query)
            content = (
                question.said
                if isinstance(question.said, bytes | None)
                else httpx.Request("POST", "http://galatea", json=question.said).content
            )
            return asking.request(method, path, params=query or None, headers=headers, content=content)
        if question.form is not None:
            return self.browsing.send(path, form_of="/login" if path == "/login" else "/", **question.form)
        query_string = str(httpx.QueryParams({name: str(value) for name, value in question.query.items()}))
        return self.browsing.response(method, f"{path}?{query_string}")


RANDOM = re.compile(r"/shared/[\w-]{43}|whsec_[\w+/=-]+|\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b")
"""Tokens of links and forms, secrets and ids of new webhooks."""


def text_of(response: httpx.Response) -> str:
    """Everything that an answer says, without what is drawn at random."""
    headers = sorted(each for each in response.headers.multi_items() if each[0] != "set-cookie")
    return RANDOM.sub("", f"{headers}\n{response.text}")


ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")


OWNERS_KEY, OWNERS_RECORD = Key.new(OWNER.tenant, ("read", "ingest", "configure"), "owner", BEGAN, None)
OTHERS_KEY, OTHERS_RECORD = Key.new(ANOTHER_OWNER.tenant, ("read", "ingest", "configure"), "owner", BEGAN, None)
VIEWERS_KEY, VIEWERS_RECORD = Key.new(VIEWER.tenant, SCOPES, "viewer", BEGAN, None)
"""The viewer's key has every scope, although no command makes such a key of one tenant."""


class Learned(NamedTuple):
    """What the viewer knows of an owner: the id of an alert, and entity tags by route."""

    alert: str
    tags: Mapping[Place, str]


class Story(NamedTuple):
    """What a deployment answered to the owner and to the viewer, and what the owner had before the viewer and after."""

    to_owner: Mapping[Place, httpx.Response]
    to_viewer: Sequence[Answer]
    before: Mapping[str, object]
    after: Mapping[str, object]
    learned: Learned


def played(owner: MarkedTenant, owners_key: str, learned: Learned | None) -> Story:
    """The owner reads everything, then the viewer asks everything, then the owner changes everything.

    Args:
        owner: who has something in the deployment beside the viewer.
        owners_key: a key of the owner.
        learned: what the viewer knows of OWNER; None: what the deployment tells its owner.
    """
    asking = Asking(world_of(VIEWER, owner))
    of = deployment(asking, VIEWER, owner)
    asking.keys.kept += [OWNERS_RECORD, OTHERS_RECORD, VIEWERS_RECORD]
    places = sorted(routes(asking), key=lambda place: ORDER.index(place[0]))
    own, operator = Caller(of, owners_key), Caller(of, OPERATOR_KEY)
    alert, questions, to_owner = of.alerts[owner.tenant], own_questions(owner), {}

    def ask_as_owner(place: Place) -> None:
        """As an operator, where only operators may ask."""
        named = names(owner, alert, place[1])
        found = own.response(place, named, questions[place])
        to_owner[place] = operator.response(place, named, questions[place]) if found.status_code == 403 else found

    for place in places:
        if place[0] == "GET":
            ask_as_owner(place)
    tags = {place: found.headers["etag"] for place, found in to_owner.items() if "etag" in found.headers}
    live = ("GET", "/v1/live/{metric}")
    tags[live] = to_owner[live].text.partition("\nid: ")[2].partition("\n")[0]
    known = learned or Learned(alert, tags)
    before = of.state_of(owner)
    viewer = Caller(of, VIEWERS_KEY)
    to_viewer = [answer for place in places for answer in asked(viewer, place, routes(asking)[place], known)]
    after = of.state_of(owner)
    for place in places:
        if place[0] != "GET":
            ask_as_owner(place)
    return Story(to_owner, to_viewer, before, after, known)


def asked(viewer: Caller, place: Place, route: Route, known: Learned) -> Iterator[Answer]:
    """The answers to the viewer: about the viewer, and with each name of OWNER wherever a question has room for one."""
    own, theirs = own_questions(VIEWER)[place], own_questions(OWNER)[place]
    at = names(VIEWER, viewer.of.alerts[VIEWER.tenant], place[1])
    at_theirs = names(OWNER, known.alert, place[1])
    said = set(parameters(route))

    def answer(named: Mapping[str, object], question: Question, *, names_owner: bool) -> Answer:
        found = viewer.response(place, named, question)
        path = place[1].format_map({**named, **question.named})
        return Answer(place, f"{path} {question}", names_owner, found.status_code, text_of(found))

    yield answer(at, own, names_owner=False)
    if own != theirs:
        yield answer(at, theirs, names_owner=True)
    for question in further_questions().get(place, ()):
        yield answer(at, question, names_owner=True)
    if said & {name for name, value in at.items() if value != at_theirs[name]}:
        yield answer({name: near(value) for name, value in at_theirs.items()}, own, names_owner=True)
        yield answer(at_theirs, own, names_owner=True)
        yield answer(at_theirs, theirs, names_owner=True)
    for name, values in arguments(OWNER, known.alert).items():
        for value in values if name in said else ():
            for each in (value, near(value)):
                yield answer(at, own._replace(query={**own.query, name: each}), names_owner=True)
    if place in known.tags:
        header = "Last-Event-ID" if "last-event-id" in said else "If-None-Match"
        yield answer(at, own._replace(headers={header: known.tags[place]}), names_owner=True)


@pytest.fixture(scope="module")
def story() -> Story:
    return played(OWNER, OWNERS_KEY, None)


@pytest.fixture(scope="module")
def other_story(story: Story) -> Story:
    """The same with another owner, of whom the viewer knows nothing."""
    return played(ANOTHER_OWNER, OTHERS_KEY, story.learned)


def test_every_route_and_every_parameter_is_asked(story: Story) -> None:
    every = routes(Asking(world_of(VIEWER)))
    known = HARMLESS | set(arguments(OWNER, "")) | {"id", "id_", "alert_id", "webhook", "offset", "last-event-id", "v"}

    assert set(own_questions(OWNER)) == set(every) == set(story.to_owner)
    assert {name for route in every.values() for name in parameters(route)} - known == set()


def test_an_owner_sees_its_mark_wherever_a_route_can_show_it(story: Story) -> None:
    marked = {place for place, found in story.to_owner.items() if OWNER.mark in f"{found.headers} {found.text}"}

    assert {place: story.to_owner[place].text for place in set(story.to_owner) - marked - set(UNMARKED)} == {}
    assert marked & set(UNMARKED) == set()
    refused = {place for place, found in story.to_owner.items() if found.status_code >= 400}
    assert refused == REFUSED


def test_no_answer_to_a_viewer_has_the_mark_of_an_owner_that_the_viewer_did_not_name(story: Story) -> None:
    found = [
        (each.place, each.question) for each in story.to_viewer if not each.names_owner and OWNER.mark in each.text
    ]

    assert found == []
    assert len({each.place for each in story.to_viewer if each.status < 400 and VIEWER.mark in each.text}) > 25


def test_a_viewer_gets_the_same_answers_whatever_an_owner_has(story: Story, other_story: Story) -> None:
    differences = [
        (one, other.status, other.text)
        for one, other in zip(story.to_viewer, other_story.to_viewer, strict=True)
        if one != other
    ]

    assert differences == []


def test_a_viewer_changes_nothing_that_an_owner_has(story: Story) -> None:
    assert story.after == story.before
