"""The OpenAPI document: what FastAPI derives from the routes, completed with errors, scopes, examples and links."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from serving_layer.api.caller import RequireKeyScope
from serving_layer.http.problem_types import PHRASES
from serving_layer.http.problems import MEDIA_TYPE
from serving_layer.keys.key import Scope
from serving_layer.responses.encoding import Problem
from serving_layer.responses.schemas import components, schema_of

BODY = "$response.body#/"
QUERY = "$request.query."
STORE, METRIC, PUBLICATION = f"{BODY}stores/0/id", f"{BODY}metrics/0/metric", f"{BODY}publications/0/publication"
RULE = f"{BODY}rules/0/id"
REQUEST_FIELDS = {name: f"{QUERY}{name}" for name in ("store", "from", "to")}


class Link(NamedTuple):
    """From an answer of one operation to another, whose `arguments` are texts of OpenAPI or of the answer."""

    name: str
    to: str
    arguments: Mapping[str, str]

    def described(self) -> dict[str, object]:
        """The link as OpenAPI describes it."""
        return {"operationId": self.to, "parameters": dict(self.arguments)}


LINKS: Mapping[tuple[str, HTTPStatus], tuple[Link, ...]] = {
    ("list_stores", HTTPStatus.OK): (
        Link("numbers", "get_metric", {"store": STORE}),
        Link("cells", "get_cells", {"store": STORE}),
        Link("receipts", "get_raw_receipts", {"store": STORE}),
        Link("index", "get_index", {"store": STORE}),
        Link("sensors", "list_sensors", {"store": STORE}),
        Link("floor plan", "get_floor_plan", {"store": STORE}),
    ),
    ("list_sensors", HTTPStatus.OK): (
        Link(
            "next page",
            "list_sensors",
            {
                "from": f"{QUERY}from",
                "to": f"{QUERY}to",
                "range": f"{QUERY}range",
                "hours": f"{QUERY}hours",
                "after": f"{BODY}next",
            },
        ),
    ),
    ("list_metrics", HTTPStatus.OK): (
        Link("numbers", "get_metric", {"metric": METRIC}),
        Link("index", "get_index", {"metric": METRIC}),
    ),
    ("get_metric", HTTPStatus.OK): (
        Link("next page", "get_metric", {**REQUEST_FIELDS, "metric": "$request.path.metric", "after": f"{BODY}next"}),
        Link(
            "the same as of then",
            "get_metric",
            {
                **REQUEST_FIELDS,
                "metric": "$request.path.metric",
                "as_of": f"{BODY}as_of/publication",
            },
        ),
    ),
    ("get_cells", HTTPStatus.OK): (
        Link(
            "the same as of then",
            "get_cells",
            {
                **REQUEST_FIELDS,
                "view": "$request.path.view",
                "as_of": f"{BODY}as_of/publication",
            },
        ),
    ),
    ("get_raw_receipts", HTTPStatus.OK): (
        Link(
            "next page",
            "get_raw_receipts",
            {
                "store": f"{QUERY}store",
                "day": f"{QUERY}day",
                "after": f"{BODY}next",
            },
        ),
    ),
    ("list_publications", HTTPStatus.OK): (
        Link("next page", "list_publications", {"before": f"{BODY}next"}),
        Link("numbers as of the newest", "get_metric", {"as_of": PUBLICATION}),
        Link("cells as of the newest", "get_cells", {"as_of": PUBLICATION}),
        Link("what it corrected", "list_corrections", {"publication": PUBLICATION}),
        Link("back to it", "roll_back", {"number": PUBLICATION}),
    ),
    ("roll_back", HTTPStatus.OK): (
        Link("numbers as of it", "get_metric", {"as_of": f"{BODY}publication"}),
        Link("what it corrected", "list_corrections", {"publication": f"{BODY}publication"}),
        Link("the history", "list_publications", {}),
    ),
    ("start_recompute", HTTPStatus.ACCEPTED): (
        Link("how far it is", "get_recompute", {"id": f"{BODY}id"}),
        Link("what it corrects", "list_corrections", {"recompute": f"{BODY}id"}),
    ),
    ("get_recompute", HTTPStatus.OK): (
        Link("how far it is", "get_recompute", {"id": f"{BODY}id"}),
        Link("what it corrects", "list_corrections", {"recompute": f"{BODY}id"}),
    ),
    ("list_webhooks", HTTPStatus.OK): (
        Link("next page", "list_webhooks", {"after": f"{BODY}next"}),
        Link("one", "get_webhook", {"webhook": f"{BODY}webhooks/0/id"}),
    ),
    **{
        (operation, status): (
            Link("as it is", "get_webhook", {"webhook": f"{BODY}id"}),
            Link("otherwise", "change_webhook", {"webhook": f"{BODY}id"}),
            Link("a test call", "test_webhook", {"webhook": f"{BODY}id"}),
            Link("another secret", "rotate_webhook", {"webhook": f"{BODY}id"}),
            Link("again", "resume_webhook", {"webhook": f"{BODY}id"}),
            Link("without a record", "skip_webhook_record", {"webhook": f"{BODY}id"}),
            Link("no more", "remove_webhook", {"webhook": f"{BODY}id"}),
        )
        for operation, status in (("create_webhook", HTTPStatus.CREATED), ("get_webhook", HTTPStatus.OK))
    },
    ("list_alerts", HTTPStatus.OK): (
        Link("next page", "list_alerts", {"after": f"{BODY}next"}),
        Link("with its records", "get_alert", {"alert_id": f"{BODY}alerts/0/alert_id"}),
        Link("its rule", "get_alert_rule", {"id": f"{BODY}alerts/0/rule"}),
    ),
    ("list_alert_rules", HTTPStatus.OK): (
        Link("one", "get_alert_rule", {"id": RULE}),
        Link("its versions", "list_alert_rule_versions", {"id": RULE}),
        Link("its alerts", "list_alerts", {"rule": RULE}),
    ),
    **{
        (operation, status): (
            Link("as it is", "get_alert_rule", {"id": f"{BODY}id"}),
            Link("otherwise", "change_alert_rule", {"id": f"{BODY}id"}),
            Link("no more", "remove_alert_rule", {"id": f"{BODY}id"}),
            Link("its versions", "list_alert_rule_versions", {"id": f"{BODY}id"}),
        )
        for operation, status in (
            ("create_alert_rule", HTTPStatus.CREATED),
            ("get_alert_rule", HTTPStatus.OK),
            ("change_alert_rule", HTTPStatus.OK),
        )
    },
    ("get_floor_plan", HTTPStatus.OK): (
        Link("its image", "get_floor_plan_image", {"store": f"{BODY}store"}),
        Link("other zones", "draw_floor_plan", {"store": f"{BODY}store"}),
        Link("no more", "remove_floor_plan", {"store": f"{BODY}store"}),
    ),
    ("list_annotations", HTTPStatus.OK): (
        Link("next page", "list_annotations", {"after": f"{BODY}next"}),
        Link("no more", "remove_annotation", {"id": f"{BODY}annotations/0/id"}),
    ),
    ("add_annotation", HTTPStatus.CREATED): (Link("no more", "remove_annotation", {"id": f"{BODY}id"}),),
    ("list_saved_views", HTTPStatus.OK): (
        Link("another name", "rename_view", {"id": f"{BODY}views/0/id"}),
        Link("no more", "remove_view", {"id": f"{BODY}views/0/id"}),
    ),
    ("save_view", HTTPStatus.CREATED): (Link("no more", "remove_view", {"id": f"{BODY}id"}),),
    ("list_shares", HTTPStatus.OK): (Link("no more", "revoke_share", {"id": f"{BODY}shares/0/id"}),),
    ("share_page", HTTPStatus.CREATED): (Link("no more", "revoke_share", {"id": f"{BODY}id"}),),
    ("list_corrections", HTTPStatus.OK): (Link("next page", "list_corrections", {"after": f"{BODY}next"}),),
}
"""By operation and status."""


Document = dict[str, Any]
PROBLEM: Document = {
    "type": "/problems/unknown_name",
    "title": "There is no metric `net_sale`.",
    "detail": "Did you mean `net_sales`?",
    "code": "unknown_name",
    "status": 404,
}
"""An example."""
EXAMPLES: Document = {
    "metric": "net_sales",
    "view": "sales",
    "source": "pos_transactions",
    "store": ["1"],
    "from": "2026-03-07",
    "to": "2026-03-08",
    "grain": "hour",
    "day": "2026-03-07",
    "number": 1,
    "webhook": "5f0c81d2a9b3",
    "alert_id": "6f0c81d2a9b34e5f8a7b6c5d4e3f2a1b",
    "rule": "queue",
    "reason": "bad_time",
    "topic": "pos_transactions",
    "partition": 0,
    "offset": 7,
}
OF_ALL = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
OF_KEYS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
OF_NAMES = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE)
OF_VERSIONS = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)
OF_BODIES = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


def describe(app: FastAPI) -> None:
    """Let the app's own document have the refusals, scopes and examples of every operation."""
    found = app.openapi

    def described() -> Document:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(app, found())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's own guide does it


def _completed(app: FastAPI, document: Document) -> Document:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= components()
    schemas["Problem"]["example"] = PROBLEM
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods:
                _complete(document["paths"][route.path_format][method.lower()], route)
    return document


def _complete(operation: Document, route: APIRoute) -> None:
    required = next(_required(route.dependant), None)
    scope = required.scope if required else None
    operation["summary"] = operation.get("description", "").partition(". ")[0].partition("\n")[0].rstrip(".")
    if scope is not None:
        operation["x-scope"] = scope
        if scope == "read" and not (
            required and required.keeps
        ):  # a stack may show one tenant's stores to whoever reaches it
            operation["security"] = [*operation["security"], {}]
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in EXAMPLES and parameter["in"] != "header":
            example = EXAMPLES[parameter["name"]]
            parameter["example"] = example[0] if parameter["in"] == "path" and isinstance(example, list) else example
    for status, response in operation["responses"].items():
        if leads := LINKS.get((operation["operationId"], HTTPStatus(int(status)))):
            response["links"] = {link.name: link.described() for link in leads}
    statuses = [*OF_ALL, *(OF_KEYS if scope else ()), *(OF_NAMES if scope else ())]
    statuses += [HTTPStatus(int(status)) for status in operation["responses"] if status >= "400"]
    statuses += OF_BODIES if "requestBody" in operation else ()
    statuses += OF_VERSIONS if any(each["name"] == "if-match" for each in operation.get("parameters", ())) else ()
    for status in sorted(set(statuses)):
        described = operation["responses"].get(str(status.value), {})
        own = {
            kind: each for kind, each in described.get("content", {}).items() if "HTTPValidationError" not in str(each)
        }
        operation["responses"][str(status.value)] = {
            "description": f"Refused: {PHRASES[status]}.",
            "content": {**own, MEDIA_TYPE: {"schema": schema_of(Problem)}},
        }


def scopes(dependant: Dependant) -> Iterator[Scope]:
    """What a route asks for."""
    yield from (required.scope for required in _required(dependant))


def _required(dependant: Dependant) -> Iterator[RequireKeyScope]:
    if isinstance(dependant.call, RequireKeyScope):
        yield dependant.call
    for inner in dependant.dependencies:
        yield from _required(inner)
