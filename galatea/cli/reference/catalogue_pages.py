"""Reference pages on what is computed and from what: views, metrics, sources."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from galatea.cli.reference.page import Page, code, codes
from master_dataset.fields import Field, Lines
from master_dataset.parsing.arrow import arrow_fields
from master_dataset.parsing.json_bytes import MAX_BYTES, MAX_DEPTH
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from serving_layer.query.render import rendered
from serving_layer.responses.encoding import encode
from views import registered_views
from views.core import View
from views.core.metric import Metric, of_nothing, worked
from views.metrics import registered_metrics


def views_page() -> Page:
    """Write the page of the views: one section per view."""
    written = Page(
        "Views",
        "A view answers one question per store, 15-minute window and dimensions. Both layers run the same expressions, "
        "which are Spark SQL over the columns of the source (see [sources](sources.md)).",
    )
    for view in registered_views():
        _describe_view(written, view)
    return written


def _describe_view(written: Page, view: View) -> None:
    written.heading(code(view.name))
    written.paragraph(view.question)
    text = f"Source {code(view.source.topic)}, windows of {code(view.at)}."
    if view.where != "true":
        text += f" Only rows where {code(view.where)}."
    if view.each:
        text += f" Counts each {code(view.each.name)} of {code(view.each.of)}."
    used = [metric.id for metric in registered_metrics().values() if view.name in metric.views]
    text += f" Definition {code(view.definition_hash)}. Metrics: {codes(used) or 'none'}."
    written.paragraph(text)
    written.table(("dimension", "expression"), [(code(name), code(sql)) for name, sql in view.dimensions.items()])
    written.table(
        ("state", "expression", "aggregate"),
        [(code(name), code(column.of), column.by) for name, column in view.columns.items()],
    )


DIGITS = 2
"""Decimals of money in the examples."""
UNITS = {
    "n": "whole pieces",
    "money": "the currency's major unit, written from whole minor units",
    "percent": "100 times the fraction",
    "ratio": "the fraction itself",
    "ms": "milliseconds",
    "hours": "hours",
    "years": "years of age",
    "celsius": "degrees Celsius",
    "mm": "millimetres",
    "list": "a list of items, each with its count and its share in percent",
}
RULES = {
    "Zero, or nothing": "A sum over a range without events is 0 if the store has the source: tills always, sensors "
    "if registered, any source if the range has a cell of the view. Otherwise it is null, with `no_source`. "
    "Before the first publication it is null, with `loading`. A point that has not begun is null, too.",
    "Sensor time": "`people_counts` prove by their intervals that a sensor was alive, every other one by heartbeats. "
    "A metric with `low_coverage` says so below 95 % of the time of the registered sensors of its sources, over the "
    "windows that are over, and is null below 50 %, with `masked`. Nothing is imputed. A store that registers no such "
    "sensor is not judged. `only_covered=true` keeps the windows in which each source had 95 %; `comp=true` leaves "
    "out stores that had less on either side.",
    "People inside": "`occupancy` is read from the start of the business day, whatever `from`, and shows the end of "
    "the last window of a point. `drift_high` stands at days that are over. `count_drift` takes whole business days.",
}
FLAGS = {
    "above_100": "A share above 100 %: its parts were measured in different ways. It is not capped.",
    "below_zero": "The target was passed.",
    "device_based": "Devices were counted, not people.",
    "device_days": "The point holds several business days, and a device counts once in each.",
    "discounts_not_said": "No receipt says what was taken off its lines: the value is null, as it is not known.",
    "drift_high": "Of a business day, more than 5 % of the people who came in never left, or the other way round.",
    "estimate": "Computed from a sketch or from midpoints, not from every value.",
    "loading": "Nothing was published yet, and no event of the point was counted: the value is null.",
    "low_coverage": "The sensors were alive for less than 95 % of the time.",
    "masked": "The sensors were alive for less than 50 % of the time: the value is null.",
    "no_net_units": "Not more was sold than returned: the value is null.",
    "no_opening_hours": "`hours=open` was requested for a store without opening hours: the value is null.",
    "no_source": "The store has no such sensor and no such event in the range: the value is null.",
    "no_staff_split": "A sensor does not distinguish staff from visitors.",
    "no_target": "With `compare=target`: no business day of the point has a target.",
    "open_only": "Only windows inside the opening hours count.",
    "pairs_cut": "Some receipts sell more items than are paired, and are left out.",
    "partly_said": "Some receipts do not say their discounts or payments, and are left out of the value.",
    "payments_not_said": "No receipt says how it was paid: the value is null, as it is not known.",
    "planned_only": "Work was planned, but none was recorded.",
    "small_sample": "The share is one of fewer than 30.",
    "targets_missing": "With `compare=target`: some business days of the point have no target.",
}


def metrics_page() -> Page:
    """Write the page of the metrics: a table, worked examples, units and flags."""
    metrics = registered_metrics().values()
    written = Page(
        "Metrics",
        "Query one with `GET /v1/metrics/{metric}` (see [rest](rest.md)). States are summed before the formula is "
        "applied, so a ratio is never a mean of ratios; a denominator of zero gives null. A name without a view is a "
        "state of the first view. `views/core/formula.py` says what a formula can contain.",
    )
    written.table(
        ("metric", "name", "unit", "formula", "views", "flags", "without data"),
        [(*_described(each), _of_nothing(each)) for each in metrics],
    )
    written.heading("Examples")
    written.paragraph("Computed by the code from the states on the left, where money is in cents.")
    written.table(
        ("metric", "input", "result", "origin"),
        [(code(each.id), _given(each.example), code(_worked(each)), each.note) for each in metrics],
    )
    for heading, text in RULES.items():
        written.heading(heading)
        written.paragraph(text)
    _units_and_flags(written)
    return written


def _units_and_flags(written: Page) -> None:
    written.heading("Units")
    written.table(("unit", "meaning"), [(code(unit), meaning) for unit, meaning in UNITS.items()])
    written.heading("Flags")
    written.paragraph("A flag accompanies a value, and changes it only if it says that the value is null.")
    written.table(("flag", "meaning"), [(code(flag), meaning) for flag, meaning in FLAGS.items()])


def _described(metric: Metric) -> tuple[str, ...]:
    formula, views = code(metric.formula.text), codes(metric.views)
    return code(metric.id), metric.name, metric.unit, formula, views, codes(metric.flags)


def _of_nothing(metric: Metric) -> str:
    value = of_nothing(metric, {view.name: view for view in registered_views()})
    return "null" if value is None else "0, or null with `no_source`"


def _worked(metric: Metric) -> str:
    value = rendered(worked(metric, {view.name: view for view in registered_views()}), metric, DIGITS)
    items = [each for each in value if each.count] if isinstance(value, Sequence) else value
    return encode(items).decode()


def _given(example: Mapping[str, object]) -> str:
    return ", ".join(f"{code(name)} = {value}" for name, value in example.items())


def purpose(source: Source[Any]) -> str:
    """The words at the top of its file, on one line."""
    modules = [module for name, module in sys.modules.items() if name.startswith("master_dataset.sources.")]
    words = next((module.__doc__ or "" for module in modules if source in vars(module).values()), "")
    return " ".join(words.split())


def sources_page() -> Page:
    """One section per registered source."""
    written = Page(
        "Sources",
        f"A record is one JSON object in UTF-8 of at most {MAX_BYTES:,} bytes and {MAX_DEPTH} levels. Unknown fields "
        "are kept with the bytes and otherwise ignored. What cannot be an event becomes a dead letter "
        "(see [errors](errors.md#reasons-of-dead-letters)). The same, for machines: [AsyncAPI](asyncapi.json).",
    )
    for source in registered_sources().values():
        _describe_source(written, source)
    return written


def _describe_source(written: Page, source: Source[Any]) -> None:
    written.heading(code(source.topic))
    written.paragraph(purpose(source))
    written.paragraph(
        f"The store, which is also the key of the topic, is {code(source.store)}; the event time is "
        f"{code(source.happened_at)}. Two records are deliveries of the same event if they are equal in "
        f"{codes(source.identity)}."
    )
    written.table(("field", "type", "optional", "description", "allowed values"), _fields(source.fields, ""))
    written.paragraph(f"For example, and [as a schema](schemas/{source.topic}.schema.json):")
    written.code(json.dumps(source.example, ensure_ascii=False))
    written.heading(f"Columns of `{source.topic}`", 3)
    written.paragraph(
        "Expressions of views may use these, beside `store` and `happened_at`. "
        f"Two deliveries conflict if they differ in {codes((*source.content, *source.content_later))}."
    )
    columns = [(code(each.name), code(each.type)) for each in arrow_fields(source.payload)]
    written.table(("column", "Arrow type"), columns)
    if source.flags:
        written.paragraph("`flags` marks unusual events. They still count.")
        written.table(("flag", "meaning"), [(code(flag), meaning) for flag, meaning in source.flags.items()])


def _fields(fields: Mapping[str, Field | Lines], prefix: str) -> Iterator[tuple[str, ...]]:
    for name, field in fields.items():
        absent = "yes" if field.optional else ""
        yield code(prefix + name), type(field).__name__, absent, field.about, field.schema["description"]
        if isinstance(field, Lines):
            yield from _fields(field.fields, f"{prefix}{name}[].")
