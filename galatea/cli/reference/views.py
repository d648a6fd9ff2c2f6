"""The page of the views: every question, its dimensions, and the states that answer it."""

from galatea.cli.reference.page import Page, code, codes
from views import registered_views
from views.core import View
from views.metrics import registered_metrics


def page() -> Page:
    """One section per registered view."""
    written = Page(
        "Views",
        "A view answers one question per store, 15-minute window and dimensions. Both layers run the same expressions, "
        "which are Spark SQL over the columns of the source (see [sources](sources.md)).",
    )
    for view in registered_views():
        _describe(written, view)
    return written


def _describe(written: Page, view: View) -> None:
    written.heading(code(view.name))
    written.paragraph(view.question)
    told = f"Source {code(view.source.topic)}, windows of {code(view.at)}."
    if view.where != "true":
        told += f" Only rows where {code(view.where)}."
    if view.each:
        told += f" Counts each {code(view.each.name)} of {code(view.each.of)}."
    used = [metric.id for metric in registered_metrics().values() if view.name in metric.views]
    told += f" Definition {code(view.definition_hash)}. Metrics: {codes(used) or 'none'}."
    written.paragraph(told)
    written.table(("dimension", "expression"), [(code(name), code(sql)) for name, sql in view.dimensions.items()])
    written.table(
        ("state", "one row gives", "joined by"),
        [(code(name), code(column.of), column.by) for name, column in view.columns.items()],
    )
