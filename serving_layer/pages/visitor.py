"""Who looks at a page: a caller, by the key of a session or by none."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from serving_layer.keys.caller import Caller
from serving_layer.keys.key import Scope
from serving_layer.pages.sessions import COOKIE, Session, Sessions
from serving_layer.refusals import KeyMissing, KeyWrong, ScopeMissing

if TYPE_CHECKING:
    from serving_layer.keys.known_keys import KnownKeys


@dataclass(frozen=True)
class Visitor:
    """`token`: what its forms bring back."""

    caller: Caller
    session: Session | None
    token: str

    @property
    def is_operator(self) -> bool:
        """Whether pages that change something are shown."""
        return "operate" in self.caller.scopes


async def visitor_of(request: Request) -> Visitor:
    """Who asks. KeyMissing where nothing is shown without a key, KeyWrong when the key of a session has ended."""
    keys: KnownKeys = request.app.state.keys
    sessions: Sessions = request.app.state.sessions
    session = sessions.of(request.cookies.get(COOKIE))
    try:
        caller = await keys.caller(session.authorization if session else None)
    except KeyWrong:
        if session:
            sessions.end(session)
        raise
    return Visitor(caller, session, sessions.token(session))


async def reader_of(visitor: Annotated[Visitor, Depends(visitor_of)]) -> Visitor:
    """Whoever may read numbers. ScopeMissing."""
    return _with(visitor, "read")


async def operator_of(visitor: Annotated[Visitor, Depends(visitor_of)]) -> Visitor:
    """Whoever may change what readers see. KeyMissing without a key, ScopeMissing with another one."""
    if visitor.session is None:
        raise KeyMissing("Only an operator may see this.", do="Sign in with a key that may `operate`.")
    return _with(visitor, "operate")


def _with(visitor: Visitor, scope: Scope) -> Visitor:
    if scope not in visitor.caller.scopes:
        raise ScopeMissing(f"This key may not `{scope}`.", do="Sign in with another key.")
    return visitor
