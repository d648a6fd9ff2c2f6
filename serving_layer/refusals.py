"""Why serving says no, beside the errors that every layer has. A refusal is typed, and never a smaller number."""

from master_dataset.errors import OperatorError, RequestError, Unavailable


class BadQuestion(RequestError):
    """The question contradicts itself or names something that cannot be read."""

    status = 422


class NotAvailable(RequestError):
    """A part of the interface that this version does not answer; ignoring it would answer another question."""

    status = 422


class TooManyStores(RequestError):
    """More stores than one answer may hold."""

    status = 422


class DefinitionNotPublished(OperatorError):
    """The view was changed since it was published; two definitions are never merged (R12)."""

    status = 503


class CellMissing(OperatorError):
    """The manifest names cells that are not there. An error, never zero (R11)."""

    status = 503


class PublicationBehind(Unavailable):
    """A replica still shows an older publication than this process has already answered from."""


class TooBusy(Unavailable):
    """More requests are in flight than this process takes."""
