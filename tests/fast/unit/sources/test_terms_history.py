"""Records are read by what was registered when they were received, whoever reads them, and however late (ADR 0083)."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cassandra import OperationTimedOut

from master_dataset.errors import CassandraUnavailableError, OperatorError, StoresChangedError
from master_dataset.registry import registry, store_tables
from master_dataset.registry.registration import register, remove, restore
from master_dataset.registry.registry import Registry, store_terms
from master_dataset.registry.store_tables import Change, Edit, StoreTables
from master_dataset.registry.stores import DEFAULT_TERMS, Currency, Sensor, Store, Terms
from master_dataset.registry.terms_history import FormerTerms, TermsHistory, microseconds
from tests.support.registry_tables import RegistryTables, know_at_once, takes
from tests.support.terms import ONE_CLOCK

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
    first = Registry(tables).save(Edit([STORE]), ONE_CLOCK)
    second = Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)
    removed = Registry(tables).save(Edit(removed=["1"]), ONE_CLOCK)
    assert first
    assert second
    assert removed

    found = [read_at(tables, each) for at in (first, second, removed) for each in (at - ONE_MS, at)]

    own, with_sensor = STORE.terms, WITH_SENSOR.terms
    assert found == [DEFAULT_TERMS, own, own, with_sensor, with_sensor, DEFAULT_TERMS]


def test_a_change_lies_ahead_and_its_load_ends_when_it_has_begun_on_every_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the skew, the age of a reader's copy, and the time for the switch."""
    monkeypatch.setattr(registry, "REFRESH_SECONDS", 0.1)
    tables: Any = RegistryTables()
    skew, before = timedelta(milliseconds=200), datetime.now(UTC)

    begins_at = Registry(tables).save(Edit([STORE]), skew)

    assert begins_at
    assert begins_at >= before + skew + timedelta(seconds=0.1 + 0.05)
    assert datetime.now(UTC) >= begins_at + skew


@pytest.mark.parametrize("same", [replace(STORE, name="Corner"), replace(STORE, floor_m2=80)])
def test_what_no_record_is_read_by_is_no_change(same: Store) -> None:
    tables: Any = RegistryTables(STORE)

    assert Registry(tables).save(Edit([same]), ONE_CLOCK) is None
    assert read_at(tables, T0) == STORE.terms
    assert tables.decisions == []


def test_a_load_that_is_too_slow_gets_more_time() -> None:
    tables: Any = RegistryTables(STORE)
    takes(tables, 0.06)  # more than it has at first

    begins_at = Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)

    assert begins_at
    assert tables.decisions == [False, True]
    assert [read_at(tables, each) for each in (begins_at - ONE_MS, begins_at)] == [STORE.terms, WITH_SENSOR.terms]


def test_a_load_that_is_always_too_slow_changes_nothing() -> None:
    tables: Any = RegistryTables(STORE)
    takes(tables, 0.21)

    with pytest.raises(CassandraUnavailableError, match=r"took more than 0\.2 s") as refused:
        Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)

    assert "Load them again" in refused.value.do
    assert tables.bodies == {"1": STORE.to_json()}
    assert [row.body for row in tables.rows["registered_stores"][tables.current.version]] == [STORE.to_json()]
    assert read_at(tables, datetime.now(UTC) + timedelta(hours=1)) == STORE.terms


@pytest.mark.parametrize("seconds", [-5.0, 5.0])
def test_a_clock_that_steps_during_a_load_makes_it_try_again(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does for a machine that slept: the instant may have passed before the switch."""
    tables: Any = RegistryTables(STORE)
    step = [0.0]

    class Stepping(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=step[0])

    def stepped(query: str) -> None:
        if query.startswith(("UPDATE store_sets", "INSERT INTO store_sets")) and not step[0]:
            step[0] = seconds

    monkeypatch.setattr(registry, "datetime", Stepping)
    monkeypatch.setattr(store_tables, "datetime", Stepping)
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + step[0])
    tables.before = stepped

    begins_at = Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)

    assert begins_at
    assert tables.decisions == [False, True]


def died(tables: Any, store: Store) -> datetime:
    """A load that switched, and was killed before it confirmed."""
    change = StoreTables(tables).load(Edit([store]), lead=timedelta(milliseconds=-1))
    assert change
    return change.at


def test_the_first_reader_that_needs_to_know_rejects_a_change_that_nobody_confirmed() -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)

    assert read_at(tables, at - ONE_MS) == STORE.terms
    assert tables.decisions == [None]
    assert read_at(tables, at) == STORE.terms
    assert tables.decisions == [False]
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
    tables.settle()
    for name in ("a", "b"):
        Registry(tables).save(Edit([replace(STORE, name=name)]), ONE_CLOCK)

    us = microseconds(at)

    assert reader(us).at(us)("1") == STORE.terms  # the first of these loads rejected the change


def test_a_copy_is_as_old_as_the_question_that_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cassandra was slow to answer it, and another version has replaced the answer meanwhile."""
    monkeypatch.setattr(registry, "REFRESH_SECONDS", 0.1)
    tables: Any = RegistryTables(STORE)
    reader = Registry(tables)
    tables.before = lambda _: time.sleep(0.06)  # the version is asked for by two statements
    reader.stores()
    tables.before = lambda _: None
    StoreTables(tables).load(Edit([replace(STORE, name="Corner")]), lead=ONE_CLOCK)

    assert reader.stores()["1"].name == "Corner"


def test_a_load_after_one_that_died_counts_from_its_own_time_on(tmp_path: Any) -> None:
    tables: Any = RegistryTables(STORE)
    at = died(tables, WITH_SENSOR)
    waited: list[int] = []

    begins_at = register(str(tmp_path), tables, [WITH_SENSOR], lambda: waited.append(1), skew=ONE_CLOCK)

    assert begins_at
    assert begins_at > at
    assert waited == [1, 1]
    assert [read_at(tables, each) for each in (at, begins_at - ONE_MS, begins_at)] == [
        STORE.terms,
        STORE.terms,
        WITH_SENSOR.terms,
    ]


def test_a_load_of_other_stores_does_not_bring_back_what_was_rejected() -> None:
    tables: Any = RegistryTables(STORE)
    died(tables, WITH_SENSOR)

    Registry(tables).save(Edit([Store("2", "Asia/Tokyo")]), ONE_CLOCK)

    assert Registry(tables).stores()["1"] == STORE
    assert read_at(tables, datetime.now(UTC) + timedelta(hours=1)) == STORE.terms


def test_a_load_whose_decision_is_to_come_keeps_others_out() -> None:
    tables: Any = RegistryTables(STORE)
    StoreTables(tables).load(Edit([WITH_SENSOR]), lead=timedelta(seconds=5))

    with pytest.raises(StoresChangedError):
        Registry(tables).save(Edit([Store("2", "Asia/Tokyo")]), ONE_CLOCK)

    assert tables.decisions == [None]


def test_changes_follow_each_other_even_if_a_clock_is_behind() -> None:
    tables: Any = RegistryTables(STORE)
    first = StoreTables(tables).load(Edit([WITH_SENSOR]), lead=timedelta(seconds=30))
    assert first
    StoreTables(tables).decide(first, confirm=True)

    second = StoreTables(tables).load(Edit([replace(STORE, currency=JPY)]), lead=ONE_CLOCK)

    assert second
    assert second.at == first.at + ONE_MS
    assert [read_at(tables, each) for each in (first.at - ONE_MS, first.at)] == [STORE.terms, WITH_SENSOR.terms]


def test_a_lost_store_was_always_registered_unless_a_change_of_it_is_known(tmp_path: Any) -> None:
    tables: Any = RegistryTables(STORE)
    remove(tables, ["1"], skew=ONE_CLOCK)
    lost = Store("2", "Asia/Tokyo", currency=JPY)

    again = restore(str(tmp_path), tables, [STORE, lost], skew=ONE_CLOCK, replaces=False)

    assert again
    assert read_at(tables, T0, "2") == lost.terms
    assert read_at(tables, T0) == STORE.terms
    assert [read_at(tables, each) for each in (again - ONE_MS, again)] == [DEFAULT_TERMS, STORE.terms]


def test_terms_that_no_record_needs_any_more_are_forgotten_but_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: Any = RegistryTables(STORE)
    for stores in ([WITH_SENSOR], [STORE], [WITH_SENSOR]):
        Registry(tables).save(Edit(stores), ONE_CLOCK)
    monkeypatch.setattr(store_tables, "_REMEMBERED", timedelta(0))

    Registry(tables).save(Edit([Store("2", "Asia/Tokyo")]), ONE_CLOCK)

    assert [(each.store, each.terms) for each in StoreTables(tables).read().former] == [("1", STORE.terms)]


@pytest.mark.parametrize("table", ["registered_stores", "replaced_stores", "former_terms"])
def test_a_version_of_which_rows_are_missing_is_not_read(table: str) -> None:
    tables: Any = RegistryTables(STORE)
    for stores in ([WITH_SENSOR], [STORE]):
        Registry(tables).save(Edit(stores), ONE_CLOCK)
    tables.rows[table].clear()

    with pytest.raises(CassandraUnavailableError, match="2 of 3 rows about registered stores"):
        StoreTables(tables).read()


@pytest.mark.parametrize("removed", [[], ["1"]])
def test_a_version_that_is_removed_while_it_is_read_is_not_used(removed: list[str]) -> None:
    """Also one without any stores, of which no row is missing then."""
    tables: Any = RegistryTables(STORE)
    Registry(tables).save(Edit([WITH_SENSOR], removed), ONE_CLOCK)
    Registry(tables).save(Edit(removed=removed), ONE_CLOCK)

    def meanwhile(query: str) -> None:
        if query.startswith("SELECT former_terms, replaced_stores"):
            tables.before = lambda _: None
            for name in ("a", "b"):
                Registry(tables).save(Edit([replace(STORE, name=name)]), ONE_CLOCK)

    tables.before = meanwhile

    assert StoreTables(tables).read().stores()["1"].name == "b"


def test_a_version_of_a_release_before_changes_has_none() -> None:
    tables: Any = RegistryTables(STORE)
    Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)
    for table in (tables.rows["replaced_stores"], tables.rows["former_terms"], tables.changes):
        table.clear()

    assert StoreTables(tables).read().stores() == {"1": WITH_SENSOR}
    assert read_at(tables, T0) == WITH_SENSOR.terms


def test_a_change_counts_although_former_versions_could_not_be_removed() -> None:
    tables: Any = RegistryTables(STORE)

    def away(query: str) -> None:
        if query.startswith(("SELECT DISTINCT", "DELETE")):
            raise OperationTimedOut

    tables.before = away

    begins_at = Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)

    assert begins_at
    assert tables.decisions == [True]


def test_a_switch_that_is_applied_after_its_load_gave_up_finds_its_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a coordinator that was suspended with it. Nobody has confirmed the change, so it is rejected."""
    tables: Any = RegistryTables(STORE)
    Registry(tables).save(Edit([replace(STORE, name="Corner")]), ONE_CLOCK)
    late: list[Any] = []

    def suspended(*said: Any) -> None:
        late.append(said)
        raise OperationTimedOut

    with monkeypatch.context() as patch:
        patch.setattr(RegistryTables, "_switch", lambda _, *said: suspended(*said))
        with pytest.raises(CassandraUnavailableError, match="OperationTimedOut"):
            Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)
    tables._switch(*late[0])  # noqa: SLF001 - as the node does when it goes on
    time.sleep(0.1)

    assert Registry(tables).settled() == {"1": replace(STORE, name="Corner")}


def test_a_change_far_ahead_is_named_and_not_waited_for() -> None:
    tables: Any = RegistryTables(STORE)
    wrong = StoreTables(tables).load(Edit([WITH_SENSOR]), lead=timedelta(hours=1))
    assert wrong
    StoreTables(tables).decide(wrong, confirm=True)

    with pytest.raises(OperatorError, match="a change of the registered stores begins only at"):
        Registry(tables).save(Edit([STORE]), ONE_CLOCK)


def test_a_load_that_was_overtaken_leaves_nothing_behind() -> None:
    tables: Any = RegistryTables(STORE)
    tables.meanwhile = lambda: Registry(tables).save(Edit([replace(STORE, name="Corner")]), ONE_CLOCK)

    with pytest.raises(StoresChangedError):
        Registry(tables).save(Edit([WITH_SENSOR]), ONE_CLOCK)

    assert (tables.rows["replaced_stores"], tables.rows["former_terms"], tables.decisions) == ({}, {}, [])
