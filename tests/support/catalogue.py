"""The texts of pages and reports, and their translations. `python -m tests.support.catalogue` updates the catalogues.

It keeps what is translated, adds texts that are new with an empty translation, and drops those that are gone.
"""

import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from serving_layer.pages.language import FOLDER, LANGUAGES, Language

FOLDERS = (FOLDER.parent, FOLDER.parents[1] / "reports")
KEYWORDS = {"_": None, "gettext": None, "gettext_noop": None, "ngettext": (1, 2)}
METHODS = [("**.py", "python"), ("**.html", "jinja2")]
OPTIONS = {"**.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
PLACES = re.compile(r"%\(\w+\)s|%%|\{\w*\}|`[^`]+`")
"""What a translation must have as often as its text: names of values, percent signs, and code."""

NOT_KEPT = re.compile(rb'"(POT-|PO-|Last-Translator|Report-|Language-Team|Generated-By)')
"""Lines of the header that say when and by whom: the history of the repository does."""


class Fault(NamedTuple):
    """What is wrong with a translation."""

    language: Language
    text: str
    why: str


def texts() -> Catalog:
    """Every text of the code and the templates."""
    catalog = Catalog(charset="utf-8")
    for folder in FOLDERS:
        for file, line, text, _comments, context in extract_from_dir(
            folder, METHODS, OPTIONS, keywords=KEYWORDS, comment_tags=()
        ):
            catalog.add(text, None, [(Path(file).as_posix(), line)], context=context)
    return catalog


def translated(language: Language) -> Catalog:
    """The catalogue of a language; empty if there is none yet."""
    path = FOLDER / f"{language}.po"
    if not path.exists():
        return Catalog(language, charset="utf-8")
    with path.open("rb") as file:
        return read_po(file, locale=language)


def update(language: Language, known: Catalog) -> None:
    """Write the catalogue of a language anew."""
    catalog = translated(language)
    catalog.update(known, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    catalog.header_comment = f"# Texts of the pages in {catalog.locale.english_name if catalog.locale else language}."
    catalog.project, catalog.version, catalog.fuzzy = "Galatea", "1", False
    written = BytesIO()
    write_po(written, catalog, no_location=True, sort_output=True, ignore_obsolete=True, width=120)
    kept = [line for line in written.getvalue().splitlines(keepends=True) if not NOT_KEPT.match(line)]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{language}.po").write_bytes(b"".join(kept))


def faults(language: Language, known: Catalog) -> Iterator[Fault]:
    """What lacks a translation, is translated for nothing, or lost one of its values."""
    catalog = translated(language)
    for message in known:
        if message.id:
            yield from _faults_of(language, message, catalog.get(message.id, message.context))
    yield from (
        Fault(language, _text(message), "is not used any more")
        for message in catalog
        if message.id and known.get(message.id, message.context) is None
    )


def _faults_of(language: Language, message: Message, found: Message | None) -> Iterator[Fault]:
    texts = () if found is None else (found.string,) if isinstance(found.string, str) else found.string
    if not texts or not all(texts):
        yield Fault(language, _text(message), "has no translation")
        return
    sources = [message.id] if isinstance(message.id, str) else [message.id[0], *[message.id[1]] * (len(texts) - 1)]
    for source, text in zip(sources, texts, strict=True):
        wanted = sorted(set(PLACES.findall(source)))
        if sorted(set(PLACES.findall(text))) != wanted:
            yield Fault(language, source, f"has {wanted}, and its translation does not: {text}")


def _text(message: Message) -> str:
    return message.id if isinstance(message.id, str) else message.id[-1]


def main() -> int:
    """Update all catalogues; 1 if a translation is missing or wrong."""
    known = texts()
    found = []
    for language in LANGUAGES[1:]:
        update(language, known)
        found += list(faults(language, known))
    for fault in found:
        sys.stdout.write(f"{fault.language}: {fault.text!r} {fault.why}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
