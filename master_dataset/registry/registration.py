"""Registers stores, and refuses changes that would alter the meaning of past numbers."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.delta.dataset import arrow_dataset
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import CurrencyFixedError, DayFixedError, OperatorError, UnknownNameError
from master_dataset.registry.registry import Registry
from master_dataset.registry.stores import Store, Terms
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from master_dataset.storage import is_table, open_table

if TYPE_CHECKING:
    from cassandra.cluster import Session


def register(master_uri: str, session: "Session", stores: Sequence[Store]) -> None:
    """Save the stores.

    Args:
        master_uri: Root of the master dataset, where the events of a store are looked for.
        session: Cassandra, with Galatea's keyspace.
        stores: The stores as they should be.

    Raises:
        CurrencyFixedError: A store has events in another currency.
        DayFixedError: A store has sightings that were assigned to other business days.
    """
    registry = Registry(session)
    registry.stores()
    known = {store.id: registry.terms_of(store.id) for store in stores}
    changed = {store.id for store in stores if known[store.id].currency != store.currency}
    for store in sorted(_with_events(master_uri, changed, registered_sources())):
        message = f"store `{store}` has events in {known[store].currency.code}, so its currency cannot change"
        raise CurrencyFixedError(message, do="keep `currency` as it was; nothing of the file was registered")
    moved = {store.id for store in stores if _day(known[store.id]) != _day(store.terms)}
    for store in sorted(_with_events(master_uri, moved, (WIFI_SIGHTINGS.topic,))):
        message = f"store `{store}` has sightings whose business days begin at {' '.join(_day(known[store]))}"
        raise DayFixedError(message, do="keep `timezone` and `day_starts_at`; nothing of the file was registered")
    registry.save(stores)


def restore(master_uri: str, session: "Session", stores: Sequence[Store]) -> None:
    """Save stores as they were, after the registry or a part of it was lost: their events were read with these terms.

    Raises:
        OperatorError: One of them is registered in another way, so it is not lost.
        CurrencyFixedError: A lost store has receipts in another currency.
    """
    registry = Registry(session)
    registered = registry.stores()
    lost = [store for store in stores if store.id not in registered]
    for store in stores:
        if store.id in registered and registered[store.id] != store:
            message = f"store `{store.id}` is registered, and not as in the file, so it is not lost"
            raise OperatorError(message, do="galatea stores load, without --restore")
    own = {store.id: store.currency.code for store in lost}
    for id_, currency in sorted(_currencies(master_uri, own)):
        if currency != own[id_]:
            message = f"store `{id_}` has events in {currency}, so its currency is not {own[id_]}"
            raise CurrencyFixedError(message, do="give `currency` as it was; nothing of the file was registered")
    registry.save(lost)


def remove(session: "Session", stores: Sequence[str]) -> None:
    """Remove stores from the registry. Their events stay, as those of stores that were never registered.

    Raises:
        UnknownNameError: One of them is not registered; none is removed.
    """
    registry = Registry(session)
    known = registry.stores()
    for store in stores:
        if store not in known:
            raise UnknownNameError("store", store, known)
    registry.save((), removed=stores)


def stores_with_events(master_uri: str, stores: Iterable[str]) -> set[str]:
    """Find which of these stores have events of any source in the master dataset."""
    return _with_events(master_uri, set(stores), registered_sources())


def _currencies(master_uri: str, stores: Iterable[str]) -> set[tuple[str, str]]:
    """Find the (store, currency) pairs of these stores' receipts."""
    path = MasterTables(master_uri).path(POS_TRANSACTIONS.topic)
    found: set[tuple[str, str]] = set()
    if is_table(path):
        wanted = pc.field("store").isin(sorted(stores))
        for batch in arrow_dataset(open_table(path)).scanner(columns=["store", "currency"], filter=wanted).to_batches():
            pairs = pa.Table.from_batches([batch]).group_by(["store", "currency"]).aggregate([])
            found.update((each["store"], each["currency"]) for each in pairs.to_pylist())
    return found


def _day(terms: Terms) -> tuple[str, str]:
    return f"{terms.day_starts_at:%H:%M}", terms.timezone


def _with_events(master_uri: str, stores: set[str], topics: Iterable[str]) -> set[str]:
    """Find which of these stores have events of these topics in the master dataset."""
    found: set[str] = set()
    for topic in topics if stores else ():
        path = MasterTables(master_uri).path(topic)
        if is_table(path):
            dataset = arrow_dataset(open_table(path))
            for batch in dataset.scanner(columns=["store"], filter=pc.field("store").isin(sorted(stores))).to_batches():
                found.update(pc.unique(batch["store"]).to_pylist())
    return found
