"""Who is signed in with a browser, which cannot send a key in a header when a link is followed. In memory alone."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

HOURS = 8
SECONDS = HOURS * 3600
MOST = 10_000
"""How many are kept; beyond that the oldest ends."""
COOKIE = "galatea_session"


@dataclass(frozen=True)
class Session:
    """`key`: as it was pasted. It is asked again at every request, so a session ends with it."""

    id: str
    key: str = field(repr=False)
    ends_at: float

    @property
    def authorization(self) -> str:
        """The header that the key would be sent in."""
        return f"Bearer {self.key}"


class Sessions:
    """Of one process: whoever signed in at another one signs in again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._kept: dict[str, Session] = {}

    def begin(self, key: str) -> Session:
        """A new one, under an id that nobody can guess."""
        self._drop_ended()
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        session = Session(secrets.token_urlsafe(32), key, self._clock() + SECONDS)
        self._kept[session.id] = session
        return session

    def of(self, id_: str | None) -> Session | None:
        """The session of a cookie; None if there is none, or none any more."""
        session = self._kept.get(id_ or "")
        return session if session and self._clock() < session.ends_at else None

    def end(self, session: Session) -> None:
        """Forget it and its key."""
        self._kept.pop(session.id, None)

    def token(self, session: Session | None) -> str:
        """What a form of this session must bring back (CSRF); of a form without a session, that of the process."""
        return hmac.new(self._secret, (session.id if session else "").encode(), hashlib.sha256).hexdigest()

    def _drop_ended(self) -> None:
        now = self._clock()
        for each in [each for each in self._kept.values() if each.ends_at <= now]:
            del self._kept[each.id]
