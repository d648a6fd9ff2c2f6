"""The page of the metrics: every number that may be asked for."""

from deploy.reference.page import Page, code, codes
from views.metrics import registered_metrics

UNITS = {
    "n": "whole pieces",
    "money": "the currency's major unit, written from whole minor units",
    "percent": "100 times the fraction",
    "ratio": "the fraction itself",
}


def page() -> Page:
    """A table of all, and what the units are."""
    written = Page(
        "Metrics",
        "Ask for one with `GET /v1/metrics/{metric}` (see [rest](rest.md)). States are summed before the formula is "
        "applied, so a ratio is never a mean of ratios; a denominator of zero gives null. A name without a view is a "
        "state of the first view.",
    )
    written.table(
        ("metric", "name", "unit", "formula", "views", "flags"),
        [
            (code(each.id), each.name, each.unit, code(each.formula.text), codes(each.views), codes(each.flags))
            for each in registered_metrics().values()
        ],
    )
    written.heading("Units")
    written.table(("unit", "what the number counts"), [(code(unit), meaning) for unit, meaning in UNITS.items()])
    return written
