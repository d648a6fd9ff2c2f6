"""Reference pages for operators: settings, command line, errors."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import typer
from pydantic.fields import FieldInfo

from deploy.sections import LimitSettings
from deploy.settings import Settings, sections
from galatea.cli.main import app
from galatea.cli.reference.page import Page, code
from master_dataset.errors import DefinitionError, DependencyUnavailableError, GalateaError, OperatorError, RequestError
from master_dataset.parsing.results import MEANINGS, Reason
from serving_layer import errors as refusals
from serving_layer.ingest.ingest import FOREIGN_STORE

MADE = {"cache_dir": "`$XDG_CACHE_HOME/galatea`, else `~/.cache/galatea`", "spark_conf": "`{}`"}
"""Defaults that are made anew, and may depend on who asks."""


def settings_page() -> Page:
    """One row per field; what bounds the REST interface stands apart."""
    written = Page(
        "Settings",
        "Read from the environment, by every command and every component alike. A value that cannot be is refused "
        "before anything starts, with exit code 2.",
    )
    every = Settings.catalogue()
    for section in sections().values():
        if section is not LimitSettings:
            written.heading((section.__doc__ or "").rstrip("."))
            _table(written, {name: every[name] for name in section.names()})
    written.heading("Limits of the REST interface")
    written.paragraph(LimitSettings.__doc__ or "")
    _table(written, {name: every[name] for name in LimitSettings.names()})
    return written


def _table(written: Page, settings: Mapping[str, FieldInfo]) -> None:
    written.table(
        ("variable", "default", "bounds", "what it says"),
        [
            (code(f"GALATEA_{name.upper()}"), _default(name, field), _bounds(field), field.description or "")
            for name, field in settings.items()
        ],
    )


def _default(name: str, field: FieldInfo) -> str:
    return MADE[name] if field.default_factory is not None else code(field.default) or "empty"


def _bounds(field: FieldInfo) -> str:
    found: dict[str, Any] = {}
    for rule in field.metadata:
        found |= {sign: getattr(rule, sign) for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)}
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return ", ".join(f"{words[sign]} {value}" for sign, value in found.items())


def command_page() -> Page:
    """One section per verb, in the order of a first day."""
    written = Page(
        "Command line",
        "The answer goes to stdout, progress and sentences to stderr. What the exit codes mean stands under "
        "[errors](errors.md#exit-codes); [settings](settings.md) come from the environment.",
    )
    for words, verb in verbs():
        written.heading(code(" ".join(["galatea", *words])))
        written.paragraph(verb.help or "")
        shown = [each for each in verb.params if each.name != "help"]
        written.table(("argument or option", "default", "meaning"), [_row(each) for each in shown])
    return written


def verbs() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb with the words that call it; a group gives its verbs."""
    yield from _below(typer.main.get_command(app), ())


def _below(group: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - typer's own
    for name in group.list_commands(None):
        verb = group.get_command(None, name)
        if hasattr(verb, "list_commands"):
            yield from _below(verb, (*words, name))
        else:
            yield (*words, name), verb


def _row(each: Any) -> tuple[str, str, str]:  # noqa: ANN401 - typer's own
    is_argument = not each.opts[0].startswith("-")
    name = (each.metavar or each.name.upper()) + ("..." if each.nargs == -1 else "") if is_argument else each.opts[0]
    unset = each.default in (None, "", ()) or getattr(each, "is_flag", False)
    default = "required" if each.required else "" if unset else code(each.default)
    return code(name), default, each.help or ""


EXIT_CODES = {
    0: "done",
    1: "a fault was met or found: something has to be decided or has to come back",
    2: "asked wrongly: an argument, a file or a setting",
    3: "a component stopped by name and waits for the operator; the supervisor leaves it `failed`",
    75: "a component asks to be started again; the supervisor does so, waiting longer each time",
    130: "interrupted",
}
CLOSER = {
    "bad_opening_hours": "`opening_hours` of a store are not quarter hours of a weekday.",
    "duplicate_store": "A file names the same store twice.",
    "offset_not_15min": "A store's time zone has an offset off the 15-minute grid, so its days would cut windows.",
    "unknown_currency": "The currency of a store is none of ISO 4217 that has a minor unit.",
    "unknown_field": "An entry of the file has a field that a store does not have.",
    "unknown_timezone": "The time zone of a store is none of the tz database.",
}
HTTP_CODES = {
    "bad_request": "HTTP 400. The request is none that can be read at all.",
    "not_found": "HTTP 404. No such path; `/openapi.json` lists what there is.",
    "method_not_allowed": "HTTP 405. The path is there, but not for this method.",
    "missing_argument": "HTTP 422. The question lacks an argument, which is named.",
    "unknown_argument": "HTTP 422. The question has an argument that means nothing here; it is refused, not ignored.",
    "internal_error": "HTTP 500. Nobody foresaw this. The answer carries a number that stands in the log of `api`.",
}
OF_SENDERS = {FOREIGN_STORE: "names a store that is none of the sender's, whether or not there is such a store"}


ACTS = {
    DefinitionError: "The author of a view or source",
    RequestError: "The caller",
    OperatorError: "The operator",
    DependencyUnavailableError: "Nobody yet: it is retried, and passes",
}
_ = refusals  # imported for its classes, which register as subclasses


def errors_page() -> Page:
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
        written.heading(f"{who} acts" if kind is not DependencyUnavailableError else who)
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
