"""Stores are loaded in versions: all of a file or nothing of it, whatever stops the load."""

import pytest

from master_dataset.errors import StoresChangedError, UnknownNameError
from master_dataset.registry.registration import remove
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit, StoreTables
from master_dataset.registry.stores import Store
from tests.support.registry_tables import RegistryTables, know_at_once
from tests.support.terms import ONE_CLOCK

BEFORE, OTHER = Store("1", "UTC", tenant="acme"), Store("2", "UTC", tenant="other")
CHANGED, NEW = Store("1", "UTC", tenant="acme", name="Kosice"), Store("3", "UTC", tenant="acme")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    know_at_once(monkeypatch)


@pytest.fixture
def tables() -> RegistryTables:
    """Two stores, which the release before has registered."""
    return RegistryTables(BEFORE, OTHER)


def registered(tables: RegistryTables) -> dict[str, Store]:
    """What a process reads that starts now."""
    return dict(Registry(tables).stores())


def save(tables: RegistryTables, *stores: Store) -> None:
    Registry(tables).save(Edit(stores), ONE_CLOCK)


def test_a_load_adds_and_changes_stores_and_the_others_stay(tables: RegistryTables) -> None:
    save(tables, CHANGED, NEW)

    assert registered(tables) == {"1": CHANGED, "2": OTHER, "3": NEW}


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_load_that_is_interrupted_changes_nothing(tables: RegistryTables, row: int) -> None:
    tables.fails_at = row

    with pytest.raises(ConnectionError):
        save(tables, CHANGED, NEW)

    assert registered(tables) == {"1": BEFORE, "2": OTHER}
    assert not any(tables.rows.values())


def test_of_two_loads_at_once_the_later_one_fails_and_leaves_nothing_behind(tables: RegistryTables) -> None:
    tables.meanwhile = lambda: save(tables, NEW)

    with pytest.raises(StoresChangedError, match="Another load has changed the registered stores"):
        save(tables, CHANGED)

    assert registered(tables) == {"1": BEFORE, "2": OTHER, "3": NEW}
    assert len(tables.rows["registered_stores"]) == 1


def test_a_reader_sees_each_load_and_never_a_part_of_one(tables: RegistryTables) -> None:
    reader = Registry(tables)
    versions = [StoreTables(tables).version()]
    for store in (CHANGED, NEW):
        save(tables, store)
        assert reader.stores()[store.id] == store
        versions.append(StoreTables(tables).version())

    assert len(set(versions)) == 3


def test_a_removed_store_is_as_one_that_was_never_registered(tables: RegistryTables) -> None:
    remove(tables, ["1"], skew=ONE_CLOCK)

    assert registered(tables) == {"2": OTHER}


def test_of_stores_to_remove_each_has_to_be_registered(tables: RegistryTables) -> None:
    with pytest.raises(UnknownNameError, match="There is no store `9`"):
        remove(tables, ["1", "9"], skew=ONE_CLOCK)

    assert registered(tables) == {"1": BEFORE, "2": OTHER}
