"""Registers stores, and refuses what would make the numbers of the past mean something else."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.errors import CurrencyFixed
from master_dataset.registry import Registry
from master_dataset.sources import registered_sources
from master_dataset.stores import Store
from master_dataset.tables import MasterTables

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings


def register(settings: "Settings", session: "Session", stores: Sequence[Store]) -> None:
    """Save the stores. CurrencyFixed if one has events already and would get another currency."""
    registry = Registry(session)
    registry.stores()
    changed = {store.id for store in stores if registry.currency_of(store.id) != store.currency}
    with_events = _with_events(settings, changed)
    if with_events:
        store = min(with_events)
        message = f"store `{store}` has events in {registry.currency_of(store).code}, so its currency cannot change"
        raise CurrencyFixed(message, do="keep `currency` as it was; nothing of the file was registered")
    registry.save(stores)


def _with_events(settings: "Settings", stores: set[str]) -> set[str]:
    """Those of these stores that have events in the master dataset."""
    found: set[str] = set()
    for topic in registered_sources() if stores else ():
        path = MasterTables(settings.master_uri).path(topic)
        if DeltaTable.is_deltatable(path):
            dataset = DeltaTable(path).to_pyarrow_dataset()
            for batch in dataset.scanner(columns=["store"], filter=pc.field("store").isin(sorted(stores))).to_batches():
                found.update(pc.unique(batch["store"]).to_pylist())
    return found
