"""The files of the reference: pages for people, schemas and API descriptions for programs, tables of measurements."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from galatea.cli.reference.catalogue_pages import metrics_page, purpose, sources_page, views_page
from galatea.cli.reference.interfaces import asyncapi, openapi, rest_page, schema
from galatea.cli.reference.operator_pages import command_page, errors_page, settings_page
from galatea.cli.reference.page import Page, table
from lab.guarantees.results import COLUMNS, rows
from master_dataset.sources import registered_sources


def pages() -> Mapping[str, Page]:
    """Return every page by the name of its file. They are derived from the code alone."""
    return {
        "views": views_page(),
        "metrics": metrics_page(),
        "sources": sources_page(),
        "settings": settings_page(),
        "errors": errors_page(),
        "command": command_page(),
        "rest": rest_page(),
    }


def files() -> Mapping[str, str]:
    """Path below the folder of the reference to text."""
    written = {f"{name}.md": page.text() for name, page in pages().items()}
    for topic, source in registered_sources().items():
        written[f"schemas/{topic}.schema.json"] = written_json(schema(source, purpose(source)))
    return {**written, "asyncapi.json": written_json(asyncapi()), "openapi.json": written_json(openapi())}


def written_json(document: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """JSON for people to read and for git to compare."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


DOCS = Path(__file__).resolve().parents[3] / "docs"
MEASURED_PAGE, MEASUREMENTS = DOCS / "explanation" / "delivery-guarantees.md", DOCS / "measured" / "delivery.json"
_MARKED = re.compile(r"(<!-- measured: ([P0-9 ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def measured_page() -> str:
    """The page with the tables of what is kept now."""
    return filled(MEASURED_PAGE.read_text(encoding="utf-8"), json.loads(MEASUREMENTS.read_text(encoding="utf-8")))


def shown(page: str) -> list[str]:
    """The ids of the experiments that the page has tables of, in its order."""
    return [id_ for marked in _MARKED.finditer(page) for id_ in marked[2].split()]


def filled(page: str, kept: Mapping[str, Any]) -> str:
    """Write a table between each pair of marks. KeyError if an experiment that is marked was not kept."""
    measured = {each["id"]: each for each in kept["experiments"]}

    def one(marked: re.Match[str]) -> str:
        lines = [row for id_ in marked[2].split() for row in rows(measured[id_])]
        return f"{marked[1]}\n{table(COLUMNS, lines)}\n\n{marked[3]}"

    return _MARKED.sub(one, page)
