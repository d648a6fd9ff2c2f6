"""Targets in real Cassandra: a load switches at once, keeps or replaces, and loses no other load."""

import asyncio
import time
from datetime import date

import pytest
from cassandra.cluster import Session

from master_dataset.errors import BadFileError, TargetsChangedError
from master_dataset.registry import targets as targets_module
from master_dataset.registry.targets import Targets, TargetTables
from serving_layer.query.targets import TargetReader
from serving_layer.tables import AsyncSession
from serving_layer.tables.registry import TargetBlockTables

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


def net(store: str, **days: int) -> Targets:
    found = {"first": FIRST, "second": SECOND}
    return {store: {"net_sales": {found[name]: value for name, value in days.items()}}}


def read(session: Session, tenant: str, store: str) -> dict[date, int]:
    async def found() -> dict[date, int]:
        reader = TargetReader(TargetBlockTables(AsyncSession(session)), time.monotonic)
        current = await reader.current(tenant)
        assert current is not None
        return dict(await reader.of_store(current, store, "net_sales"))

    return asyncio.run(found())


def versions(session: Session, tenant: str) -> set[str]:
    rows = session.execute("SELECT DISTINCT tenant, version, bucket FROM target_blocks")
    return {row.version for row in rows if row.tenant == tenant}


def test_a_load_keeps_other_targets_unless_it_replaces_all(shared_cassandra: Session) -> None:
    tables = TargetTables(shared_cassandra)
    first = tables.load("keeping", {**net("1", first=1, second=2), **net("2", first=3)}, replace=False)
    second = tables.load("keeping", net("1", second=20), replace=False)

    assert (first.count, second.count) == (3, 3)
    assert read(shared_cassandra, "keeping", "1") == {FIRST: 1, SECOND: 20}
    assert read(shared_cassandra, "keeping", "2") == {FIRST: 3}
    assert dict(tables.all("keeping")[1]) == {**net("1", first=1, second=20), **net("2", first=3)}

    third = tables.load("keeping", net("2", second=4), replace=True)
    assert third.count == 1
    assert read(shared_cassandra, "keeping", "1") == {}
    assert read(shared_cassandra, "keeping", "2") == {SECOND: 4}
    assert versions(shared_cassandra, "keeping") == {second.version, third.version}


def test_a_load_that_fails_or_is_overtaken_changes_nothing(
    shared_cassandra: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = TargetTables(shared_cassandra)
    before = tables.load("racing", net("1", first=1), replace=False)
    with monkeypatch.context() as patched:
        patched.setattr(targets_module, "MOST_TARGETS", 1)
        with pytest.raises(BadFileError, match="2 targets"):
            tables.load("racing", net("1", second=2), replace=False)
    assert versions(shared_cassandra, "racing") == {before.version}

    stage = TargetTables._stage  # noqa: SLF001 - the moment between reading the version and switching it

    def overtaken(self: TargetTables, tenant: str, version: str, targets: Targets, kept: str) -> int:
        monkeypatch.setattr(TargetTables, "_stage", stage)
        tables.load("racing", net("1", first=7), replace=False)
        return stage(self, tenant, version, targets, kept)

    monkeypatch.setattr(TargetTables, "_stage", overtaken)
    with pytest.raises(TargetsChangedError):
        tables.load("racing", net("1", first=8), replace=False)
    assert read(shared_cassandra, "racing", "1") == {FIRST: 7}
