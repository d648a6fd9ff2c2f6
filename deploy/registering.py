"""Registers stores, and refuses what would make the numbers of the past mean something else."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.delta.dataset import opened
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import CurrencyFixed, DayFixed, OperatorError
from master_dataset.registry.registry import Registry
from master_dataset.registry.stores import Store
from master_dataset.registry.terms import Terms
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings


def register(settings: "Settings", session: "Session", stores: Sequence[Store]) -> None:
    """Save the stores. CurrencyFixed, DayFixed if one has events already that were read with other terms."""
    registry = Registry(session)
    registry.stores()
    known = {store.id: registry.terms_of(store.id) for store in stores}
    changed = {store.id for store in stores if known[store.id].currency != store.currency}
    for store in sorted(_with_events(settings, changed, registered_sources())):
        message = f"store `{store}` has events in {known[store].currency.code}, so its currency cannot change"
        raise CurrencyFixed(message, do="keep `currency` as it was; nothing of the file was registered")
    moved = {store.id for store in stores if _day(known[store.id]) != _day(store.terms)}
    for store in sorted(_with_events(settings, moved, (WIFI_SIGHTINGS.topic,))):
        message = f"store `{store}` has sightings whose business days begin at {' '.join(_day(known[store]))}"
        raise DayFixed(message, do="keep `timezone` and `day_starts_at`; nothing of the file was registered")
    registry.save(stores)


def restore(settings: "Settings", session: "Session", stores: Sequence[Store]) -> None:
    """Save the stores as they were, where all of the registry is lost: their events were read with these terms.

    OperatorError if stores are registered, CurrencyFixed if a store has receipts in another currency.
    """
    registry = Registry(session)
    if registry.stores():
        message = "stores are registered, so there is no lost registry to restore"
        raise OperatorError(message, do="galatea stores load, without --restore")
    own = {store.id: store.currency.code for store in stores}
    for store, currency in sorted(_currencies(settings, own)):
        if currency != own[store]:
            message = f"store `{store}` has events in {currency}, so its currency is not {own[store]}"
            raise CurrencyFixed(message, do="give `currency` as it was; nothing of the file was registered")
    registry.save(stores)


def _currencies(settings: "Settings", stores: Iterable[str]) -> set[tuple[str, str]]:
    """In which currencies these stores have receipts."""
    path = MasterTables(settings.master_uri).path(POS_TRANSACTIONS.topic)
    found: set[tuple[str, str]] = set()
    if DeltaTable.is_deltatable(path):
        wanted = pc.field("store").isin(sorted(stores))
        for batch in opened(DeltaTable(path)).scanner(columns=["store", "currency"], filter=wanted).to_batches():
            pairs = pa.Table.from_batches([batch]).group_by(["store", "currency"]).aggregate([])
            found.update((each["store"], each["currency"]) for each in pairs.to_pylist())
    return found


def _day(terms: Terms) -> tuple[str, str]:
    return f"{terms.day_starts_at:%H:%M}", terms.timezone


def _with_events(settings: "Settings", stores: set[str], topics: Iterable[str]) -> set[str]:
    """Those of these stores that have events of these topics in the master dataset."""
    found: set[str] = set()
    for topic in topics if stores else ():
        path = MasterTables(settings.master_uri).path(topic)
        if DeltaTable.is_deltatable(path):
            dataset = opened(DeltaTable(path))
            for batch in dataset.scanner(columns=["store"], filter=pc.field("store").isin(sorted(stores))).to_batches():
                found.update(pc.unique(batch["store"]).to_pylist())
    return found
