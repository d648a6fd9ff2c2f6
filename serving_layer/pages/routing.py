"""A route whose refusals are pages too: what happened, what to do next, under the status that REST would give.

Forms as browsers send them: short, from our own pages, and bringing back what their page gave them.

One visitor who asks for one page: what may be asked on their behalf, and how the page is made.
"""

import hmac
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from master_dataset.errors import GalateaError
from serving_layer.admin.operations import Operations
from serving_layer.alerts.rules import AlertService
from serving_layer.api.caller import let_in
from serving_layer.api.problems import HEADERS_OF, REFUSED
from serving_layer.api.request_bodies import bodies_of
from serving_layer.errors import ApiKeyMissingError, BadQuestionError, InvalidApiKeyError, ScopeMissingError
from serving_layer.health.freshness import Fresh
from serving_layer.keys.key import Scope
from serving_layer.pages.queries import PageAnswers
from serving_layer.pages.rendering import page
from serving_layer.pages.sessions import COOKIE, Sessions, Visitor, visitor_of

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
LOGIN = "/login"


class PageRoute(APIRoute):
    """Of every page."""

    def get_route_handler(self) -> Handler:
        """The usual handler, behind one that turns refusals into pages."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except (ApiKeyMissingError, InvalidApiKeyError) as error:
                return _to_the_door(request, error)
            except RequestValidationError as error:
                wrong = error.errors()[0]
                message = f"`{wrong['loc'][-1]}` cannot be read: {wrong['msg']}."
                return await _refused(request, BadQuestionError(message, do="Go back and say it otherwise."))
            except GalateaError as error:
                return await _refused(request, error)

        return shown


def routes() -> APIRouter:
    """For the pages of one file. They are no part of the REST interface."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def _to_the_door(request: Request, error: GalateaError) -> Response:
    REFUSED.labels(error.code).inc()
    if request.method != "GET":
        return RedirectResponse(LOGIN, 303)
    response = page(request, "login.html", None, door(request, error.message), status=error.status)
    if isinstance(error, InvalidApiKeyError):
        response.delete_cookie(COOKIE, path="/")
    return response


def door(request: Request, why: str = "") -> dict[str, object]:
    """What the page with the form for a key says. `why` it is shown."""
    sessions: Sessions = request.app.state.sessions
    following = request.url.path if request.url.path != LOGIN else "/"
    return {"token": sessions.token(None), "why": why, "following": following}


async def refusal_page(request: Request, status: int, message: str, do: str) -> Response:
    """What happened, and what to do next."""
    response = page(request, "refusal.html", await _known(request), {"message": message, "do": do}, status=status)
    response.headers.update(HEADERS_OF.get(status, {}))
    return response


async def _refused(request: Request, error: GalateaError) -> Response:
    REFUSED.labels(error.code).inc()
    return await refusal_page(request, error.status, error.message, error.do)


async def _known(request: Request) -> Visitor | None:
    """Who looks, as far as that can be told without failing again."""
    try:
        return await visitor_of(request)
    except GalateaError:
        return None


MOST_FIELDS = 2000
TYPE = "application/x-www-form-urlencoded"
AGAIN = "Open the page again, and send its form from there."
Fields = dict[str, list[str]]


async def read_form(request: Request, token: str, most_bytes: int | None = None) -> Fields:
    """Its fields. ScopeMissingError unless a page of ours with that token sent it; BadQuestionError, what Bodies refuses."""
    refuse_foreign(request)
    if request.headers.get("content-type", "").partition(";")[0].strip() != TYPE:
        raise BadQuestionError("The form is not one that a browser sends.", do=AGAIN)
    bodies = bodies_of(request)
    most = most_bytes or bodies.limits.question_bytes
    async with bodies.whole(request, most, "Ask in several requests.") as body:
        try:
            fields = parse_qs(body.decode(), keep_blank_values=False, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise BadQuestionError("The form cannot be read.", do=AGAIN) from error
    if not hmac.compare_digest(first(fields, "token").encode(), token.encode()):
        raise ScopeMissingError("The form is not from this session.", do=AGAIN)
    return fields


def refuse_foreign(request: Request) -> None:
    """ScopeMissingError if a page of another origin sent it, or one that does not say whose it is."""
    origin = urlsplit(request.headers.get("origin", ""))
    if not origin.netloc or origin.netloc != request.headers.get("host"):
        raise ScopeMissingError("The form was not sent by a page of this address.", do=AGAIN)


def first(fields: Fields, name: str) -> str:
    """What a field says, trimmed; empty if it is not there."""
    return fields.get(name, [""])[0].strip()


async def read_own_form(request: Request, visitor: Visitor, most_bytes: int | None = None) -> Fields:
    """As `read_form`, of a visitor."""
    return await read_form(request, visitor.token, most_bytes)


@dataclass(frozen=True)
class Visit:
    """Of one request."""

    request: Request
    visitor: Visitor
    answers: PageAnswers

    @property
    def operations(self) -> Operations:
        """The operations that the app was made with; pages of operators alone do any."""
        operations: Operations = self.request.app.state.operations
        return operations

    @property
    def alerting(self) -> AlertService:
        """The alerting that the app was made with."""
        alerting: AlertService = self.request.app.state.alerting
        return alerting

    async def fresh(self) -> Fresh:
        """How old everything is: read once for a page, whose head says it."""
        fresh: Fresh = await self.request.app.state.freshness.read()
        return fresh

    def page(self, template: str, fresh: Fresh, said: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
        """What the visitor is shown."""
        return page(self.request, template, self.visitor, {"fresh": fresh, **said}, status=status)


class Shows:
    """Lets through whoever has the scope, by the key of a session or by none. What `let_in` refuses."""

    def __init__(self, scope: Scope) -> None:
        """`scope`: what the page is for."""
        self.scope = scope

    async def __call__(self, request: Request) -> Visit:
        """The visit."""
        visitor = await visitor_of(request)
        gate: Authenticator = request.app.state.gate
        await let_in(request.scope, gate, visitor.authorization, self.scope)  # which also counts
        return Visit(request, visitor, PageAnswers(request.app.state.answers, visitor.caller))


ReaderVisit = Annotated[Visit, Depends(Shows("read"))]
ConfigurerVisit = Annotated[Visit, Depends(Shows("configure"))]
OperatorVisit = Annotated[Visit, Depends(Shows("operate"))]
