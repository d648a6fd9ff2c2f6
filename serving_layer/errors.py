"""Why serving says no, beside the errors that every layer has. A refusal is typed, and never a smaller number."""

from master_dataset.errors import DependencyUnavailableError, OperatorError, RequestError


class BadQuestionError(RequestError):
    """The question contradicts itself or names something that cannot be read."""

    status = 422


class NotAvailableError(RequestError):
    """A part of the interface that this version does not answer; ignoring it would answer another question."""

    status = 422


class CountryUnknownError(RequestError):
    """A store does not say in which country it stands, or its country has no known holidays."""

    status = 422


class TooManyStoresError(RequestError):
    """More stores than one answer may hold."""

    status = 422


class TooManyMetricsError(RequestError):
    """More metrics than one answer may hold."""

    status = 422


class ApiKeyMissingError(RequestError):
    """Not everybody may ask this, and the request carries no key."""

    code = "key_missing"
    status = 401


class InvalidApiKeyError(RequestError):
    """The key of the request is none, or is good no more."""

    code = "key_wrong"
    status = 401


class ScopeMissingError(RequestError):
    """The key is good, and may not be used for this."""

    status = 403


class RateLimitedError(RequestError):
    """The key asks more often than a key may."""

    code = "too_often"
    status = 429


class TooManyAtOnceError(RequestError):
    """More requests of the key are under way than of one key may be."""

    status = 429


class BodyTooLargeError(RequestError):
    """The request says more than this question can hold."""

    status = 413


class BodyTooSlowError(RequestError):
    """The body of the request did not arrive in time; nothing of it was taken."""

    status = 408


class BodyUnreadableError(RequestError):
    """The body of the request ended early, or is not compressed as its headers say; nothing of it was taken."""


class RequestUnreadableError(RequestError):
    """What came is no HTTP/1.1, or does not say beyond doubt where it ends; the connection ends."""


class RequestTooSlowError(RequestError):
    """A request did not arrive as a whole in time; the connection ends."""

    status = 408


class HeadersTooLargeError(RequestError):
    """The target and the header fields of a request are larger, or more, than they may be; the connection ends."""

    status = 431


class ExpectationUnknownError(RequestError):
    """The request expects something else than `100-continue`."""

    status = 417


class UnsupportedBodyError(RequestError):
    """The body of the request is of a type, or compressed in a way, that this question does not take."""

    status = 415


class TooManyEventsError(RequestError):
    """More events than one request may bring; none was taken."""

    status = 413


class NotOfferedError(RequestError):
    """The process that was asked answers questions and takes no events."""

    status = 404


class PublicationCollectedError(RequestError):
    """The cells of an old publication, or of a preview, were collected: nothing is left to answer from."""

    status = 410


class RecomputeInterruptedError(OperatorError):
    """The process of a recompute ended before the recompute had; what it had done is kept."""


class DefinitionNotPublishedError(OperatorError):
    """The view was changed since it was published; two definitions are never merged (R12)."""

    status = 503


class CellMissingError(OperatorError):
    """The manifest names cells that are not there. An error, never zero (R11)."""

    status = 503


class PublicationBehindError(DependencyUnavailableError):
    """A replica still shows an older publication than this process has already answered from."""


class TooManyWebhooksError(RequestError):
    """The tenant has as many endpoints of webhooks as it may have; nothing was changed."""

    status = 409


class NotBlockingError(RequestError):
    """A record that is to be skipped blocks nothing; nothing was changed."""

    status = 409


class TooBusyError(DependencyUnavailableError):
    """More is under way, or waits, than this process takes."""


class DiskLowError(DependencyUnavailableError):
    """The broker's disk is nearly full: no event is taken before there is room again."""


class RuleExistsError(RequestError):
    """A rule of alerts of that id is there already; nothing was changed."""

    status = 409


class RuleMovedError(RequestError):
    """Somebody else has changed the rule of alerts in between; nothing was changed."""

    status = 412


class VersionNotSaidError(RequestError):
    """Whoever changes something has to say with `If-Match` which version they have seen."""

    status = 428
