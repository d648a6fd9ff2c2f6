"""The client's errors, by what the caller can do about them.

ClientError
|-- ResponseError             the API answered with an error; `code` and `detail` say which and what to do
|   |-- AccessDeniedError     401, 403: no key, an invalid key, or a missing scope
|   |-- NotFoundError         404, 410: unknown name, or its cells were deleted
|   |-- RateLimitedError      429: slow down; retried
|   `-- UnavailableError      502, 503, 504: try later; retried
|-- UnreachableError          no response; retried
|-- InvalidResponseError      a response that this version of the client cannot read
|-- NotReadyError             the result does not exist yet
|-- VersionChangedError       an answer of several pages, whose data changed again and again while it was read
|-- AnswerTooLongError        an answer of several pages with too many stores or points
`-- IngestInterruptedError    `galatea.client.ingest`: sending events stopped half way
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
import msgspec

PROBLEM_TYPE = "application/problem+json"


class ClientError(Exception):
    """Base class of every error of the client. `str(error)` says what happened, then what to do; never a key."""


class UnreachableError(ClientError):
    """No response: the address is wrong, nothing listens there, or it took too long. `__cause__` is httpx's error."""


class InvalidResponseError(ClientError):
    """A response that is not what the API promises: another server listens there, or it is a newer version."""


class NotReadyError(ClientError):
    """A recompute that did not end in time, or corrections that are not written yet."""


class VersionChangedError(ClientError):
    """The pages of an answer were computed from different data, also when they were read again."""


class AnswerTooLongError(ClientError):
    """An answer of several pages that has too many stores or points to be put together."""


class ResponseError(ClientError):
    """The API answered with an error (RFC 9457).

    Attributes:
        code: stable code of the error, listed in the reference of errors; `http_<status>` if a proxy answered.
        title: what happened.
        detail: what to do; empty if a proxy gave no body.
        type: URI of the kind of problem.
        status: HTTP status.
        retry_after: seconds to wait before the next attempt; None if the response does not say.
    """

    def __init__(self, problem: "Problem", status: int, retry_after: float | None = None) -> None:
        """The error for a problem document. See the attributes of the class."""
        super().__init__(f"{problem.title} {problem.detail}".strip())
        self.code = problem.code
        self.title = problem.title
        self.detail = problem.detail
        self.type = problem.type
        self.status = status
        self.retry_after = retry_after


class AccessDeniedError(ResponseError):
    """401 or 403: the key is missing, invalid, or lacks the scope."""


class NotFoundError(ResponseError):
    """404 or 410: no such metric, view, store, publication or recompute; or its cells were deleted."""


class RateLimitedError(ResponseError):
    """429: the key sent too many requests, or too many bytes of events. `retry_after` says how many seconds to wait."""


class UnavailableError(ResponseError):
    """502, 503 or 504: a part of the platform does not respond for now. `retry_after` says when to try again."""


class Problem(msgspec.Struct, frozen=True):
    """The body of an error response, `application/problem+json` (RFC 9457)."""

    code: str
    title: str
    detail: str = ""
    type: str = "about:blank"


_CLASS_BY_STATUS: dict[int, Callable[[Problem, int, float | None], ResponseError]] = {
    HTTPStatus.UNAUTHORIZED: AccessDeniedError,
    HTTPStatus.FORBIDDEN: AccessDeniedError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.GONE: NotFoundError,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimitedError,
    HTTPStatus.BAD_GATEWAY: UnavailableError,
    HTTPStatus.SERVICE_UNAVAILABLE: UnavailableError,
    HTTPStatus.GATEWAY_TIMEOUT: UnavailableError,
}


def response_error(response: httpx.Response) -> ResponseError:
    """The error for an unsuccessful response.

    A response without a problem document comes from something in between, such as a proxy; its code is
    `http_<status>`.
    """
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.MsgspecError:
        where = f"{response.request.method} {response.request.url.path}"
        title = f"`{where}` was answered with {response.status_code} {response.reason_phrase}."
        problem = Problem(f"http_{response.status_code}", title, "Check the proxies between this client and the API.")
    error_class = _CLASS_BY_STATUS.get(response.status_code, ResponseError)
    return error_class(problem, response.status_code, _retry_after_seconds(response))


def _retry_after_seconds(response: httpx.Response) -> float | None:
    """`Retry-After`, as seconds or as a date. A date is compared with the response's own, not with a local clock."""
    text = response.headers.get("retry-after", "")
    if text.isdecimal():
        return float(text)
    try:
        until, now = (parsedate_to_datetime(each) for each in (text, response.headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None
