"""Registered stores and alert rules in real Cassandra: what is loaded together appears together, or not at all."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cassandra.cluster import Session

from master_dataset.errors import StoresChangedError
from master_dataset.registry import registry
from master_dataset.registry.registry import Registry, store_terms
from master_dataset.registry.rule_versions import RuleEdit, RuleVersions
from master_dataset.registry.store_tables import Change, Edit
from master_dataset.registry.store_tables import StoreTables as LoadedStores
from master_dataset.registry.stores import Sensor, Store
from master_dataset.registry.terms_history import microseconds
from serving_layer.tables import AsyncSession, StoreTables
from tests.support.terms import ONE_CLOCK

ONE, OTHER = Store("set-1", "UTC", tenant="sets"), Store("set-2", "UTC", tenant="sets")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONE_MS = timedelta(milliseconds=1)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REFRESH_SECONDS", 0)


def served(session: Session) -> tuple[str, dict[str, Store]]:
    """The version and the stores of these tests, as the serving layer reads them."""

    async def read() -> tuple[str, dict[str, Store]]:
        tables = StoreTables(AsyncSession(session))
        stores = {each.id: each for each in await tables.stores() if each.tenant == "sets"}
        return await tables.version(), stores

    return asyncio.run(read())


def test_every_load_is_a_version_of_all_stores(shared_cassandra: Session) -> None:
    session = shared_cassandra
    before, _ = served(session)
    Registry(session).save(Edit([ONE, OTHER]), ONE_CLOCK)
    loaded, stores = served(session)
    Registry(session).save(Edit(removed=[ONE.id]), ONE_CLOCK)
    removed, left = served(session)

    assert len({before, loaded, removed}) == 3
    assert (stores, left) == ({ONE.id: ONE, OTHER.id: OTHER}, {OTHER.id: OTHER})
    assert {id_ for id_, each in Registry(session).stores().items() if each.tenant == "sets"} == {OTHER.id}


def test_a_load_that_was_overtaken_changes_nothing(shared_cassandra: Session) -> None:
    class Slow(LoadedStores):
        def switch_version(self, tenant: str, stage: object) -> object:  # type: ignore[override]
            def staged(version: str, before: object) -> object:
                counts = stage(version, before)  # type: ignore[operator]
                LoadedStores(shared_cassandra).load(Edit([OTHER]), lead=ONE_CLOCK)
                return counts

            return super().switch_version(tenant, staged)  # type: ignore[arg-type]

    with pytest.raises(StoresChangedError):
        Slow(shared_cassandra).load(Edit([ONE, Store("set-3", "UTC", tenant="sets")]), lead=ONE_CLOCK)

    assert "set-3" not in Registry(shared_cassandra).stores()


def read_at(session: Session, instant: datetime) -> frozenset[tuple[str, str]]:
    """The sensors that a task which begins now finds registered, for a record that was received at that time."""
    registry._registries.clear()  # noqa: SLF001 - another process
    us = microseconds(instant)
    return store_terms(lambda: session)(us).at(us)("set-9").sensors


def test_records_are_read_by_what_was_registered_when_they_were_received(shared_cassandra: Session) -> None:
    session, before = shared_cassandra, Store("set-9", "UTC", tenant="sets")
    after = replace(before, sensors=(Sensor("cam-1", "people_counts"),))
    Registry(session).save(Edit([before]), ONE_CLOCK)
    reader = store_terms(lambda: session)

    begins_at = Registry(session).save(Edit([after]), ONE_CLOCK)

    assert begins_at
    us = microseconds(begins_at) - 1
    assert [read_at(session, each) for each in (begins_at - ONE_MS, begins_at)] == [frozenset(), after.terms.sensors]
    assert reader(us).at(us)("set-9").sensors == frozenset()


def test_the_first_to_decide_about_a_change_is_right(shared_cassandra: Session) -> None:
    session = shared_cassandra
    tables, changed = LoadedStores(session), Store("set-10", "Asia/Tokyo", tenant="sets")
    confirmed = tables.load(Edit([changed]), lead=ONE_CLOCK)
    assert confirmed
    decided = [tables.decide(confirmed, confirm=confirm) for confirm in (True, False)]
    rejected = tables.load(Edit(removed=["set-10"]), lead=ONE_CLOCK)
    assert rejected
    decided += [tables.decide(rejected, confirm=confirm) for confirm in (False, True)]
    unknown = tables.decide(Change("no version", confirmed.at), confirm=True)

    assert decided == [True, True, False, False]
    assert unknown is None
    assert tables.read().stores()["set-10"] == changed
    assert tables.read().history().at(microseconds(rejected.at))("set-10") == changed.terms


def test_rules_are_changed_together_or_not_at_all(shared_cassandra: Session) -> None:
    versions = RuleVersions(shared_cassandra, timedelta(seconds=2), now=lambda: NOW)
    first = versions.follow_all([RuleEdit("sets/a", "{}", 0), RuleEdit("sets/b", "{}", 0)])
    overtaken = versions.follow_all([RuleEdit("sets/c", "{}", 0), RuleEdit("sets/b", '{"on": false}', 0)])
    later = versions.follow_all([RuleEdit("sets/a", "", 1), RuleEdit("sets/b", '{"on": false}', 1)])

    assert first is not None
    assert later is not None
    assert ([row.number for row in first], overtaken, [row.number for row in later]) == ([1, 1], None, [2, 2])
    assert {row.id: row.number for row in versions.rules("sets")} == {"sets/a": 2, "sets/b": 2}
