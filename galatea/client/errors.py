"""Why there is no answer, sorted by what to do about it.

NotAnswered
|-- Refused          the API said no: ask otherwise; `code` and `detail` say how
|   |-- KeyRefused   401, 403: no key, one that is not good, or not for this
|   |-- NotThere     404, 410: no such name, or nothing left of it
|   |-- TooOften     429: slower; retried
|   `-- Unavailable  502, 503, 504: later; retried
|-- Unreachable      nobody answered; retried
|-- Unreadable       an answer that this version of the client does not understand
`-- NotYet           what was asked for is not finished
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
import msgspec

PROBLEM = "application/problem+json"


class NotAnswered(Exception):
    """Every error of the client; `str(error)` says what happened, then what to do. Never a key."""


class Unreachable(NotAnswered):
    """No answer came: the address is wrong, nobody listens there, or it took too long."""


class Unreadable(NotAnswered):
    """An answer came that is not what the API promises: something else listens there, or it is a newer version."""


class NotYet(NotAnswered):
    """A recompute that has not ended in time, or corrections that are not written yet."""


class Refused(NotAnswered):
    """The API said no. `code` is stable, `title` says what happened, `detail` what to do; `type` names the problem."""

    def __init__(self, problem: "Problem", status: int, retry_after: float | None = None) -> None:
        """`retry_after`: seconds to wait before asking again, None if the answer does not say."""
        super().__init__(f"{problem.title} {problem.detail}".strip())
        self.code = problem.code
        self.title = problem.title
        self.detail = problem.detail
        self.type = problem.type
        self.status = status
        self.retry_after = retry_after


class KeyRefused(Refused):
    """The key is missing, not good, or not for this."""


class NotThere(Refused):
    """No such metric, view, store, publication or recompute; or its cells were collected."""


class TooOften(Refused):
    """The key asks more often than a key may; `retry_after` says how long to wait."""


class Unavailable(Refused):
    """A part of the platform does not answer. Nobody has to act yet; `retry_after` says when to ask again."""


class Problem(msgspec.Struct, frozen=True):
    """A body of `application/problem+json` (RFC 9457)."""

    code: str
    title: str
    detail: str = ""
    type: str = "about:blank"


KINDS: dict[int, Callable[[Problem, int, float | None], Refused]] = {
    HTTPStatus.UNAUTHORIZED: KeyRefused,
    HTTPStatus.FORBIDDEN: KeyRefused,
    HTTPStatus.NOT_FOUND: NotThere,
    HTTPStatus.GONE: NotThere,
    HTTPStatus.TOO_MANY_REQUESTS: TooOften,
    HTTPStatus.BAD_GATEWAY: Unavailable,
    HTTPStatus.SERVICE_UNAVAILABLE: Unavailable,
    HTTPStatus.GATEWAY_TIMEOUT: Unavailable,
}


def refusal(response: httpx.Response) -> Refused:
    """What a response means that is no answer; one without a problem in it comes from something in between."""
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.MsgspecError:
        where = f"{response.request.method} {response.request.url.path}"
        told = f"`{where}` was answered with {response.status_code} {response.reason_phrase}."
        problem = Problem(f"http_{response.status_code}", told, "Look at what lies between this client and the API.")
    kind = KINDS.get(response.status_code, Refused)
    return kind(problem, response.status_code, _seconds(response))


def _seconds(response: httpx.Response) -> float | None:
    """`Retry-After`: seconds, or a date, which is compared with the answer's own so that no clock here matters."""
    said = response.headers.get("retry-after", "")
    if said.isdecimal():
        return float(said)
    try:
        until, now = (parsedate_to_datetime(text) for text in (said, response.headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None
