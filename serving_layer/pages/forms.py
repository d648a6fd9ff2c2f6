"""Forms as browsers send them: short, from our own pages, and bringing back what their page gave them."""

import hmac
from urllib.parse import parse_qs, urlsplit

from fastapi import Request

from serving_layer.api.bodies import bodies_of
from serving_layer.errors import BadQuestion, ScopeMissing
from serving_layer.pages.visitor import Visitor

MOST_FIELDS = 2000
TYPE = "application/x-www-form-urlencoded"
AGAIN = "Open the page again, and send its form from there."
Fields = dict[str, list[str]]


async def read_form(request: Request, token: str, most_bytes: int | None = None) -> Fields:
    """Its fields. ScopeMissing unless a page of ours with that token sent it; BadQuestion, what Bodies refuses."""
    refuse_foreign(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != TYPE:
        raise BadQuestion("The form is not one that a browser sends.", do=AGAIN)
    bodies = bodies_of(request)
    most = most_bytes or bodies.limits.question_bytes
    async with bodies.whole(request, most, "Ask in several requests.") as body:
        try:
            fields = parse_qs(body.decode(), keep_blank_values=False, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise BadQuestion("The form cannot be read.", do=AGAIN) from error
    if not hmac.compare_digest(first(fields, "token").encode(), token.encode()):
        raise ScopeMissing("The form is not from this session.", do=AGAIN)
    return fields


def refuse_foreign(request: Request) -> None:
    """ScopeMissing if a page of another origin sent it, or one that does not say whose it is."""
    origin = urlsplit(request.headers.get("origin", ""))
    if not origin.netloc or origin.netloc != request.headers.get("host"):
        raise ScopeMissing("The form was not sent by a page of this address.", do=AGAIN)


def first(fields: Fields, name: str) -> str:
    """What a field says, trimmed; empty if it is not there."""
    return fields.get(name, [""])[0].strip()


async def read_own_form(request: Request, visitor: Visitor, most_bytes: int | None = None) -> Fields:
    """As `read_form`, of a visitor."""
    return await read_form(request, visitor.token, most_bytes)
