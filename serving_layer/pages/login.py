"""`/login`, `/logout`: a key is pasted once, and a cookie stands for it until the session ends."""

from typing import TYPE_CHECKING

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from serving_layer.errors import InvalidApiKeyError
from serving_layer.pages.rendering import page
from serving_layer.pages.routing import LOGIN, door, first, read_form, read_own_form, routes
from serving_layer.pages.sessions import COOKIE, SECONDS, Session, Sessions, visitor_of

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

router = routes()
HOME = "/"
MOST_BYTES = 8192
"""Of a form that anybody may send."""


@router.get(LOGIN)
async def get_login(request: Request) -> Response:
    """The form."""
    return page(request, "login.html", None, door(request))


@router.post(LOGIN)
async def sign_in(request: Request) -> Response:
    """Begin a session, if the key opens anything. The old session of this browser ends."""
    gate: Authenticator = request.app.state.gate
    sessions: Sessions = request.app.state.sessions
    fields = await read_form(request, sessions.token(None), MOST_BYTES)
    key, following = first(fields, "key"), first(fields, "following")
    try:
        await gate.keys.caller(f"Bearer {key}")
    except InvalidApiKeyError as error:
        said = door(request, f"{error.message} {error.do}") | {"following": following}
        return page(request, "login.html", None, said, status=error.status)
    if before := sessions.of(request.cookies.get(COOKIE)):
        sessions.end(before)
    response = RedirectResponse(_own(following), 303)
    _give(response, sessions.begin(key), is_secure=request.url.scheme == "https")
    return response


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    """End the session here and in the browser."""
    visitor = await visitor_of(request)
    await read_own_form(request, visitor)
    if visitor.session:
        request.app.state.sessions.end(visitor.session)
    response = RedirectResponse(HOME, 303)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


def _give(response: Response, session: Session, *, is_secure: bool) -> None:
    response.set_cookie(
        COOKIE, session.id, max_age=SECONDS, path="/", secure=is_secure, httponly=True, samesite="strict"
    )


def _own(following: str) -> str:
    """A path of ours; an address of somebody else's is not followed."""
    is_own = following.startswith("/") and not following.startswith(("//", "/\\")) and following.isprintable()
    return following if is_own else HOME
