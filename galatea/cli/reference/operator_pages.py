"""Reference pages for operators: settings, command line, errors."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer
from pydantic.fields import FieldInfo

from deploy.sections import LimitSettings
from deploy.settings import Settings, sections
from galatea.cli.main import BAD_SETTING, EXIT_CODES, app
from galatea.cli.reference.page import Page, code
from master_dataset.errors import DependencyUnavailableError, GalateaError
from master_dataset.parsing.results import MEANINGS, Reason
from serving_layer.http.problem_types import ACTS, FILE_CODES, HTTP_CODES, PHRASES, family
from serving_layer.ingest.ingest import FOREIGN_STORE, TOO_OLD

MADE = {
    "cache_dir": "`$XDG_CACHE_HOME/galatea`, else `~/.cache/galatea`",
    **dict.fromkeys(("spark_conf", "kafka_client_options", "cassandra_replication"), "`{}`"),
}
"""Defaults that are computed."""


def settings_page() -> Page:
    """Write the page of the settings: a table per section, one row per setting."""
    written = Page(
        "Settings",
        "Every command and component reads the same settings from the environment. With an invalid value, a command "
        "exits with code 2 before anything starts.",
    )
    every = Settings.catalogue()
    for section in sections().values():
        if section is not LimitSettings:
            title, _, more = (section.__doc__ or "").partition("\n\n")
            written.heading(title.rstrip("."))
            if more:
                written.paragraph(more)
            _table(written, {name: every[name] for name in section.names()})
    written.heading("Limits of the REST interface")
    written.paragraph(LimitSettings.__doc__ or "")
    _table(written, {name: every[name] for name in LimitSettings.names()})
    return written


def _table(written: Page, settings: Mapping[str, FieldInfo]) -> None:
    written.table(
        ("variable", "default", "bounds", "meaning"),
        [
            (code(f"GALATEA_{name.upper()}"), _default(name, field), _bounds(field), field.description or "")
            for name, field in settings.items()
        ],
    )


def _default(name: str, field: FieldInfo) -> str:
    if field.default_factory is not None:
        return MADE[name]
    shown = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return code(shown) or "empty"


def _bounds(field: FieldInfo) -> str:
    found: dict[str, Any] = {}
    for rule in field.metadata:
        found |= {sign: getattr(rule, sign) for sign in ("ge", "gt", "le", "lt") if hasattr(rule, sign)}
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return ", ".join(f"{words[sign]} {value}" for sign, value in found.items())


def command_page() -> Page:
    """Write the page of the command line: one section per command, in the order in which a new user needs them."""
    written = Page(
        "Command line",
        "The answer goes to stdout, progress and messages to stderr. See also [exit codes](errors.md#exit-codes) and "
        "[settings](settings.md), which are read from the environment.",
    )
    for words, verb in verbs():
        written.heading(code(" ".join(["galatea", *words])))
        written.paragraph(verb.help or "")
        shown = [each for each in verb.params if each.name != "help"]
        written.table(("argument or option", "default", "meaning"), [_row(each) for each in shown])
    return written


def verbs() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it, including those of groups."""
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
    repeats = "..." if is_argument and each.nargs == -1 else ""
    if is_argument:
        name = (each.metavar or each.name.upper()).removesuffix("...") + repeats
    else:
        name = " / ".join([*each.opts[:1], *each.secondary_opts[:1]])
    unset = each.default in (None, "", ()) or getattr(each, "is_flag", False)
    default = "required" if each.required else "" if unset else code(each.default)
    if isinstance(each.show_default, str):
        default = each.show_default
    return code(name), default, each.help or ""


OF_SENDERS = {
    FOREIGN_STORE: "names a store that does not belong to the sender, whether or not it exists",
    TOO_OLD: "happened more than `GALATEA_INGEST_OLDEST_DAYS` days before it was received; perhaps a clock is wrong. "
    "`galatea ingest` takes older events",
}


def errors_page() -> Page:
    """Write the page of the errors: a section per code, so that each has an anchor."""
    written = Page(
        "Errors",
        "Every error says in one sentence what happened, and what to do next. Its code never changes its meaning. Over "
        "HTTP it is `application/problem+json`, whose `type` is `/problems/<code>`: the REST interface shows there "
        "what this page says of the code. On the command line it is one line on stderr, which begins with the "
        "code, and an exit code.",
    )
    written.heading("Exit codes")
    written.table(("exit code", "meaning"), [(code(number), meaning) for number, meaning in EXIT_CODES.items()])
    shown: set[str] = set()
    for kind, who in ACTS.items():
        written.heading(f"{who} acts" if kind is not DependencyUnavailableError else who)
        found = {error.code: error for error in family(kind) if error.code not in shown}
        shown |= found.keys()
        for _, error in sorted(found.items()):
            written.heading(code(error.code), 3)
            written.paragraph(error.__doc__ or "")
            written.paragraph(_numbers(error))
    written.heading("Specific codes of `bad_file`")
    _sections(written, FILE_CODES)
    written.heading("Codes over HTTP only")
    http_codes = {name: f"HTTP {status.value}. {meaning}" for name, (status, meaning) in HTTP_CODES.items()}
    _sections(written, http_codes)
    written.heading("Codes on the command line only")
    _sections(written, {BAD_SETTING: "An environment variable has a value that cannot be used. Exit code 2."})
    written.heading("Reasons of dead letters")
    written.paragraph("A record that cannot be an event is kept as a dead letter, with its bytes.")
    written.paragraph("You can patch and replay it: see [dead letters](../how-to/dead-letters.md).")
    rows = [(code(reason), MEANINGS[reason].record, MEANINGS[reason].do) for reason in Reason]
    written.table(("reason", "the record", "who acts, and how"), rows)
    written.heading("Reasons of rejected events only")
    written.paragraph("Over HTTP, where the sender is known. An event rejected there is neither sent nor kept.")
    written.table(("reason", "the event"), [(code(reason), meaning) for reason, meaning in OF_SENDERS.items()])
    return written


def _sections(written: Page, meanings: Mapping[str, str]) -> None:
    for name, meaning in meanings.items():
        written.heading(code(name), 3)
        written.paragraph(meaning)


def _numbers(error: type[GalateaError]) -> str:
    return f"HTTP {error.status} {PHRASES[error.status]}, exit code {error.exit_code}."
