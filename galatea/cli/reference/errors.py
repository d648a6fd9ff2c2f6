"""The page of the errors: what problem+json's `type`, a dead letter's reason and an exit code point to."""

from collections.abc import Iterator
from http import HTTPStatus

from galatea.cli.reference.meanings import CLOSER, EXIT_CODES, HTTP_CODES, OF_SENDERS
from galatea.cli.reference.page import Page, code
from master_dataset.dead_letters.meanings import MEANINGS
from master_dataset.errors import DefinitionError, GalateaError, OperatorError, RequestError, Unavailable
from master_dataset.parsing.dead_letter import Reason
from serving_layer import errors as refusals

ACTS = {
    DefinitionError: "The author of a view or source",
    RequestError: "The caller",
    OperatorError: "The operator",
    Unavailable: "Nobody yet: it is retried, and passes",
}
_ = refusals  # imported for its classes, which register as subclasses


def page() -> Page:
    """A section per code, so that each has an anchor."""
    written = Page(
        "Errors",
        "Every error says what happened in one sentence and what to do next; the code never changes its meaning. Over "
        "HTTP it is `application/problem+json` whose `type` ends in the code; on the command line it is one line on "
        "stderr and an exit code.",
    )
    written.heading("Exit codes")
    written.table(("exit code", "meaning"), [(code(number), meaning) for number, meaning in EXIT_CODES.items()])
    for kind, who in ACTS.items():
        written.heading(f"{who} acts" if kind is not Unavailable else who)
        for error in sorted(family(kind), key=lambda each: each.code):
            written.heading(code(error.code), 3)
            written.paragraph(error.__doc__ or "")
            written.paragraph(_numbers(error))
    written.heading("Closer codes of `bad_file`")
    _sections(written, CLOSER)
    written.heading("Codes of HTTP alone")
    _sections(written, HTTP_CODES)
    written.heading("Reasons of dead letters")
    written.paragraph("Not errors of ours: a record says something that no event can hold, and is kept with its bytes.")
    written.paragraph("What can be mended is sent again: [dead letters](../how-to/dead-letters.md).")
    rows = [(code(reason), MEANINGS[reason].record, MEANINGS[reason].do) for reason in Reason]
    written.table(("reason", "the record", "who acts, and how"), rows)
    written.heading("Reasons of rejected events alone")
    written.paragraph("Over HTTP, where the sender is known; what is rejected there was not sent and is not kept.")
    written.table(("reason", "the event"), [(code(reason), meaning) for reason, meaning in OF_SENDERS.items()])
    return written


def family(kind: type[GalateaError]) -> Iterator[type[GalateaError]]:
    """The class and everything below it that the product defines."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith(("master_dataset.", "serving_layer.")):
            yield from family(below)


def _sections(written: Page, meanings: dict[str, str]) -> None:
    for name, meaning in meanings.items():
        written.heading(code(name), 3)
        written.paragraph(meaning)


def _numbers(error: type[GalateaError]) -> str:
    return f"HTTP {error.status} {HTTPStatus(error.status).phrase}, exit code {error.exit_code}."
