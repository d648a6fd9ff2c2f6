"""Stores are loaded, by loads that are slow, killed or at once, while records arrive: all who read one read it alike.

A model in virtual time: statements take time, brokers' clocks differ by the skew, readers plan a task, begin it later,
and go on with it later still. Loads are killed and left without an answer before and after a statement was applied, and
others run meanwhile. At the end new readers read all records again, as new generations of the speed layer do.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import OperationTimedOut

from master_dataset.errors import GalateaError
from master_dataset.registry import registry, store_tables
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import DEFAULT_TERMS, Currency, Store, Terms
from master_dataset.registry.terms_history import TermsUntil, microseconds
from tests.support.registry_tables import RegistryTables, one_by_one

SEED, RUNS = os.environ.get("REGISTRY_SEED", "1"), int(os.environ.get("REGISTRY_RUNS", "1000"))
SKEW = timedelta(seconds=1)
BEGIN = datetime(2026, 11, 30, 12, tzinfo=UTC)
IDS = ("1", "2")
CURRENCIES = [Currency(code, 2) for code in ("EUR", "CZK", "SEK", "NOK", "DKK", "PLN")]


class KilledError(BaseException):
    """kill -9 of a load."""


@dataclass
class Reader:
    """A reader of the topic: archive, or a generation of the speed layer. Its tasks take any time."""

    registry: Registry
    read: dict[int, Terms] = field(default_factory=dict)
    planned: int = 0  # records before this one are planned
    begun: TermsUntil | None = None

    def step(self, world: "World") -> None:
        """Plan a task, begin it, or read a record of it."""
        if self.planned == len(self.read):
            self.planned = len(world.records)
        elif self.begun is None:
            self.registry.stores()
            self.begun = self.registry.terms_until
        else:
            number = len(self.read)
            store, us = world.records[number]
            self.read[number] = self.begun(us).at(us)(store)
            if len(self.read) == self.planned:
                self.begun = None


class World:
    """Everything, and its clock."""

    def __init__(self, seed: str) -> None:
        self.chance = Random(seed)
        self.seconds = 0.0
        self.tables: Any = RegistryTables()
        self.tables.before, self.tables.after = self.statement, self.trouble
        self.depth = 0
        self.promised: list[tuple[int, str, Terms]] = []  # by loads that have returned: instant, store and its terms
        self.records: list[tuple[str, int]] = []  # store, and the broker's timestamp
        self.readers = [self.reader(), self.reader()]
        self.is_acting = False
        self.has_trouble = False
        self.results: Counter[str] = Counter()

    def reader(self) -> Reader:
        return Reader(Registry(self.tables))

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def statement(self, query: str) -> None:
        """Something happens while a statement is on its way. A load may be killed, or Cassandra may not answer."""
        self.seconds += self.chance.choice((0.001, 0.01, 0.1, 1.5))
        if not self.is_acting:
            self.act()
            if self.has_trouble and self.depth == 1 and self.chance.random() < 0.02:
                self.load()
                self.results["at once"] += 1
            self.trouble()
            if query.startswith(("INSERT INTO store_sets", "UPDATE")) and self.chance.random() < 0.2:
                self.sleep(self.chance.uniform(0, 4))

    def trouble(self) -> None:
        """Now and then a load is killed, or Cassandra does not answer it."""
        if self.has_trouble and not self.is_acting and self.chance.random() < 0.015:
            raise self.chance.choice((KilledError(), OperationTimedOut()))

    def sleep(self, seconds: float) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            self.seconds = min(until, self.seconds + self.chance.uniform(0, 0.3))
            if not self.is_acting:
                self.act()

    def act(self) -> None:
        """A few steps of everybody else."""
        self.is_acting = True
        try:
            for _ in range(self.chance.randrange(8)):
                if self.chance.random() < 0.4:
                    self.receive()
                else:
                    self.chance.choice(self.readers).step(self)
            if self.chance.random() < 0.02:
                self.tables.settle()
        finally:
            self.is_acting = False

    def receive(self) -> None:
        stamp = self.now() + self.chance.choice((-1, 0, 1)) * SKEW
        self.records.append((self.chance.choice(IDS), microseconds(stamp)))

    def load(self) -> None:
        """Change, register or remove one of the stores, or change what no record is read by."""
        self.depth += 1
        id_, currency = self.chance.choice(IDS), self.chance.choice(CURRENCIES)
        store, saved = Store(id_, "UTC", currency=currency), Registry(self.tables)
        try:
            known = saved.stores().get(id_)
            if known and self.chance.random() < 0.2:
                edit = Edit(removed=[id_])
            elif known and self.chance.random() < 0.2:
                edit = Edit([replace(known, name=f"{self.seconds}")])
            else:
                edit = Edit([store])
            begins_at = saved.save(edit, SKEW)
            self.results["counts" if begins_at else "changes nothing"] += 1
            if begins_at:
                terms = edit.stores[0].terms if edit.stores else DEFAULT_TERMS
                self.promised.append((microseconds(begins_at), id_, terms))
        except (GalateaError, OperationTimedOut, KilledError) as error:
            self.results[type(error).__name__] += 1
        finally:
            self.depth -= 1

    def run(self) -> None:
        self.load()
        self.has_trouble = True
        for _ in range(self.chance.randrange(2, 6)):
            self.load()
            self.sleep(self.chance.choice((0, 0, 2, 20)))
        self.has_trouble = False
        self.load()
        self.readers += [self.reader()]
        self.is_acting = True
        for reader in self.readers:
            while len(reader.read) < len(self.records):
                reader.step(self)

    def check(self) -> None:
        """All agree, what loads have promised is true, and what is shown is what counts."""
        first, *others = (reader.read for reader in self.readers)
        for other in others:
            assert other == first
        newest = Registry(self.tables)
        rows = self.tables.rows["registered_stores"].get(self.tables.current.version, [])
        shown = [Store.from_json(row.body) for row in rows]
        assert newest.stores() == {store.id: store for store in shown}
        for us, id_, terms in self.promised:
            assert newest.terms_until(us).at(us)(id_) == terms
        self.results["records read in more than one way"] += len(set(first.values())) > 1


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One after the other; the modules of the registry live in its time."""
    current: list[World] = []

    class Virtual(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:  # noqa: ARG003 - always UTC
            return current[-1].now()

    clock = SimpleNamespace(
        monotonic=lambda: current[-1].seconds,
        time=lambda: current[-1].now().timestamp(),
        sleep=lambda seconds: current[-1].sleep(seconds),  # noqa: PLW0108 - that of the world by then
    )
    monkeypatch.setattr(registry, "time", clock)
    for module in (registry, store_tables):
        monkeypatch.setattr(module, "datetime", Virtual)
    monkeypatch.setattr(store_tables, "execute_concurrent_with_args", one_by_one)

    def each() -> Iterator[World]:
        for run in range(RUNS):
            current.append(World(f"{SEED} {run}"))
            yield current[-1]

    return each()


def test_all_readers_read_a_record_in_the_same_way(worlds: Iterator[World]) -> None:
    results: Counter[str] = Counter()
    for number, world in enumerate(worlds):
        world.run()
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"REGISTRY_SEED={SEED}, run {number}") from error
        results += world.results

    assert results["counts"] > RUNS
    assert results["records read in more than one way"] > RUNS / 2
    for trouble in ("KilledError", "StoresChangedError", "CassandraUnavailableError", "at once"):
        assert results[trouble] > 0, results
