"""Who looks at a page: a caller, by the key of a session or by none."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import Request

from serving_layer.errors import KeyWrong
from serving_layer.keys.caller import Caller
from serving_layer.pages.sessions import COOKIE, Session, Sessions

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Gate


@dataclass(frozen=True)
class Visitor:
    """`token`: what its forms bring back."""

    caller: Caller
    session: Session | None
    token: str

    @property
    def authorization(self) -> str | None:
        """The header that the visitor's key would be sent in."""
        return self.session.authorization if self.session else None

    @property
    def is_operator(self) -> bool:
        """Whether pages that change something are shown."""
        return "operate" in self.caller.scopes and self.caller.sees_all

    @property
    def may_configure(self) -> bool:
        """Whether forms are shown that change what is the tenant's own."""
        return "configure" in self.caller.scopes or self.is_operator


async def visitor_of(request: Request) -> Visitor:
    """Who asks. KeyMissing where nothing is shown without a key, KeyWrong when the key of a session has ended."""
    gate: Gate = request.app.state.gate
    sessions: Sessions = request.app.state.sessions
    session = sessions.of(request.cookies.get(COOKIE))
    try:
        caller = await gate.keys.caller(session.authorization if session else None)
    except KeyWrong:
        if session:
            sessions.end(session)
        raise
    return Visitor(caller, session, sessions.token(session))
