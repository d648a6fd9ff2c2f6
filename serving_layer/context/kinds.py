"""Which kinds of context there are, and what an answer says of those that were asked for."""

from collections.abc import Container
from typing import cast

from master_dataset.errors import UnknownName
from serving_layer.context.holidays import Holidays
from serving_layer.context.kind import Kind
from serving_layer.context.reading import Reading
from serving_layer.context.weather import Weather
from serving_layer.errors import NotAvailable
from serving_layer.query.read_snapshot import Basis
from serving_layer.query.resolved_query import Asked
from serving_layer.responses.metrics import Context
from serving_layer.store.merged_cells import MergedCells

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Holidays(), Weather())}
NAMES = tuple(KINDS)


def asked_kinds(text: str, views: Container[str]) -> tuple[str, ...]:
    """The kinds that `context=` names, separated by commas. UnknownName, NotAvailable."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in KINDS:
            raise UnknownName("context", name, NAMES)
        if not all(view in views for view in KINDS[name].views):
            message = f"`context={name}` is not answered: there is no view that it could be read from."
            raise NotAvailable(message, do=f"Leave `{name}` out of `context`.")
    return names


async def told_of(asked: Asked, basis: Basis, cells: MergedCells) -> Context:
    """What stands beside the points, by kind."""
    reading = Reading(basis, cells)
    return cast("Context", {name: await KINDS[name].told(asked, reading) for name in asked.context})
