"""What every page shares: its route, who visits it, the scope it needs, its forms, and errors as pages."""

import hmac
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.formparsers import MultiPartException, MultiPartParser

from master_dataset.errors import GalateaError
from serving_layer.admin.operations import OperatorService
from serving_layer.alerts.rules import AlertService
from serving_layer.api.caller import authorize
from serving_layer.api.parameters import read_ids
from serving_layer.api.request_bodies import bodies_of
from serving_layer.errors import (
    ApiKeyMissingError,
    BadQuestionError,
    InvalidApiKeyError,
    ScopeMissingError,
    not_offered,
)
from serving_layer.health.freshness import FreshnessReport, FreshnessService
from serving_layer.http.invalid_arguments import invalid_argument
from serving_layer.http.problems import HEADERS_OF, REFUSALS, headers_of
from serving_layer.keys.key import Scope
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import language_of, use_language
from serving_layer.pages.queries import PageQueries
from serving_layer.pages.rendering import address_of, address_to_return_to, render
from serving_layer.pages.sessions import SHARED_VISIT, SharedVisit, Visitor, forget_session, visitor_of
from serving_layer.saved.service import SavedService

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

LOGIN, LOGOUT = "/login", "/logout"


# Visits


@dataclass(frozen=True)
class Visit:
    """One visitor who requests one page."""

    request: Request
    visitor: Visitor
    queries: PageQueries

    @property
    def operations(self) -> OperatorService:
        """What operators can do. Only their pages do any of it."""
        operations: OperatorService = self.request.app.state.operations
        return operations

    @property
    def alerting(self) -> AlertService:
        """Alerts and their rules."""
        alerting: AlertService = self.request.app.state.alerting
        return alerting

    @property
    def saved(self) -> SavedService:
        """Annotations, saved views and share links. NotOfferedError if this process has none."""
        saved: SavedService | None = self.request.app.state.saved
        if saved is None:
            raise not_offered("annotations, saved views or share links")
        return saved

    @property
    def freshness(self) -> FreshnessService:
        """Reads how fresh everything is, for all tenants."""
        freshness: FreshnessService = self.request.app.state.freshness
        return freshness

    async def fresh(self) -> FreshnessReport:
        """How fresh everything is that the visitor may see, as the header of the page says it. Read once per page."""
        return await self.freshness.read_for(self.visitor.caller)

    async def form(self, max_bytes: int | None = None) -> "Form":
        """The form that the visitor sent. Raises as `read_form` does."""
        return await read_form(self.request, self.visitor.token, max_bytes)

    async def upload(self, max_bytes: int) -> "tuple[Form, bytes]":
        """The form with a file that the visitor sent. Raises as `read_upload` does."""
        return await read_upload(self.request, self.visitor.token, max_bytes)

    def page(
        self, template: str, fresh: FreshnessReport, values: Mapping[str, object], *, status: int = 200
    ) -> HTMLResponse:
        """The page for this visitor. `values`: what the template refers to."""
        if self.queries.snapshot is not None:
            fresh = replace(fresh, snapshot=self.queries.snapshot)
        return render(self.request, template, self.visitor, {"fresh": fresh, **values}, status=status)


class RequireScope:
    """A dependency that admits visitors whose key, or no key, has a scope, as REST does."""

    def __init__(self, scope: Scope) -> None:
        """`scope`: what the page needs."""
        self.scope = scope

    async def __call__(self, request: Request) -> Visit:
        """The visit. Raises ApiKeyMissingError, InvalidApiKeyError or ScopeMissingError."""
        visitor = await visitor_of(request)
        shared: SharedVisit | None = request.scope.get(SHARED_VISIT)
        if shared is not None:
            if self.scope != "read" or request.method != "GET":
                raise ScopeMissingError("This cannot be shared.", do="Sign in with a key.")
            return Visit(request, visitor, _queries(request, visitor, shared.asked))
        authenticator: Authenticator = request.app.state.authenticator
        await authorize(
            request.scope, authenticator, visitor.authorization, self.scope
        )  # which also counts the request
        return Visit(request, visitor, _queries(request, visitor))


def _queries(request: Request, visitor: Visitor, asked: set[str] | None = None) -> PageQueries:
    state = request.app.state
    return PageQueries(state.answers, visitor.caller, asked, state.recent_answers)


ReaderVisit = Annotated[Visit, Depends(RequireScope("read"))]
ConfigurerVisit = Annotated[Visit, Depends(RequireScope("configure"))]
OperatorVisit = Annotated[Visit, Depends(RequireScope("operate"))]


# Forms

FORM_TYPE = "application/x-www-form-urlencoded"
UPLOAD_TYPE = "multipart/form-data"
MAX_FIELDS = 2000
MAX_UPLOAD_FIELDS, MAX_UPLOAD_TEXT = 8, 4096
"""Fields of a form with a file, beside the file, and bytes of each."""
OPEN_AGAIN = "Open the page again, and send its form from there."


class Form(dict[str, list[str]]):
    """The fields of a form, each with its values. Empty fields are absent."""

    def text(self, name: str) -> str:
        """The first value of a field, stripped; empty if the field is absent."""
        return self.get(name, [""])[0].strip()

    def texts(self, *names: str) -> dict[str, str]:
        """The first values of these fields, without those that are absent."""
        return {name: value for name in names if (value := self.text(name))}

    def ids(self, name: str) -> list[str]:
        """The ids in a field, which commas separate, as `read_ids` reads them. Raises BadQuestionError."""
        return [each for id_ in read_ids(self.get(name, []), name) if (each := id_.strip())]


async def read_form(request: Request, token: str, max_bytes: int | None = None) -> Form:
    """The form in the body of a request.

    Args:
        request: a POST.
        token: the CSRF token that the form must bring back; empty for a form that belongs to no session. That it was
            sent by a page of this address is checked for every form.
        max_bytes: the longest body; None for the limit of requests.

    Raises:
        ScopeMissingError: it was not sent by a page of this address, or not from this session.
        BadQuestionError: it is no form, or the body is too long.
    """
    _require_same_origin(request)
    if content_type(request) != FORM_TYPE:
        raise BadQuestionError("This is not a browser form.", do=OPEN_AGAIN)
    bodies = bodies_of(request)
    async with bodies.read(
        request, max_bytes or bodies.limits.request_bytes, "Split it into several requests."
    ) as body:
        try:
            form = Form(parse_qs(body.decode(), keep_blank_values=False, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            raise BadQuestionError("The form cannot be read.", do=OPEN_AGAIN) from error
    _require_token(form, token)
    return form


async def read_upload(request: Request, token: str, max_bytes: int) -> tuple[Form, bytes]:
    """The form and its one file in the body of a request; the file is empty if none was chosen.

    Args:
        request: a POST.
        token: as of `read_form`.
        max_bytes: the longest body.

    Raises:
        ScopeMissingError: as of `read_form`.
        BadQuestionError: it is no form with a file.
        BodyTooLargeError: the body is too long. For other errors see `BodyReader.read`.
    """
    _require_same_origin(request)
    if content_type(request) != UPLOAD_TYPE:
        raise BadQuestionError("This is not a browser form.", do=OPEN_AGAIN)
    form, content = Form(), b""
    async with bodies_of(request).read(request, max_bytes, "Choose a smaller file.") as body:

        async def whole() -> AsyncGenerator[bytes, None]:
            yield body

        parser = MultiPartParser(
            request.headers, whole(), max_files=1, max_fields=MAX_UPLOAD_FIELDS, max_part_size=MAX_UPLOAD_TEXT
        )
        parser.spool_max_size = max_bytes  # it is in memory already, and is not written to a disk
        try:
            parsed = await parser.parse()
        except (MultiPartException, UnicodeError) as error:  # it may name an encoding that decodes nothing
            raise BadQuestionError("The form cannot be read.", do=OPEN_AGAIN) from error
        async with AsyncExitStack() as opened:
            for name, value in parsed.multi_items():
                if isinstance(value, str):
                    text = value.encode(errors="replace").decode()  # some encodings give what is no character
                    form.setdefault(name, []).append(text)
                else:
                    opened.push_async_callback(value.close)
                    content = await value.read()
    _require_token(form, token)
    return form, content


def content_type(request: Request) -> str:
    """The media type of the body, without its parameters; empty if the request does not say it."""
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _require_token(form: Form, token: str) -> None:
    if token and not hmac.compare_digest(form.text("token").encode(), token.encode()):
        raise ScopeMissingError("The form is not from this session.", do=OPEN_AGAIN)


def is_encrypted(request: Request) -> bool:
    """Whether the browser reaches this address by HTTPS, so that a cookie can be kept to it.

    Of a form, the browser says so itself, in `Origin`; a proxy that encrypts need not be named for that.
    """
    return "https" in (request.url.scheme, _origin_of(request).scheme)


def is_same_origin(request: Request) -> bool:
    """Whether a form was sent by a page of this address."""
    origin = _origin_of(request)
    is_downgraded = request.url.scheme == "https" and origin.scheme != "https"
    return bool(origin.netloc) and origin.netloc == request.headers.get("host") and not is_downgraded


def _origin_of(request: Request) -> SplitResult:
    """What the browser says of where a form was sent from; without a scheme and a host if that is no address."""
    try:
        return urlsplit(request.headers.get("origin", ""))
    except ValueError:
        return urlsplit("")


def _require_same_origin(request: Request) -> None:
    if not is_same_origin(request):
        raise ScopeMissingError("The form was not sent by a page of this address.", do=OPEN_AGAIN)


def invalid_field(error: ValidationError, do: str = "Go back and correct it.") -> BadQuestionError:
    """The first field that pydantic refused, as an error with a next step."""
    wrong = error.errors()[0]
    found = invalid_argument({**wrong, "loc": ("form", *wrong["loc"])})
    return BadQuestionError(f"{found.title} {found.do}", do=do)


# Routes and errors

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(APIRoute):
    """A route in the language of its visitor, whose errors are pages too, with the status that REST would give."""

    def get_route_handler(self) -> Handler:
        """The usual handler inside one that turns errors into pages."""
        handle = super().get_route_handler()

        async def handle_page(request: Request) -> Response:
            with use_language(language_of(request)):
                return await handle_in_language(request)

        async def handle_in_language(request: Request) -> Response:
            try:
                return await handle(request)
            except (ApiKeyMissingError, InvalidApiKeyError) as error:
                return await _login_page(request, error)
            except RequestValidationError as error:
                found = invalid_argument(error.errors()[0])
                return await _error_page(
                    request, BadQuestionError(found.title, do=f"{found.do} Go back and correct it.")
                )
            except GalateaError as error:
                return await _error_page(request, error)

        return handle_page


def page_router() -> APIRouter:
    """A router for the pages of one module. They are no part of the REST API."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def login_values(request: Request, why: str = "", unsent: "UnsentForm | None" = None) -> dict[str, object]:
    """What the template of the login page refers to.

    Args:
        request: the one that is answered with it.
        why: what happened to the key; empty if nothing.
        unsent: the form that is sent again after the visitor has signed in; None if there is none.
    """
    following = address_to_return_to(request)
    is_door = following.partition("?")[0] == LOGIN
    return {"why": why, "following": "/" if is_door else following, "unsent": unsent, "unsent_prefix": UNSENT_PREFIX}


UNSENT_PREFIX, UNSENT_PATH = "unsent.", "unsent_path"
"""Names of the fields in which the login page keeps a form that was not sent."""
MAX_UNSENT_BYTES, MAX_UNSENT_FIELDS = 16_384, 200
_NEVER_KEPT = (LOGIN, LOGOUT, "/language", "/keys", "/publications")
"""The beginnings of paths of forms with a secret, that mean nothing to another session, or that change what every
tenant sees: whoever sends these again looks at their page first."""


class UnsentForm(NamedTuple):
    """A form that arrived after its session had ended: where it goes, and its fields without the token."""

    path: str
    fields: Sequence[tuple[str, str]]

    @classmethod
    async def of(cls, request: Request) -> "UnsentForm | None":
        """The form in the body of a request; None if it is none that is kept."""
        try:
            form = await read_form(request, "", MAX_UNSENT_BYTES)
        except GalateaError:
            return None
        return cls._checked(address_of(request), [(name, each) for name, values in form.items() for each in values])

    @classmethod
    def kept_in(cls, form: Form) -> "UnsentForm | None":
        """The form that the login page kept in its own; None if there is none."""
        fields = [
            (name.removeprefix(UNSENT_PREFIX), each)
            for name, values in form.items()
            if name.startswith(UNSENT_PREFIX)
            for each in values
        ]
        return cls._checked(form.text(UNSENT_PATH), fields)

    @classmethod
    def _checked(cls, path: str, fields: Sequence[tuple[str, str]]) -> "UnsentForm | None":
        own = [(name, value) for name, value in fields if name != "token"]
        where = path.partition("?")[0]
        is_door = any(where == each or where.startswith(f"{each}/") for each in _NEVER_KEPT)
        is_kept = path == local_path(path) and not is_door
        return cls(path, own) if path and is_kept and len(own) <= MAX_UNSENT_FIELDS else None


def local_path(following: str) -> str:
    """A path of this address; for any other address, the first page."""
    is_local = following.startswith("/") and not following.startswith(("//", "/\\")) and following.isprintable()
    return following if is_local else "/"


async def error_page(request: Request, status: int, message: str, do: str) -> Response:
    """A page that says what happened and what to do next."""
    values = {"message": message, "do": do}
    visitor = await visitor_if_known(request)
    with use_language(language_of(request)):  # an error outside of all pages has no language yet
        response = render(request, "error.html", visitor, values, status=status)
    response.headers.update(HEADERS_OF.get(status, {}))
    return response


async def _login_page(request: Request, error: GalateaError) -> Response:
    REFUSALS.labels(error.code).inc()
    why, unsent = error.message, None
    if request.url.path == LOGOUT:
        return RedirectResponse(LOGIN, 303)  # it has ended already
    if request.method not in {"GET", "HEAD"}:
        unsent = await UnsentForm.of(request)
        why = (
            _("Your session has ended. Sign in, and you can send again what you typed.")
            if unsent
            else _("Your session has ended. What you typed was not saved.")
        )
    response = render(request, "login.html", None, login_values(request, why, unsent), status=error.status)
    forget_session(request, response)  # it has ended, or its key is not valid any more
    return response


async def _error_page(request: Request, error: GalateaError) -> Response:
    REFUSALS.labels(error.code).inc()
    response = await error_page(request, error.status, error.message, error.do)
    response.headers.update(headers_of(error))
    return response


async def visitor_if_known(request: Request) -> Visitor | None:
    """The visitor of a page that is open to everybody; None for one whose key, or lack of one, shows nothing else."""
    try:
        return await visitor_of(request)
    except GalateaError:
        return None
