"""Rules of alerts as bodies of requests: how they are described, read digit by digit, and which version is expected."""

import json
import re
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from fastapi import Request

from serving_layer.alerts.rules import WHATEVER
from serving_layer.errors import BadQuestion, UnsupportedBody, VersionNotSaid
from serving_layer.responses.alerts import AlertRule
from serving_layer.responses.encoding import JSON
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
    """The plain values of the body, its numbers as they were written. BadQuestion, UnsupportedBody."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise UnsupportedBody("A rule is sent as JSON.", do=f"Send it with `Content-Type: {JSON}`.")
    try:
        return json.loads(await request.body(), parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise BadQuestion("The body of the request is no rule.", do="Send one object as JSON.") from error


def tag_of(version: int) -> str:
    """The entity tag of a version."""
    return f'"{version}"'


def expected(if_match: str | None) -> int:
    """The version that its author has seen. VersionNotSaid, BadQuestion."""
    if if_match is None:
        do = "Send `If-Match` with the `ETag` of the rule as you read it, or `*` whatever it says."
        raise VersionNotSaid("Which version is to be changed is not said.", do=do)
    if if_match.strip() == "*":
        return WHATEVER
    found = _TAG(if_match.strip())
    if not found:
        raise BadQuestion("`If-Match` is no tag of a rule.", do="Send the `ETag` of the rule as you read it.")
    return int(found[1])
