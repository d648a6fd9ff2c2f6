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
from serving_layer.api.parameters import DEFAULT, TenantName, tenant_of
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
    except (ValueError, RecursionError) as error:
        raise BadQuestionError("The body of the request is no rule.", do="Send one object as JSON.") from error


def tag_of(version: int) -> str:
    """The entity tag of a version."""
    return f'"{version}"'


def expected(if_match: str | None) -> int:
    """The version that its author has seen. VersionNotSaidError, BadQuestionError."""
    if if_match is None:
        do = "Send `If-Match` with the `ETag` of the rule as you read it, or `*` whatever it says."
        raise VersionNotSaidError("Which version is to be changed is not said.", do=do)
    if if_match.strip() == "*":
        return ANY_VERSION
    found = _TAG(if_match.strip())
    if not found:
        raise BadQuestionError("`If-Match` is no tag of a rule.", do="Send the `ETag` of the rule as you read it.")
    return int(found[1])


PAGE = 1000
MOST_BODY = 1_000_000
"""A rule may name ten thousand stores."""
RuleId = Annotated[str, Path(max_length=64)]
Match = Annotated[str | None, Header(max_length=100, description="The `ETag` of the rule as it was read, or `*`.")]


class RuleBodyRoute(BodyLimitRoute):
    """A body that brings a rule."""

    most_bytes = MOST_BODY


router = APIRouter(prefix="/v1", tags=["alerts"], route_class=RuleBodyRoute)


class OfTenant(BaseModel):
    """Whose rules."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None


class VersionsQuestion(OfTenant):
    """`before` is the `next` of the page before."""

    limit: int = Field(100, ge=1, le=PAGE)
    before: int | None = Field(None, ge=0, le=2**31 - 1, description="Only versions with a lesser number.")


Whose = Annotated[OfTenant, Query()]


@router.get("/alert-rules", operation_id="list_alert_rules", responses=returns(AlertRuleList))
async def list_alert_rules(asked: Whose, alerting: AlertingOf, caller: Reader) -> Response:
    """Every rule of the tenant, by id, and how many it may have at `most`.

    `effective_at`: this version holds for events received from then on. `in_words`: what it says. `unreadable`: it is
    stored as no rule of this release is, so `rule` is null, and it watches nothing until it is replaced or removed.
    """
    tenant = tenant_of(caller, asked.tenant, DEFAULT)
    found = await alerting.in_thread(lambda rules: rules.listed(tenant))
    return _answer(AlertRuleList([entry.response() for entry in found], alerting.rules.most))


@router.get("/alert-rules/{id}", operation_id="get_alert_rule", responses=returns_rule("The rule."))
async def get_alert_rule(id: RuleId, asked: Whose, alerting: AlertingOf, caller: Reader) -> Response:  # noqa: A002 - the name in the path
    """One rule as it was written last. Its `ETag` is for `If-Match`, when it is changed."""
    tenant = tenant_of(caller, asked.tenant, DEFAULT)
    return _entry(await alerting.in_thread(lambda rules: rules.one(tenant, id)))


@router.get("/alert-rules/{id}/versions", operation_id="list_alert_rule_versions", responses=returns(AlertRuleVersions))
async def list_alert_rule_versions(
    id: RuleId,  # noqa: A002 - the name in the path
    asked: Annotated[VersionsQuestion, Query()],
    alerting: AlertingOf,
    caller: Reader,
) -> Response:
    """Every version of a rule, the newest first, also of one that was `removed`. `next` is null on the last page."""
    tenant = tenant_of(caller, asked.tenant, DEFAULT)
    found = await alerting.in_thread(lambda rules: rules.history(tenant, id))
    rest = [entry for entry in found if asked.before is None or entry.version < asked.before]
    page = rest[: asked.limit]
    following = page[-1].version if len(rest) > asked.limit else None
    return _answer(AlertRuleVersions([entry.response() for entry in page], following))


@router.post(
    "/alert-rules/preview",
    operation_id="preview_alert_rule",
    openapi_extra=ANY_BODY,
    responses=returns(RulePreview),
)
async def preview_alert_rule(
    request: Request, asked: Whose, alerting: AlertingOf, answers: AnswersOf, caller: Reader
) -> Response:
    """What a rule would be, without writing it: whether it would be accepted, and if not, why and what to do.

    `fires`: `never` or `always` where that is what is wrong with it. `stores_total`: how many stores it would watch
    now, and some of them in `stores`. `before`: the rule of that id as it is, null if there is none.
    """
    author = await _author(caller, asked, answers)
    said = await rule_in(request)
    return _answer(await alerting.in_thread(lambda rules: preview(rules, author, said)))


@router.post(
    "/alert-rules",
    operation_id="create_alert_rule",
    status_code=HTTPStatus.CREATED,
    openapi_extra=BODY,
    responses=returns_rule("The rule that was made.", HTTPStatus.CREATED) | {HTTPStatus.PRECONDITION_FAILED: {}},
)
async def create_alert_rule(
    request: Request, asked: Whose, alerting: AlertingOf, answers: AnswersOf, by: Configurer
) -> Response:
    """Make a rule. Needs the scope `configure`; it holds from `effective_at` on.

    Refused with the `field` to be changed where it names what is not there, can never fire or always would.
    """
    author = await _author(by, asked, answers)
    said = await rule_in(request)
    entry = await alerting.in_thread(lambda rules: rules.create(author, said))
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
    asked: Whose,
    alerting: AlertingOf,
    answers: AnswersOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Let a rule say this instead. Needs the scope `configure`, and `If-Match`: 412 if somebody else was faster.

    What is open by the version before is resolved when the new one begins to hold. The same again makes no version.
    """
    seen = expected(if_match)
    author = await _author(by, asked, answers)
    said = await rule_in(request)
    return _entry(await alerting.in_thread(lambda rules: rules.replace(author, id, said, seen)))


@router.delete("/alert-rules/{id}", operation_id="remove_alert_rule", responses=returns_rule("That it is no more."))
async def remove_alert_rule(
    id: RuleId,  # noqa: A002 - the name in the path
    asked: Whose,
    alerting: AlertingOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Remove a rule. Needs the scope `configure`, and `If-Match`. Its versions and alerts stay readable."""
    seen = expected(if_match)
    tenant = tenant_of(by, asked.tenant, DEFAULT)
    return _entry(await alerting.in_thread(lambda rules: rules.remove(tenant, id, seen)))


async def _author(caller: Reader, asked: OfTenant, answers: AnswersOf) -> RuleAuthor:
    _, stores = await answers.stores.all()
    return RuleAuthor(tenant_of(caller, asked.tenant, DEFAULT), stores)


def _entry(entry: RuleEntry, status: int = HTTPStatus.OK) -> Response:
    return Response(encode(entry.response()), status, {"ETag": tag_of(entry.version)}, JSON)


def _answer(body: Struct) -> Response:
    return Response(encode(body), media_type=JSON)
