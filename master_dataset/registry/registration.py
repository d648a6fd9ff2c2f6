"""Registers stores, and refuses changes that would alter the meaning of past numbers."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.delta.dataset import arrow_dataset, scan
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import (
    CassandraUnavailableError,
    CurrencyFixedError,
    DayFixedError,
    OperatorError,
    StoresChangedError,
    UnknownNameError,
)
from master_dataset.parsing.results import UNIX_EPOCH
from master_dataset.registry.registry import Registry, wait_for
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms, business_date
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from master_dataset.storage import is_table, open_table

if TYPE_CHECKING:
    from cassandra.cluster import Session

_MILLISECOND = timedelta(milliseconds=1)
UNDO_SECONDS = 60.0
"""For how long a load that is refused tries to undo what it has registered: another one may not be complete."""
_PAUSE_SECONDS = 0.5


def _nothing_was_sent() -> None:
    """No record waits for the archive."""


def register(
    master_uri: str,
    session: "Session",
    stores: Sequence[Store],
    archived: Callable[[], None] = _nothing_was_sent,
    *,
    skew: timedelta,
) -> datetime | None:
    """Save the stores. Returns when every reader knows them.

    Args:
        master_uri: Root of the master dataset, where the events of a store are looked for.
        session: Cassandra, with Galatea's keyspace.
        stores: The stores as they should be.
        archived: Waits until the archive has read everything that was sent before the call. By default the caller has
            sent nothing. It is called only if records will be read in another way.
        skew: How far the clocks of brokers and of this machine may differ.

    Returns:
        From when on received records are read in another way; None: they are read as before.

    Raises:
        CurrencyFixedError: A store has events in another currency; one that is not registered: receipts.
        DayFixedError: A store has sightings that were assigned to other business days; one that is registered: it has
            sightings, and its days would begin at another time.
        StoresChangedError, CassandraUnavailableError: See `Registry.save`.
        GalateaError: What `archived` raises.

        OperatorError: It was refused, and could not be undone.

    After all others, the stores are as they were before, unless Cassandra does not answer.
    """
    if _read_otherwise(stores, Registry(session).settled()):
        archived()
    registry = Registry(session)  # the wait may have been long
    registered = dict(registry.settled())
    changed = _read_otherwise(stores, registered)
    _check_registered(master_uri, [(registered[store.id], store) for store in stores if store.id in registered])
    unregistered = [store for store in stores if store.id not in registered]
    _check_currencies(master_uri, unregistered)
    _check_days(master_uri, unregistered)
    change = registry.switch(Edit(stores), skew, on=registry.version)
    try:
        wait_for(change, skew)
        if change is not None:
            archived()
            _check_currencies(master_uri, [now for was, now in changed if was.currency != now.currency])
            _check_days(master_uri, [now for was, now in changed if _day(was) != _day(now.terms)])
    except (CurrencyFixedError, DayFixedError) as error:
        _undo(session, stores, registered, skew, error)
        do = "stop the senders of the store and give it another id: until the load was undone, records were read by it"
        raise type(error)(error.message, do=do) from None
    except BaseException as error:
        _undo(session, stores, registered, skew, error)
        raise
    return change.at if change else None


def _read_otherwise(stores: Sequence[Store], registered: Mapping[str, Store]) -> Sequence[tuple[Terms, Store]]:
    """The stores whose records will be read in another way, each with its former terms."""
    former = [registered[store.id].terms if store.id in registered else DEFAULT_TERMS for store in stores]
    return [(was, store) for was, store in zip(former, stores, strict=True) if was != store.terms]


def _undo(
    session: "Session", stores: Sequence[Store], registered: Mapping[str, Store], skew: timedelta, why: BaseException
) -> None:
    """Register stores as they were, unless another load has changed them since. It may have to wait for that one.

    OperatorError if that is not possible.
    """
    deadline = time.monotonic() + UNDO_SECONDS
    while True:
        try:
            registry = Registry(session)
            now = registry.settled()
            own = [store.id for store in stores if now.get(store.id) == store]
            before = [registered[id_] for id_ in own if id_ in registered]
            removed = [id_ for id_ in own if id_ not in registered]
            registry.save(Edit(before, removed), skew, on=registry.version)
        except (StoresChangedError, CassandraUnavailableError) as error:
            if time.monotonic() > deadline:
                message = f"{why}; the load could not be undone ({error.message}), so the stores are as in the file"
                raise OperatorError(message, do="load the stores as they were before") from why
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def restore(
    master_uri: str, session: "Session", stores: Sequence[Store], *, skew: timedelta, replaces: bool
) -> datetime | None:
    """Save stores as they were, after the registry or a part of it was lost: their events were read with these terms.

    So are records that Kafka still has, unless a change of the store is known. `skew`, and what is returned: as of
    `register`. `replaces`: stores that are registered in another way are replaced, which is right after a backup was
    restored, as long as no record has been read since.

    Raises:
        OperatorError: One of them is registered in another way, so it is not lost.
        CurrencyFixedError: A lost store has receipts in another currency.
    """
    registry = Registry(session)
    registered = registry.settled()
    lost = [store for store in stores if registered.get(store.id) != store]
    for store in lost:
        if store.id in registered and not replaces:
            message = f"store `{store.id}` is registered, and not as in the file, so it is not lost"
            do = "galatea stores load, without --restore; after `galatea restore`: stop archive and speed layer first"
            raise OperatorError(message, do=do)
    _check_currencies(master_uri, lost)
    return registry.save(Edit(lost, are_lost=True), skew, on=registry.version)


def _check_registered(master_uri: str, changes: Sequence[tuple[Store, Store]]) -> None:
    """Refuse changes of currencies and days from the first store to the second, if its events were read with these."""
    changed = {now.id: before for before, now in changes if before.currency != now.currency}
    for store in sorted(_with_events(master_uri, set(changed), registered_sources())):
        message = f"store `{store}` has events in {changed[store].currency.code}, so its currency cannot change"
        raise CurrencyFixedError(message, do="keep `currency` as it was; nothing of the file was registered")
    moved = {now.id: before for before, now in changes if _day(before.terms) != _day(now.terms)}
    for store in sorted(_with_events(master_uri, set(moved), (WIFI_SIGHTINGS.topic,))):
        message = f"store `{store}` has sightings whose business days begin at {_day(moved[store].terms)}"
        raise DayFixedError(message, do="keep `timezone` and `day_starts_at`; nothing of the file was registered")


def _check_currencies(master_uri: str, unregistered: Sequence[Store]) -> None:
    """Compare with receipts: they may be from before a store was removed, or lost, and from afterwards."""
    own = {store.id: store.currency.code for store in unregistered}
    found: set[tuple[str, str]] = set()
    for batch in _batches(master_uri, POS_TRANSACTIONS.topic, own, ("store", "currency")):
        pairs = batch.group_by(["store", "currency"]).aggregate([])
        found.update((each["store"], each["currency"]) for each in pairs.to_pylist())
    for id_, currency in sorted(found):
        if currency != own[id_]:
            message = f"store `{id_}` has events in {currency}, so its currency is not {own[id_]}"
            do = "give the currency of its events, or another id; nothing of the file was registered"
            raise CurrencyFixedError(message, do=do)


def _check_days(master_uri: str, unregistered: Sequence[Store]) -> None:
    """Compare with the business days of sightings. The first and last of a day are enough: days have no gaps."""
    terms = {store.id: store.terms for store in unregistered}
    days, at = ["store", "business_day"], "happened_at"
    for batch in _batches(master_uri, WIFI_SIGHTINGS.topic, terms, (*days, at)):
        for row in batch.group_by(days).aggregate([(at, "min"), (at, "max")]).to_pylist():
            store, day = row["store"], row["business_day"]
            for seen in (row[f"{at}_min"], row[f"{at}_max"]):
                if (other := terms[store].business_day((seen - UNIX_EPOCH) // _MILLISECOND)) != day:
                    was = (
                        f"store `{store}` has a sighting at {seen:%Y-%m-%dT%H:%MZ} of business day {business_date(day)}"
                    )
                    message = f"{was}; with days from {_day(terms[store])} it would be of {business_date(other)}"
                    do = "give `timezone` and `day_starts_at` as its sightings were read, or another id"
                    raise DayFixedError(message, do=f"{do}; nothing of the file was registered")


def remove(session: "Session", stores: Sequence[str], *, skew: timedelta) -> datetime | None:
    """Remove stores from the registry. Their events stay, as those of stores that were never registered.

    `skew`, and what is returned: as of `register`.

    Raises:
        UnknownNameError: One of them is not registered; none is removed.
    """
    registry = Registry(session)
    known = registry.settled()
    for store in stores:
        if store not in known:
            raise UnknownNameError("store", store, known)
    return registry.save(Edit(removed=stores), skew, on=registry.version)


def stores_with_events(master_uri: str, stores: Iterable[str]) -> set[str]:
    """Find which of these stores have events of any source in the master dataset."""
    return _with_events(master_uri, set(stores), registered_sources())


def _day(terms: Terms) -> str:
    return f"{terms.day_starts_at:%H:%M} {terms.timezone}"


def _with_events(master_uri: str, stores: set[str], topics: Iterable[str]) -> set[str]:
    """Find which of these stores have events of these topics in the master dataset."""
    found: set[str] = set()
    for topic in topics:
        for batch in _batches(master_uri, topic, stores, ("store",)):
            found.update(pc.unique(batch["store"]).to_pylist())
    return found


def _batches(master_uri: str, topic: str, stores: Collection[str], columns: Sequence[str]) -> Iterator[pa.Table]:
    """These columns of the events of these stores, a part at a time."""
    path = MasterTables(master_uri).path(topic)
    if stores and is_table(path):
        wanted = pc.field("store").isin(sorted(stores))
        for batch in scan(arrow_dataset(open_table(path)), columns, wanted).to_batches():
            yield pa.Table.from_batches([batch])
