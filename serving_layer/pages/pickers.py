"""What forms choose from: stores by group, and which of them have data of a source."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from master_dataset.errors import GalateaError
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.language import gettext as _
from serving_layer.service import QueryService
from views.core import View
from views.registry import registered_views

LOOKS_BACK = timedelta(days=28)
"""How far back published cells prove that a store has a source."""
FIRST_GROUPS = ("region", "country", "format", "brand")
"""Of the groups that stores have, the first of these is shown; otherwise the first by name."""
MAX_ID = 64
MOST_LISTED = 300
"""Stores that a form lists. Where there are more, it has a field to type into."""


class StoreGroup(NamedTuple):
    """Stores that are chosen together. `name`: of their region or whatever groups them; empty if nothing does."""

    name: str
    stores: Sequence[Store]


def store_groups(stores: Sequence[Store]) -> Sequence[StoreGroup]:
    """The stores by region, or by the next group that they have; stores in none come last."""
    names = {name for store in stores for name in store.current_groups}
    group = next((name for name in FIRST_GROUPS if name in names), min(names, default=None))
    if group is None:
        return [StoreGroup("", stores)] if stores else []
    values = sorted({value for store in stores if (value := store.current_group(group))})
    groups = [StoreGroup(value, [each for each in stores if each.current_group(group) == value]) for value in values]
    rest = [store for store in stores if not store.current_group(group)]
    return [*groups, StoreGroup(_("No group"), rest)] if rest else groups


async def stores_with_cells(
    service: QueryService, fresh: FreshnessReport, view: View, before: date | None = None
) -> frozenset[str]:
    """The stores of which cells of the view are published, on the days of four weeks.

    Args:
        service: reads them.
        fresh: names the publication.
        view: whose cells.
        before: the UTC day that ends the four weeks; None for today.
    """
    last = before or fresh.at.date() + timedelta(days=1)
    cells = service.merged_cells.batch
    runs = await cells.days(fresh.snapshot.pointer.manifest, view.name)
    found: set[str] = set()
    for day, run in runs.items():
        if last - LOOKS_BACK <= day < last:
            try:
                found |= await cells.stores(run, view, day)
            except GalateaError:  # collected meanwhile: it proves nothing
                continue
    return frozenset(found)


async def lacking_stores(
    service: QueryService, fresh: FreshnessReport, stores: Iterable[Store], source: str
) -> frozenset[str]:
    """The ids of stores that neither register a sensor of the source nor have data of it."""
    if source == POS_TRANSACTIONS.topic:
        return frozenset()
    view = next((view for view in registered_views() if view.source.topic == source), None)
    seen = await stores_with_cells(service, fresh, view) if view else frozenset()
    return frozenset(
        store.id
        for store in stores
        if store.id not in seen and not any(sensor.source == source for sensor in store.sensors)
    )


def store_named(text: str, stores: Iterable[Store]) -> str:
    """The id of the store that was typed: of that id, or else the only one with that text in its name; or the text."""
    every = list(stores)
    if not text or any(store.id == text for store in every):
        return text
    found = [store.id for store in every if text.casefold() in store.name.casefold()]
    return found[0] if len(found) == 1 else text


def id_from(name: str, taken: Iterable[str]) -> str:
    """An id made of the letters and digits of a name, unlike those that are taken; empty for a name without any."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = "".join(each if each.isalnum() else " " for each in plain).split()
    base = "-".join(words)[: MAX_ID - 4].strip("-")
    known, number = frozenset(taken), 1
    while base and (made := base if number == 1 else f"{base}-{number}") in known:
        number += 1
    return made if base else ""


def names_of(stores: Iterable[Store]) -> Mapping[str, str]:
    """What stores are called, by id."""
    return {store.id: store.name or _("Store {id}").format(id=store.id) for store in stores}
