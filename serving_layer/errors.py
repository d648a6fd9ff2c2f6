"""Why serving says no, beside the errors that every layer has. A refusal is typed, and never a smaller number."""

from master_dataset.errors import DependencyUnavailableError, OperatorError, RequestError


class BadQuestion(RequestError):
    """The question contradicts itself or names something that cannot be read."""

    status = 422


class NotAvailable(RequestError):
    """A part of the interface that this version does not answer; ignoring it would answer another question."""

    status = 422


class CountryUnknown(RequestError):
    """A store does not say in which country it stands, or its country has no known holidays."""

    status = 422


class TooManyStores(RequestError):
    """More stores than one answer may hold."""

    status = 422


class TooManyMetrics(RequestError):
    """More metrics than one answer may hold."""

    status = 422


class KeyMissing(RequestError):
    """Not everybody may ask this, and the request carries no key."""

    status = 401


class KeyWrong(RequestError):
    """The key of the request is none, or is good no more."""

    status = 401


class ScopeMissing(RequestError):
    """The key is good, and may not be used for this."""

    status = 403


class TooOften(RequestError):
    """The key asks more often than a key may."""

    status = 429


class TooManyAtOnce(RequestError):
    """More requests of the key are under way than of one key may be."""

    status = 429


class BodyTooLarge(RequestError):
    """The request says more than this question can hold."""

    status = 413


class BodyTooSlow(RequestError):
    """The body of the request did not arrive in time; nothing of it was taken."""

    status = 408


class BodyUnreadable(RequestError):
    """The body of the request ended early, or is not compressed as its headers say; nothing of it was taken."""


class RequestUnreadable(RequestError):
    """What came is no HTTP/1.1, or does not say beyond doubt where it ends; the connection ends."""


class RequestTooSlow(RequestError):
    """A request did not arrive as a whole in time; the connection ends."""

    status = 408


class HeadersTooLarge(RequestError):
    """The target and the header fields of a request are larger, or more, than they may be; the connection ends."""

    status = 431


class ExpectationUnknown(RequestError):
    """The request expects something else than `100-continue`."""

    status = 417


class UnsupportedBody(RequestError):
    """The body of the request is of a type, or compressed in a way, that this question does not take."""

    status = 415


class TooManyEvents(RequestError):
    """More events than one request may bring; none was taken."""

    status = 413


class NotOffered(RequestError):
    """The process that was asked answers questions and takes no events."""

    status = 404


class PublicationCollected(RequestError):
    """The cells of an old publication, or of a preview, were collected: nothing is left to answer from."""

    status = 410


class RecomputeInterrupted(OperatorError):
    """The process of a recompute ended before the recompute had; what it had done is kept."""


class DefinitionNotPublished(OperatorError):
    """The view was changed since it was published; two definitions are never merged (R12)."""

    status = 503


class CellMissing(OperatorError):
    """The manifest names cells that are not there. An error, never zero (R11)."""

    status = 503


class PublicationBehind(DependencyUnavailableError):
    """A replica still shows an older publication than this process has already answered from."""


class TooManyWebhooks(RequestError):
    """The tenant has as many endpoints of webhooks as it may have; nothing was changed."""

    status = 409


class NotBlocking(RequestError):
    """A record that is to be skipped blocks nothing; nothing was changed."""

    status = 409


class TooBusy(DependencyUnavailableError):
    """More is under way, or waits, than this process takes."""


class DiskLow(DependencyUnavailableError):
    """The broker's disk is nearly full: no event is taken before there is room again."""


class RuleExists(RequestError):
    """A rule of alerts of that id is there already; nothing was changed."""

    status = 409


class RuleMoved(RequestError):
    """Somebody else has changed the rule of alerts in between; nothing was changed."""

    status = 412


class VersionNotSaid(RequestError):
    """Whoever changes something has to say with `If-Match` which version they have seen."""

    status = 428
