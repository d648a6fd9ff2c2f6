"""`/v1/alert-rules`: list, preview, create, change and remove alert rules. Every change is a version."""

import json
import re
from decimal import Decimal
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.alerts.rules import ANY_VERSION, RuleAuthor, RuleEntry, preview
from serving_layer.api.caller import AlertingOf, AnswersOf, Configurer, Reader
from serving_layer.api.parameters import DEFAULT_TENANT, MAX_PAGE, TenantName, tenant_of
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.errors import BadQuestionError, UnsupportedBodyError, VersionNotSaidError
from serving_layer.responses.alerts import AlertRule, AlertRuleList, AlertRuleVersions, RulePreview
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import Responses, returns

_TAG = re.compile(r'"([0-9]{1,9})"').fullmatch
_OF_ALL: dict[str, Any] = {
    "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
    "name": {"type": "string", "maxLength": 256},
    "stores": {"type": ["array", "null"], "items": {"type": "string"}, "minItems": 1, "maxItems": 10_000},
    "on": {"type": "boolean"},
}
_BOUND = {"type": ["number", "null"], "minimum": -(10**12), "maximum": 10**12}
_HOURS = {"enum": ["open", "always"]}


def _kind(kind: str, title: str, needs: list[str], **own: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON Schema
    properties = {"kind": {"const": kind}, **_OF_ALL, **own}
    return {"type": "object", "title": title, "required": ["kind", "id", *needs], "properties": properties}


RULE = {
    "oneOf": [
        _kind(
            "threshold",
            "A metric of one window beyond a bound",
            ["metric", "window"],
            metric={"type": "string"},
            window={"enum": ["15m", "hour", "day"]},
            above=_BOUND,
            below=_BOUND,
            versus={"enum": ["previous_week", None]},
            hours={"enum": ["open", "always", None]},
        ),
        _kind(
            "silence",
            "No event of a source",
            ["source", "minutes"],
            source={"type": "string"},
            minutes={"type": "integer", "minimum": 2, "maximum": 1440},
            per={"enum": ["store", "sensor"]},
            hours=_HOURS,
        ),
        _kind(
            "level",
            "More people than that",
            ["of", "above", "minutes"],
            of={"enum": ["queue", "occupancy"]},
            above={"type": "integer", "minimum": 0},
            minutes={"type": "integer", "minimum": 0, "maximum": 1439},
        ),
    ],
}
EXAMPLE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}
ANY_BODY = {"requestBody": {"required": True, "content": {JSON: {"schema": {}, "example": EXAMPLE}}}}
"""Whatever it is, a preview says what is wrong with it."""
BODY = {"requestBody": {"required": True, "content": {JSON: {"schema": RULE, "example": EXAMPLE}}}}
_ETAG = {"ETag": {"description": "Its version, for `If-Match`.", "schema": {"type": "string"}}}


def returns_rule(description: str, status: HTTPStatus = HTTPStatus.OK) -> Responses:
    """For `responses=` of a route that responds with one rule."""
    responses = returns(AlertRule, status=status, description=description)
    responses[status]["headers"] = _ETAG
    return responses


async def rule_in(request: Request) -> object:
    """The plain values of the body, its numbers as they were written. BadQuestionError, UnsupportedBodyError."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise UnsupportedBodyError("A rule is sent as JSON.", do=f"Send it with `Content-Type: {JSON}`.")
    try:
        return json.loads(await request.body(), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:  # a number may be too small for Decimal
        raise BadQuestionError("The body of the request is not valid JSON.", do="Send one object as JSON.") from error


def tag_of(version: int) -> str:
    """The entity tag of a version."""
    return f'"{version}"'


def expected(if_match: str | None) -> int:
    """The version that its author has seen. VersionNotSaidError, BadQuestionError."""
    if if_match is None:
        do = "Send `If-Match` with the `ETag` of the rule as you read it, or `*` for any version."
        raise VersionNotSaidError("The request has no `If-Match` header.", do=do)
    if if_match.strip() == "*":
        return ANY_VERSION
    found = _TAG(if_match.strip())
    if not found:
        raise BadQuestionError(
            "`If-Match` is not the `ETag` of a rule.", do="Send the `ETag` of the rule as you read it."
        )
    return int(found[1])


MAX_BODY_BYTES = 1_000_000
"""A rule may name ten thousand stores."""
RuleId = Annotated[str, Path(max_length=64)]
Match = Annotated[str | None, Header(max_length=100, description="The `ETag` of the rule as it was read, or `*`.")]


class RuleBodyRoute(BodyLimitRoute):
    """A route whose body is a rule."""

    most_bytes = MAX_BODY_BYTES


router = APIRouter(prefix="/v1", tags=["alerts"], route_class=RuleBodyRoute)


class TenantQuery(BaseModel):
    """The tenant whose rules are requested."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None


class VersionsQuery(TenantQuery):
    """`before` is the `next` of the previous page."""

    limit: int = Field(100, ge=1, le=MAX_PAGE)
    before: int | None = Field(None, ge=0, le=2**31 - 1, description="Only versions with a smaller number.")


Whose = Annotated[TenantQuery, Query()]


@router.get("/alert-rules", operation_id="list_alert_rules", responses=returns(AlertRuleList))
async def list_alert_rules(query: Whose, alerting: AlertingOf, caller: Reader) -> Response:
    """The rules of the tenant by id, and how many it may have at `most`.

    `effective_at`: the version applies to events received from then on. `in_words`: the rule as a sentence.
    `unreadable`: this release cannot read the stored rule, so `rule` is null, and the rule is inactive until you
    replace or remove it.
    """
    tenant = tenant_of(caller, query.tenant, DEFAULT_TENANT)
    found = await alerting.in_thread(tenant, lambda rules: rules.listed(tenant))
    return _answer(AlertRuleList([entry.response() for entry in found], alerting.rules.most))


@router.get("/alert-rules/{id}", operation_id="get_alert_rule", responses=returns_rule("The rule."))
async def get_alert_rule(id: RuleId, query: Whose, alerting: AlertingOf, caller: Reader) -> Response:  # noqa: A002 - the name in the path
    """The current version of a rule. To change it, send its `ETag` in `If-Match`."""
    tenant = tenant_of(caller, query.tenant, DEFAULT_TENANT)
    return _entry(await alerting.in_thread(tenant, lambda rules: rules.one(tenant, id)))


@router.get("/alert-rules/{id}/versions", operation_id="list_alert_rule_versions", responses=returns(AlertRuleVersions))
async def list_alert_rule_versions(
    id: RuleId,  # noqa: A002 - the name in the path
    query: Annotated[VersionsQuery, Query()],
    alerting: AlertingOf,
    caller: Reader,
) -> Response:
    """All versions of a rule, newest first, also of a `removed` one. `next` is null on the last page."""
    tenant = tenant_of(caller, query.tenant, DEFAULT_TENANT)
    found = await alerting.in_thread(tenant, lambda rules: rules.history(tenant, id))
    rest = [entry for entry in found if query.before is None or entry.version < query.before]
    page = rest[: query.limit]
    following = page[-1].version if len(rest) > query.limit else None
    return _answer(AlertRuleVersions([entry.response() for entry in page], following))


@router.post(
    "/alert-rules/preview",
    operation_id="preview_alert_rule",
    openapi_extra=ANY_BODY,
    responses=returns(RulePreview),
)
async def preview_alert_rule(
    request: Request, query: Whose, alerting: AlertingOf, answers: AnswersOf, caller: Reader
) -> Response:
    """Validate a rule without saving it: whether it would be accepted, and if not, why and what to do.

    `fires`: `never` or `always` if that is the problem. `stores_total`: how many stores the rule would watch now, and
    some of them in `stores`. `before`: the current rule with that id, null if there is none.
    """
    author = await _author(caller, query, answers)
    said = await rule_in(request)
    return _answer(await alerting.in_thread(author.tenant, lambda rules: preview(rules, author, said)))


@router.post(
    "/alert-rules",
    operation_id="create_alert_rule",
    status_code=HTTPStatus.CREATED,
    openapi_extra=BODY,
    responses=returns_rule("The rule that was made.", HTTPStatus.CREATED) | {HTTPStatus.PRECONDITION_FAILED: {}},
)
async def create_alert_rule(
    request: Request, query: Whose, alerting: AlertingOf, answers: AnswersOf, by: Configurer
) -> Response:
    """Create a rule. Needs the scope `configure`. It applies from `effective_at` on.

    A rule that names something unknown, can never fire or would always fire is rejected with the `field` to change.
    """
    author = await _author(by, query, answers)
    said = await rule_in(request)
    entry = await alerting.in_thread(author.tenant, lambda rules: rules.create(author, said))
    made = _entry(entry, HTTPStatus.CREATED)
    made.headers["Location"] = f"{router.prefix}/alert-rules/{entry.id}"
    return made


@router.put(
    "/alert-rules/{id}",
    operation_id="change_alert_rule",
    openapi_extra=BODY,
    responses=returns_rule("The rule as it is now."),
)
async def change_alert_rule(  # noqa: PLR0913, PLR0917 - what FastAPI hands over
    id: RuleId,  # noqa: A002 - the name in the path
    request: Request,
    query: Whose,
    alerting: AlertingOf,
    answers: AnswersOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Replace a rule. Needs the scope `configure` and `If-Match`: 412 if it was changed in the meantime.

    Open alerts of the previous version are resolved when the new one takes effect. An identical rule makes no version.
    """
    seen = expected(if_match)
    author = await _author(by, query, answers)
    said = await rule_in(request)
    return _entry(await alerting.in_thread(author.tenant, lambda rules: rules.replace(author, id, said, seen)))


@router.delete("/alert-rules/{id}", operation_id="remove_alert_rule", responses=returns_rule("The rule is deleted."))
async def remove_alert_rule(
    id: RuleId,  # noqa: A002 - the name in the path
    query: Whose,
    alerting: AlertingOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Remove a rule. Needs the scope `configure` and `If-Match`. Its versions and alerts stay readable."""
    seen = expected(if_match)
    tenant = tenant_of(by, query.tenant, DEFAULT_TENANT)
    return _entry(await alerting.in_thread(tenant, lambda rules: rules.remove(tenant, id, seen)))


async def _author(caller: Reader, query: TenantQuery, answers: AnswersOf) -> RuleAuthor:
    _, stores = await answers.stores.all()
    return RuleAuthor(tenant_of(caller, query.tenant, DEFAULT_TENANT), stores)


def _entry(entry: RuleEntry, status: int = HTTPStatus.OK) -> Response:
    return Response(encode(entry.response()), status, {"ETag": tag_of(entry.version)}, JSON)


def _answer(body: Struct) -> Response:
    return Response(encode(body), media_type=JSON)
