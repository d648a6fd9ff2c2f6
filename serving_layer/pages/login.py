"""`/login`, `/logout`, `/language`: what a browser remembers. A key is pasted once, and a cookie stands for it."""

from typing import TYPE_CHECKING

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from prometheus_client import Counter

from master_dataset.errors import UnknownNameError
from serving_layer.api.caller import client_of
from serving_layer.errors import InvalidApiKeyError, RateLimitedError
from serving_layer.http.problems import REFUSALS, headers_of
from serving_layer.pages import language
from serving_layer.pages.language import LANGUAGES
from serving_layer.pages.rendering import render
from serving_layer.pages.routing import (
    LOGIN,
    LOGOUT,
    UnsentForm,
    is_encrypted,
    local_path,
    login_values,
    page_router,
    read_form,
)
from serving_layer.pages.sessions import (
    COOKIE,
    ENCRYPTED_COOKIE,
    LIFETIME_SECONDS,
    Session,
    Sessions,
    Visitor,
    forget_session,
    session_cookie,
    visitor_of,
)

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

LOGINS = Counter(
    "galatea_page_logins", "Keys sent to the sign-in page, by outcome: `accepted` or an error code.", ("outcome",)
)
ACCEPTED = "accepted"
router = page_router()
HOME = "/"
MAX_BYTES, MAX_SIGN_IN_BYTES = 8192, 49_152
"""Of forms that anybody can send; the second one also has the form that waits for its key."""


@router.get(LOGIN)
async def get_login(request: Request) -> Response:
    """The form."""
    return render(request, "login.html", None, login_values(request))


@router.post(LOGIN)
async def sign_in(request: Request) -> Response:
    """Begin a session if the key is valid, and end the old session of this browser. Slows wrong keys as REST does."""
    authenticator: Authenticator = request.app.state.authenticator
    sessions: Sessions = request.app.state.sessions
    form = await read_form(request, "", MAX_SIGN_IN_BYTES)
    key, following, unsent = form.text("key"), local_path(form.text("following")), UnsentForm.kept_in(form)
    response: Response
    try:
        caller = await authenticator.caller(f"Bearer {key}", client_of(request.scope))
        authenticator.rates.count(caller, "read")  # each session is a row
    except (InvalidApiKeyError, RateLimitedError) as error:
        LOGINS.labels(error.code).inc()
        REFUSALS.labels(error.code).inc()
        values = login_values(request, f"{error.message} {error.do}", unsent) | {"following": following}
        response = render(request, "login.html", None, values, status=error.status)
        response.headers.update(headers_of(error))
        return response
    if before := await _session_before(request, sessions):
        await sessions.end(before)
    session = await sessions.begin(key)
    LOGINS.labels(ACCEPTED).inc()
    if unsent:
        values = {"unsent": unsent, "following": following}
        response = render(request, "unsent.html", Visitor(caller, session), values)
    else:
        response = RedirectResponse(following, 303)
    _set_cookie(response, session, is_secure=is_encrypted(request))
    return response


@router.post(LOGOUT)
async def sign_out(request: Request) -> Response:
    """End the session in all processes and in the browser."""
    visitor = await visitor_of(request)
    await read_form(request, visitor.token)
    if visitor.session:
        await request.app.state.sessions.end(visitor.session)
    response = RedirectResponse(HOME, 303)
    forget_session(request, response)
    return response


@router.post("/language")
async def choose_language(request: Request) -> Response:
    """Show pages in another language from now on, to visitors with and without a session."""
    form = await read_form(request, "", MAX_BYTES)
    chosen = form.text("language")
    if chosen not in LANGUAGES:
        raise UnknownNameError("language", chosen, LANGUAGES)
    response = RedirectResponse(local_path(form.text("following")), 303)
    response.set_cookie(
        language.COOKIE,
        chosen,
        max_age=language.COOKIE_SECONDS,
        secure=is_encrypted(request),
        httponly=True,
        samesite="lax",
    )
    return response


async def _session_before(request: Request, sessions: Sessions) -> Session | None:
    try:
        return await sessions.of(session_cookie(request), client_of(request.scope))
    except RateLimitedError:  # an old cookie does not keep anybody from signing in
        return None


def _set_cookie(response: Response, session: Session, *, is_secure: bool) -> None:
    name = ENCRYPTED_COOKIE if is_secure else COOKIE
    response.set_cookie(
        name, session.id, max_age=LIFETIME_SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
