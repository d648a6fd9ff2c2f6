"""The table of what was proved, from the JSON of it: the same on a terminal and on the page."""

from collections.abc import Mapping
from typing import Any

from lab.guarantees.line import ZERO

COLUMNS = (
    "",
    "delivery mode",
    "injected fault",
    "sent",
    "lost",
    "duplicated",
    "reordered",
    "expected",
    "counted besides",
    "verdict",
)
_TALLY = ("lost", "duplicated", "reordered")


def rows(experiment: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each line of an experiment; one that says why for an experiment that was skipped or failed."""
    if not experiment["lines"]:
        said = (experiment["id"], experiment["shows"], experiment["why"])
        return [(*said, *[""] * (len(COLUMNS) - len(said) - 1), experiment["verdict"])]
    return [(experiment["id"], *_cells(line)) for line in experiment["lines"]]


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    bounds = [f"{name} {bound}" for name, bound in line["expected"].items() if bound != str(ZERO)]
    besides = [f"{name} {count:,}" for name, count in line["also"].items()]
    besides += [f"{name} {text}" for name, text in line["printed"].items()]
    return (
        line["mode"],
        line["fault"],
        f"{line['sent']:,}",
        *(f"{line[name]:,}" for name in _TALLY),
        ", ".join(bounds) or "all 0",
        ", ".join(besides),
        line["verdict"],
    )
