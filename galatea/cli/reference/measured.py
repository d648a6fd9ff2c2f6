"""The tables of a page that were measured: written between its marks from what `galatea prove --json` has kept."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from galatea.cli.reference.page import table
from lab.guarantees.table import COLUMNS, rows

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE, KEPT = DOCS / "explanation" / "delivery-guarantees.md", DOCS / "measured" / "delivery.json"
_MARKED = re.compile(r"(<!-- measured: ([P0-9 ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written() -> str:
    """The page with the tables of what is kept now."""
    return filled(PAGE.read_text(encoding="utf-8"), json.loads(KEPT.read_text(encoding="utf-8")))


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
