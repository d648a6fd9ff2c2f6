"""Records are read by what was registered when they were received, whoever reads them, and however late (ADR 0083)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from master_dataset.errors import CassandraUnavailableError, StoresChangedError
from master_dataset.registry import registry
from master_dataset.registry.registration import register, remove, restore
from master_dataset.registry.registry import Change, Registry, StoreTables, store_terms
from master_dataset.registry.stores import DEFAULT_TERMS, Currency, Sensor, Store, Terms
from master_dataset.registry.terms_history import FormerTerms, TermsHistory, microseconds
from tests.support.registry_tables import RegistryTables, know_at_once

CZK, JPY = Currency("CZK", 2), Currency("JPY", 0)
STORE = Store("1", "Europe/Prague", currency=CZK)
WITH_SENSOR = replace(STORE, sensors=(Sensor("cam-1", "people_counts"),))
T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)
ONE_MS = timedelta(milliseconds=1)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    know_at_once(monkeypatch)
    monkeypatch.setattr(registry, "_registries", {})


def terms(code: str) -> Terms:
    return Terms(Currency(code, 2))


def read_at(tables: Any, instant: datetime, store: str = "1") -> Terms:
    """How a task that begins now reads a record that was received at that time."""
    us = microseconds(instant)
    return store_terms(lambda: tables)(us).at(us)(store)


def test_each_record_is_read_by_the_terms_of_its_time() -> None:
    former = [FormerTerms("1", T0 + timedelta(hours=1), terms("SEK")), FormerTerms("1", T0, terms("NOK"))]
    history = TermsHistory({"1": terms("DKK"), "2": terms("PLN")}, [*former, FormerTerms("3", T0, terms("CHF"))])

    def read(store: str, *minutes: int) -> list[str]:
        return [history.at(microseconds(T0 + timedelta(minutes=each)))(store).currency.code for each in minutes]

    assert read("1", -1, 0, 59, 60, 61) == ["NOK", "SEK", "SEK", "DKK", "DKK"]
    assert read("2", -1, 0, 60) == ["PLN", "PLN", "PLN"]
    assert read("3", -1, 0, 60) == ["CHF", "EUR", "EUR"]  # it was removed


@pytest.mark.parametrize(("first", "last", "is_steady"), [(-2, -1, True), (-1, 0, False), (0, 1, True), (-1, 1, False)])
def test_records_are_read_alike_unless_a_change_lies_between(first: int, last: int, *, is_steady: bool) -> None:
    history = TermsHistory({}, [FormerTerms("1", T0, terms("NOK"))])

    assert history.is_steady(microseconds(T0) + first, microseconds(T0) + last) is is_steady


def test_a_change_counts_for_records_that_are_received_from_then_on() -> None:
    tables: Any = RegistryTables()
    first = Registry(tables).save([STORE])
    second = Registry(tables).save([WITH_SENSOR])
    removed = Registry(tables).save((), removed=["1"])
    assert first
    assert second
    assert removed

    found = [read_at(tables, each) for at in (first, second, removed) for each in (at - ONE_MS, at)]

    own, with_sensor = STORE.terms, WITH_SENSOR.terms
    assert found == [DEFAULT_TERMS, own, own, with_sensor, with_sensor, DEFAULT_TERMS]


def test_a_change_lies_ahead_by_the_skew_and_its_load_ends_when_it_has_begun_everywhere() -> None:
    tables: Any = RegistryTables()
    skew, before = timedelta(milliseconds=200), datetime.now(UTC)

    begins_at = Registry(tables).save([STORE], skew=skew)

    assert begins_at
    assert begins_at >= before + skew
    assert datetime.now(UTC) >= begins_at + skew


@pytest.mark.parametrize("same", [replace(STORE, name="Corner"), replace(STORE, floor_m2=80)])
def test_what_no_record_is_read_by_is_no_change(same: Store) -> None:
    tables: Any = RegistryTables(STORE)

    assert Registry(tables).save([same]) is None
    assert read_at(tables, T0) == STORE.terms
    assert tables.changes == {}


def test_a_reader_that_began_before_a_load_reads_later_records_as_one_that_begins_afterwards() -> None:
    """The load was too slow, so that it would count for records that are being read: it gets more time."""
    tables: Any = RegistryTables(STORE)
    reader = store_terms(lambda: tables)
    tables.switch_seconds = 0.06  # more than it has at first

    begins_at = Registry(tables).save([WITH_SENSOR])

    assert begins_at
    assert [each.is_confirmed for each in tables.changes.values()] == [False, True]
    for instant in (begins_at - ONE_MS, begins_at - timedelta(milliseconds=20)):
        us = microseconds(instant)
        assert reader(us).at(us)("1") == read_at(tables, instant) == STORE.terms


def test_a_load_that_is_always_too_slow_changes_nothing_about_how_records_are_read() -> None:
    tables: Any = RegistryTables(STORE)
    tables.switch_seconds = 0.21

    with pytest.raises(CassandraUnavailableError, match=r"took more than 0\.2 s") as refused:
        Registry(tables).save([WITH_SENSOR])

    assert "Load the stores again" in refused.value.do
    assert read_at(tables, datetime.now(UTC) + timedelta(hours=1)) == STORE.terms
    tables.switch_seconds = 0.0
    begins_at = Registry(tables).save([WITH_SENSOR])
    assert begins_at
    assert [read_at(tables, each) for each in (begins_at - ONE_MS, begins_at)] == [STORE.terms, WITH_SENSOR.terms]


def died(tables: Any, store: Store) -> datetime:
    """A load that switched, and was killed before it confirmed."""
    at = datetime.now(UTC).replace(microsecond=0)
    assert StoreTables(tables).load([store], takes_effect_at=at) is not None
    return at


def test_the_first_reader_that_needs_to_know_rejects_a_change_that_nobody_confirmed() -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)

    assert read_at(tables, at - ONE_MS) == STORE.terms
    assert [each.is_confirmed for each in tables.changes.values()] == [None]
    assert read_at(tables, at) == STORE.terms
    assert [each.is_confirmed for each in tables.changes.values()] == [False]
    assert StoreTables(tables).decide(Change(next(iter(tables.changes)), at), confirm=True) is False


def test_a_reader_that_did_not_see_the_confirmation_follows_it() -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)
    reader = store_terms(lambda: tables)
    StoreTables(tables).decide(Change(next(iter(tables.changes)), at), confirm=True)

    us = microseconds(at)

    assert reader(us).at(us)("1") == WITH_SENSOR.terms


def test_a_reader_whose_version_is_gone_reads_the_newest_one() -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)
    reader = store_terms(lambda: tables)
    for name in ("a", "b"):
        Registry(tables).save([replace(WITH_SENSOR, name=name)])

    us = microseconds(at)

    assert reader(us).at(us)("1") == STORE.terms  # the first of these loads rejected the change


def test_a_load_after_one_that_died_counts_from_its_own_time_on(tmp_path: Any) -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)
    waited: list[int] = []

    begins_at = register(str(tmp_path), tables, [WITH_SENSOR], lambda: waited.append(1))

    assert begins_at
    assert begins_at > at
    assert waited == [1, 1]
    assert [read_at(tables, each) for each in (at, begins_at - ONE_MS, begins_at)] == [
        STORE.terms,
        STORE.terms,
        WITH_SENSOR.terms,
    ]


def test_a_load_whose_change_another_one_takes_over_waits_for_that_one() -> None:
    tables: Any = RegistryTables(STORE)
    other = Store("2", "Asia/Tokyo", currency=JPY)
    decide, calls = StoreTables.decide, list[int]()
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1.5)

    class Slow(StoreTables):
        def decide(self, change: Change, *, confirm: bool) -> bool | None:
            calls.append(1)
            if len(calls) == 1:
                later = StoreTables(tables).load([other], takes_effect_at=soon)
                assert later
                assert decide(self, later, confirm=True)
            return decide(self, change, confirm=confirm)

    loading = Registry(tables)
    loading._tables = Slow(tables)  # noqa: SLF001 - between its switch and its confirmation

    begins_at = loading.save([WITH_SENSOR])

    assert begins_at == soon
    assert read_at(tables, soon, "2") == other.terms
    assert [read_at(tables, each) for each in (begins_at - ONE_MS, begins_at)] == [STORE.terms, WITH_SENSOR.terms]


def test_a_lost_store_was_always_registered_unless_a_change_of_it_is_known(tmp_path: Any) -> None:
    tables: Any = RegistryTables(STORE)
    remove(tables, ["1"])
    lost = Store("2", "Asia/Tokyo", currency=JPY)

    restore(str(tmp_path), tables, [STORE, lost])

    assert read_at(tables, T0, "2") == lost.terms
    assert read_at(tables, T0) == STORE.terms
    [_, again] = sorted(each.until for each in StoreTables(tables).read().former)
    assert [read_at(tables, each) for each in (again - ONE_MS, again)] == [DEFAULT_TERMS, STORE.terms]


def test_terms_that_no_record_needs_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: Any = RegistryTables(STORE)
    Registry(tables).save([WITH_SENSOR])
    monkeypatch.setattr(registry, "_REMEMBERED", timedelta(0))

    Registry(tables).save([STORE])

    assert [each.terms for each in StoreTables(tables).read().former] == [WITH_SENSOR.terms]


def test_a_version_of_which_terms_are_missing_is_not_read() -> None:
    tables: Any = RegistryTables(STORE)
    Registry(tables).save([WITH_SENSOR])
    tables.former_terms.clear()

    with pytest.raises(CassandraUnavailableError, match="1 of 2 registered stores and former terms"):
        StoreTables(tables).read()


def test_a_load_that_was_overtaken_leaves_no_terms_behind() -> None:
    tables: Any = RegistryTables(STORE)
    tables.meanwhile = lambda: Registry(tables).save([replace(STORE, name="Corner")])

    with pytest.raises(StoresChangedError):
        Registry(tables).save([WITH_SENSOR])

    assert (tables.former_terms, tables.changes) == ({}, {})
