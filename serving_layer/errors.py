"""Errors of the serving layer, in addition to those of `master_dataset.errors`."""

from typing import TYPE_CHECKING

from master_dataset.errors import DependencyUnavailableError, OperatorError, RequestError

if TYPE_CHECKING:
    from serving_layer.responses.encoding import ReadProgress


class BadQuestionError(RequestError):
    """An argument contradicts another one or cannot be read."""

    status = 422


class ArgumentMissingError(RequestError):
    """The request lacks an argument that it needs."""

    code = "missing_argument"
    status = 422


class NotAvailableError(RequestError):
    """The request uses a combination that this version does not support."""

    status = 422


class CountryUnknownError(RequestError):
    """A store has no country, or its country has no known holidays."""

    status = 422


class TooManyStoresError(RequestError):
    """The request names more stores than one response may hold."""

    status = 422


class TooManyMetricsError(RequestError):
    """The request names more metrics than one response may hold."""

    status = 422


class ApiKeyMissingError(RequestError):
    """The request needs an API key and has none."""

    code = "key_missing"
    status = 401


class HostNotAllowedError(RequestError):
    """`Host` is no name under which the API is served."""

    status = 421


class InvalidApiKeyError(RequestError):
    """The API key is unknown, expired or revoked."""

    code = "key_wrong"
    status = 401


class ScopeMissingError(RequestError):
    """The API key is valid, but does not have the required scope."""

    status = 403


class RateLimitedError(RequestError):
    """The API key sends more requests per second, or more bytes of events per minute, than it may."""

    code = "too_often"
    status = 429
    retry_after: int | None = None
    """Seconds after which it is worth another try; None for those of its status."""


class TooManyAtOnceError(RequestError):
    """The API key has more requests in progress than it may."""

    status = 429


class BodyTooLargeError(RequestError):
    """The request body is larger than this route accepts."""

    status = 413


class BodyTooSlowError(RequestError):
    """The request body did not arrive in time; nothing of it was used."""

    status = 408


class BodyUnreadableError(RequestError):
    """The request body ended early, or is not compressed as its headers say; nothing of it was used."""


class RequestUnreadableError(RequestError):
    """The request is not valid HTTP/1.1, or its length is ambiguous; the connection is closed."""


class RequestTooSlowError(RequestError):
    """The request did not arrive completely in time; the connection is closed."""

    status = 408


class HeadersTooLargeError(RequestError):
    """The target and the header fields of the request exceed a limit; the connection is closed."""

    status = 431


class ExpectationUnknownError(RequestError):
    """The request has an `Expect` header other than `100-continue`."""

    status = 417


class UnsupportedBodyError(RequestError):
    """The request body has a content type or an encoding that this route does not accept."""

    status = 415


class TooManyEventsError(RequestError):
    """The request has more events than one request may have; none was accepted."""

    status = 413


class NotOfferedError(RequestError):
    """This API process does not serve what the request needs; another one does."""

    status = 404


def not_offered(what: str, instead: str = "") -> NotOfferedError:
    """The error for what this process does not serve. `instead`: how to do it without the API, such as a command."""
    do = f"Send the request to another API process{f', or {instead}' if instead else ''}."
    return NotOfferedError(f"This API process does not serve {what}.", do=do)


class BadAddressError(RequestError):
    """The address is not that of a page that can be kept or shared."""

    status = 422


class TooManySavedError(RequestError):
    """The tenant has as many annotations, saved views or share links as it may have; nothing was changed."""

    status = 409


class UnknownShareError(RequestError):
    """There is no share link with this token."""

    status = 404


class ShareEndedError(RequestError):
    """The share link has expired or was revoked."""

    status = 410


class PublicationCollectedError(RequestError):
    """The cells of an old publication or of a preview were garbage-collected."""

    status = 410


class RecomputeInterruptedError(OperatorError):
    """The process of a recompute stopped before the recompute had finished; completed work is kept."""


class DefinitionNotPublishedError(OperatorError):
    """The view was changed since it was published; two definitions are never merged (R12)."""

    status = 503


class CellMissingError(OperatorError):
    """The manifest names cells that do not exist. This is an error, never zero (R11)."""

    status = 503


class PublicationBehindError(DependencyUnavailableError):
    """A replica returns an older publication than this process has already read."""


class TooManyWebhooksError(RequestError):
    """The tenant has as many webhooks as it may have; nothing was changed."""

    status = 409


class NotBlockingError(RequestError):
    """The record to skip blocks nothing; nothing was changed."""

    status = 409


class NotYetError(DependencyUnavailableError):
    """No answer contains yet what `at_least` or `max_staleness` demand; `progress` says how far it would reach."""

    def __init__(self, message: str, *, do: str, progress: "ReadProgress") -> None:
        """`progress`: what the snapshot that was read last contains of it."""
        super().__init__(message, do=do)
        self.progress = progress


class TooBusyError(DependencyUnavailableError):
    """The process has as many requests in progress as it accepts."""


class DiskLowError(DependencyUnavailableError):
    """The broker's disk is nearly full; no event is accepted until there is space again."""


class RuleExistsError(RequestError):
    """An alert rule with this id already exists; nothing was changed."""

    status = 409


class RuleMovedError(RequestError):
    """The alert rule was changed in the meantime; nothing was changed."""

    status = 412


class VersionNotSaidError(RequestError):
    """The request changes something and needs `If-Match` with the version that it changes."""

    status = 428
