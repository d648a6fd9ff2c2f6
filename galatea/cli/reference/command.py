"""The page of the command line: every verb, its help, its arguments and options."""

from collections.abc import Iterator
from typing import Any

import typer

from galatea.cli.main import app
from galatea.cli.reference.page import Page, code


def page() -> Page:
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
