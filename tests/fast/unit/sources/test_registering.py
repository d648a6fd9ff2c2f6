"""A store with events keeps its currency, and one with sightings the beginning of its days."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from master_dataset.errors import (
    CurrencyFixedError,
    CutNotReachedError,
    DayFixedError,
    OperatorError,
    StoresChangedError,
)
from master_dataset.registry import registration
from master_dataset.registry.registration import register, restore
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit, StoreTables
from master_dataset.registry.stores import Currency, Sensor, Store
from tests.support.registry_tables import RegistryTables, know_at_once
from tests.support.terms import ONE_CLOCK

BEFORE = Store("1", "Europe/Bratislava")
CZK = Currency("CZK", 2)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    know_at_once(monkeypatch)


def loaded(master: Path, store: Store) -> Store:
    """Register it where `BEFORE` is registered, and say what is then."""
    kept: Any = RegistryTables(BEFORE)
    register(str(master), kept, [store], skew=ONE_CLOCK)
    return Store.from_json(kept.bodies[store.id])


def events(master: Path, topic: str, *stores: str) -> None:
    at = [datetime(1970, 1, 1, tzinfo=UTC)] * len(stores)
    write_deltalake(
        str(master / topic), pa.table({"store": stores, "business_day": [0] * len(stores), "happened_at": at})
    )


@pytest.mark.parametrize("topic", ["pos_transactions", "people_counts"])
def test_the_currency_of_a_store_with_events_of_any_source_is_fixed(topic: str, tmp_path: Path) -> None:
    events(tmp_path, topic, "2", "1")

    with pytest.raises(CurrencyFixedError, match="store `1` has events in EUR"):
        loaded(tmp_path, Store("1", "Europe/Bratislava", currency=CZK))


@pytest.mark.parametrize(
    "moved", [Store("1", "Europe/Bratislava", day_starts_at="04:00"), Store("1", "America/New_York")]
)
def test_the_days_of_a_store_with_sightings_are_fixed(moved: Store, tmp_path: Path) -> None:
    events(tmp_path, "wifi_sightings", "1")

    with pytest.raises(DayFixedError, match="begin at 00:00 Europe/Bratislava"):
        loaded(tmp_path, moved)


@pytest.mark.parametrize(
    ("topic", "store"),
    [
        ("pos_transactions", Store("1", "America/New_York", day_starts_at="04:00")),  # receipts have no days
        ("wifi_sightings", Store("1", "Europe/Bratislava", sensors=(Sensor("ap-2", "wifi_sightings"),))),
        ("wifi_sightings", Store("2", "Asia/Tokyo", currency=CZK)),
        ("wifi_sightings", Store("1", "Europe/Bratislava", name="Corner", closed_on=())),
    ],
)
def test_whatever_no_event_was_read_with_may_change(topic: str, store: Store, tmp_path: Path) -> None:
    events(tmp_path, topic, "1")

    assert loaded(tmp_path, store) == store


def test_a_store_without_events_may_change_altogether(tmp_path: Path) -> None:
    events(tmp_path, "wifi_sightings", "3")
    store = Store("1", "Asia/Tokyo", currency=CZK, day_starts_at="05:00")

    assert loaded(tmp_path, store) == store


POS = "pos_transactions"
KNOWN = Store("1", "UTC")
CUT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sold_meanwhile(master: Path, at_call: int, *currencies: str) -> Callable[[], None]:
    """An archive that has receipts of store 1, received at the cut, from that wait on."""
    calls: list[int] = []

    def archived() -> None:
        calls.append(1)
        if len(calls) == at_call:
            rows = {"store": ["1"] * len(currencies), "currency": currencies}
            write_deltalake(str(master / POS), pa.table({**rows, "received_at": [CUT] * len(currencies)}))

    return archived


def changed(master: Path, kept: Any, archived: Callable[[], None]) -> None:
    """A load that gives store 1 another currency."""
    register(str(master), kept, [replace(KNOWN, currency=CZK)], archived, skew=ONE_CLOCK)


def test_receipts_that_wait_for_the_archive_fix_the_currency(tmp_path: Path) -> None:
    kept: Any = RegistryTables(KNOWN)

    with pytest.raises(CurrencyFixedError, match="store `1` has events in EUR, so its currency cannot change"):
        register(
            str(tmp_path), kept, [replace(KNOWN, currency=CZK)], sold_meanwhile(tmp_path, 1, "EUR"), skew=ONE_CLOCK
        )

    assert Store.from_json(kept.bodies["1"]) == KNOWN


@pytest.mark.parametrize("before", [(KNOWN,), ()])
def test_a_currency_that_receipts_fixed_while_it_was_changed_stays(before: tuple[Store, ...], tmp_path: Path) -> None:
    kept: Any = RegistryTables(*before)

    with pytest.raises(CurrencyFixedError, match="store `1` has events in EUR, so its currency is not CZK") as refused:
        register(
            str(tmp_path),
            kept,
            [replace(KNOWN, currency=CZK)],
            sold_meanwhile(tmp_path, 2, "CZK", "EUR"),
            skew=ONE_CLOCK,
        )

    assert [Store.from_json(each) for each in kept.bodies.values()] == list(before)
    assert "give it another id: until the load was undone, records were read by it" in refused.value.do


def test_a_load_that_cannot_be_checked_is_undone(tmp_path: Path) -> None:
    kept: Any = RegistryTables(KNOWN)
    calls: list[int] = []

    def archived() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise CutNotReachedError("the archive has read ...", do="galatea status")

    with pytest.raises(CutNotReachedError):
        changed(tmp_path, kept, archived)

    assert Store.from_json(kept.bodies["1"]) == KNOWN


def test_a_refused_load_waits_for_another_one_to_be_undone(tmp_path: Path) -> None:
    kept: Any = RegistryTables(KNOWN)
    sold, calls = sold_meanwhile(tmp_path, 2, "CZK", "EUR"), list[int]()

    def archived() -> None:
        sold()
        calls.append(1)
        if len(calls) == 2:  # another load has switched, and will not confirm: it was killed
            StoreTables(kept).load(Edit([Store("2", "Asia/Tokyo")]), lead=timedelta(milliseconds=300))

    with pytest.raises(CurrencyFixedError, match="has events in EUR"):
        changed(tmp_path, kept, archived)

    assert kept.bodies == {"1": KNOWN.to_json()}


def test_a_refused_load_that_cannot_be_undone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "UNDO_SECONDS", 0.1)
    kept: Any = RegistryTables(KNOWN)
    sold, calls = sold_meanwhile(tmp_path, 2, "CZK", "EUR"), list[int]()

    def archived() -> None:
        sold()
        calls.append(1)
        if len(calls) == 2:
            StoreTables(kept).load(Edit([Store("2", "Asia/Tokyo")]), lead=timedelta(seconds=9))

    with pytest.raises(OperatorError, match=r"has events in EUR.* could not be undone \(Another load of stores is not"):
        changed(tmp_path, kept, archived)


def test_a_load_that_is_interrupted_while_it_waits_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Any = RegistryTables(KNOWN)

    def interrupted(_seconds: float) -> None:
        monkeypatch.undo()
        know_at_once(monkeypatch)
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)

    with pytest.raises(KeyboardInterrupt):
        changed(tmp_path, kept, lambda: None)

    assert kept.bodies == {"1": KNOWN.to_json()}


def test_a_load_that_was_checked_with_other_stores_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one has given the store another currency while receipts were looked for."""
    kept: Any = RegistryTables(KNOWN)
    jpy = replace(KNOWN, currency=Currency("JPY", 0))
    monkeypatch.setattr(registration, "_check_currencies", lambda *_: Registry(kept).save(Edit([jpy]), ONE_CLOCK))

    with pytest.raises(StoresChangedError):
        changed(tmp_path, kept, lambda: None)

    assert kept.bodies == {"1": jpy.to_json()}


def test_a_suspended_load_is_not_tried_again_over_a_newer_one(tmp_path: Path) -> None:
    kept: Any = RegistryTables(KNOWN)
    jpy = replace(KNOWN, currency=Currency("JPY", 0))

    def suspended(query: str) -> None:
        if query.startswith("UPDATE registry_changes"):
            kept.before = lambda _: None
            time.sleep(0.2)  # until its instant is over, so that the other one rejects it
            Registry(kept).save(Edit([jpy]), ONE_CLOCK)

    kept.before = suspended

    with pytest.raises(StoresChangedError):
        changed(tmp_path, kept, lambda: None)

    assert kept.bodies == {"1": jpy.to_json()}


def test_nobody_waits_for_the_archive_where_records_are_read_as_before(tmp_path: Path) -> None:
    kept: Any = RegistryTables(KNOWN)

    register(
        str(tmp_path),
        kept,
        [replace(KNOWN, name="Corner"), Store("2", "UTC")],
        sold_meanwhile(tmp_path, 1),
        skew=ONE_CLOCK,
    )

    assert not (tmp_path / POS).exists()


JPY = Currency("JPY", 0)


def removed(master: Path, store: Store) -> Store:
    """Register it where no store is registered, and say what is then."""
    kept: Any = RegistryTables()
    register(str(master), kept, [store], skew=ONE_CLOCK)
    return Store.from_json(kept.bodies[store.id])


def sold(master: Path, *currencies: str) -> None:
    """Receipts of store 7."""
    write_deltalake(
        str(master / "pos_transactions"), pa.table({"store": ["7"] * len(currencies), "currency": currencies})
    )


@pytest.mark.parametrize("currencies", [("JPY",), ("JPY", "EUR"), ("EUR", "JPY")])
def test_a_store_that_was_removed_does_not_come_back_with_another_currency(
    currencies: tuple[str, ...], tmp_path: Path
) -> None:
    sold(tmp_path, *currencies)

    with pytest.raises(CurrencyFixedError, match="store `7` has events in JPY, so its currency is not EUR"):
        removed(tmp_path, Store("7", "Asia/Tokyo"))


@pytest.mark.parametrize("own", [JPY, Currency("EUR", 2)])
def test_a_store_that_is_not_registered_may_have_the_currency_of_its_receipts(own: Currency, tmp_path: Path) -> None:
    sold(tmp_path, own.code)
    events(tmp_path, "people_counts", "7")
    store = Store("7", "Asia/Tokyo", currency=own)

    assert removed(tmp_path, store) == store


SEEN = (datetime(2026, 3, 6, 15, tzinfo=UTC), datetime(2026, 3, 6, 22, tzinfo=UTC))
"""On 2026-03-07 in Tokyo, from its midnight on."""


@pytest.fixture
def sightings(tmp_path: Path) -> Path:
    """Of store 7, as they were read while it was in Tokyo."""
    day = (date(2026, 3, 7) - date(1970, 1, 1)).days
    columns = {"store": ["7", "7", "8"], "business_day": [day, day, 0], "happened_at": [*SEEN, SEEN[0]]}
    write_deltalake(str(tmp_path / "wifi_sightings"), pa.table(columns))
    return tmp_path


@pytest.mark.parametrize("moved", [Store("7", "UTC"), Store("7", "Asia/Tokyo", day_starts_at="00:15")])
def test_a_store_that_was_removed_does_not_come_back_with_other_days(moved: Store, sightings: Path) -> None:
    said = "store `7` has a sighting at 2026-03-06T15:00Z of business day 2026-03-07; with days from .* of 2026-03-06"
    with pytest.raises(DayFixedError, match=said):
        removed(sightings, moved)


@pytest.mark.parametrize("same", [Store("7", "Asia/Tokyo"), Store("7", "Asia/Seoul")])
def test_a_store_that_is_not_registered_may_have_the_days_of_its_sightings(same: Store, sightings: Path) -> None:
    assert removed(sightings, same) == same


def restored(master: Path, kept: Any, *stores: Store) -> Any:
    restore(str(master), kept, stores, skew=ONE_CLOCK, replaces=False)
    return kept.bodies


@pytest.fixture
def receipts(tmp_path: Path) -> Path:
    """Of store 1 in Czech crowns; store 2 has sightings."""
    sold = pa.table({"store": ["1", "1"], "currency": ["CZK", "CZK"]})
    write_deltalake(str(tmp_path / "pos_transactions"), sold)
    events(tmp_path, "wifi_sightings", "2")
    return tmp_path


def test_a_lost_registry_is_restored_as_events_were_read(receipts: Path) -> None:
    stores = (Store("1", "Europe/Prague", currency=CZK), Store("2", "Asia/Tokyo", day_starts_at="04:00"))

    bodies = restored(receipts, RegistryTables(), *stores)

    assert bodies == {store.id: store.to_json() for store in stores}


def test_a_lost_registry_is_not_restored_with_another_currency_than_receipts_have(receipts: Path) -> None:
    kept = RegistryTables()

    with pytest.raises(CurrencyFixedError, match="store `1` has events in CZK, so its currency is not EUR"):
        restored(receipts, kept, Store("1", "Europe/Prague"))

    assert kept.bodies == {}


def test_a_registry_that_is_there_is_not_restored(receipts: Path) -> None:
    with pytest.raises(OperatorError, match="store `1` is registered, and not as in the file"):
        restored(receipts, RegistryTables(BEFORE), Store("1", "Europe/Prague", currency=CZK))


def test_a_restored_registry_takes_stores_as_they_were_changed_since_before_anything_is_read(tmp_path: Path) -> None:
    kept: Any = RegistryTables(BEFORE)
    changed_since = replace(BEFORE, sensors=(Sensor("cam-1", "people_counts"),))

    begins_at = restore(str(tmp_path), kept, [changed_since], skew=ONE_CLOCK, replaces=True)

    assert begins_at is None  # what Kafka still has is read like that, too
    assert kept.bodies == {"1": changed_since.to_json()}


def test_stores_that_a_restored_registry_lacks_are_restored_beside_the_others(receipts: Path) -> None:
    """They were loaded after the backup, and have events in their currency, with which `load` would not take them."""
    lost = Store("1", "Europe/Prague", currency=CZK)
    kept = Store("2", "Asia/Tokyo", day_starts_at="04:00")

    bodies = restored(receipts, RegistryTables(kept), lost, kept)

    assert bodies == {store.id: store.to_json() for store in (lost, kept)}
