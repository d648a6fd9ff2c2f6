"""Identities that are surely new are not looked up, and what counts is the same as if all were."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speed_layer import new_identities
from speed_layer.first_deliveries import FirstDeliveries
from speed_layer.new_identities import FilterFiles
from tests.fast.laws.delivery.tables import Tables, in_memory
from tests.support.arrivals import Arrival, arrival, arrived
from views.control.generation import Generation
from views.control.speed_layout import SpeedLayout
from views.core.cut import UNIX_EPOCH

NOON = UNIX_EPOCH + timedelta(days=20_000, hours=12)
LAYOUT = SpeedLayout.for_stores(100)
TASKS, TOPICS = 2, ("pos_transactions",)
DAY, HOURS = date(2026, 3, 7), timedelta(hours=1)
numbers = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that files are made in no time, and some new identities are taken for known ones."""
    monkeypatch.setattr(new_identities, "FILTER_BYTES", 2**10)


class Asked(Tables):
    """Notes the identities that are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.identities: list[str] = []

    def first_deliveries(self, table: str, wanted_keys: Any) -> Iterator[tuple[bool, list[Any]]]:
        self.identities += [identity for wanted in wanted_keys for each in wanted[4:] for identity in each]
        return super().first_deliveries(table, wanted_keys)


def fresh(parent: Path) -> FilterFiles:
    """Those of a query that begins."""
    return FilterFiles(Path(mkdtemp(dir=parent)), TASKS, TOPICS, LAYOUT.buckets)


def first(tables: Tables, rows: list[Arrival], filters: FilterFiles | None) -> list[tuple[int, int]]:
    """The places of the deliveries that count."""
    generation = Generation(1, NOON, {}, {}, layout=LAYOUT)
    ttl = timedelta(days=8)
    found, are_remembered = FirstDeliveries(tables, generation, timedelta(hours=23), ttl, filters).filter_first(
        pa.Table.from_batches([arrived(rows)])
    )
    are_remembered()
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


@contextmanager
def another_process() -> Iterator[None]:
    """It has none of the files open."""
    with patch.object(new_identities, "_opened", {}):
        yield


def deliveries(chance: Random, number: int, at: datetime) -> list[Arrival]:
    """Of a micro-batch: events of several stores and days, half of them delivered before or again within it."""
    found: list[Arrival] = []
    for each in range(chance.randint(1, 30)):
        identity, store = chance.randrange(40 + 5 * number), str(chance.randrange(12))
        happened_at = NOON + (identity % 30 - 25) * HOURS  # the day of an event is that of its identity
        partition = chance.randrange(2)
        offset, age = 100 * number + each, at - happened_at
        found.append(arrival(f"{store}/{identity}", offset, at, [], store=store, partition=partition, age=age))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_what_counts_is_the_same_as_if_every_identity_were_looked_up(seed: int, tmp_path: Path) -> None:
    """Also when micro-batches are replayed, other workers count, queries start again, and others write before us."""
    chance, plain, ours = Random(seed), Asked(), Asked()
    filters, other = fresh(tmp_path), fresh(tmp_path)
    with in_memory():
        for number in range(12):
            rows = deliveries(chance, number, NOON + number * timedelta(minutes=1))
            expected = first(plain, rows, None)
            if chance.random() < 0.2:
                filters = fresh(tmp_path)  # a query starts again
            if chance.random() < 0.2:
                first(ours, rows, other)  # a former process, which the claim lets count the same records
                other = fresh(tmp_path)
            for _ in range(chance.choice([1, 1, 2])):
                with another_process() if chance.random() < 0.5 else nullcontext():
                    assert first(ours, rows, filters) == expected
                with patch.object(new_identities, "_KEPT", chance.choice([0, 72]) * HOURS):
                    filters.remove_old()

    table = LAYOUT.first_deliveries
    assert sorted(map(repr, ours.of(table))) == sorted(map(repr, plain.of(table))) != []


def test_only_identities_that_may_be_known_are_looked_up(tmp_path: Path) -> None:
    tables, filters = Asked(), fresh(tmp_path)
    with in_memory():
        first(tables, [arrival("a", 0, NOON, []), arrival("b", 1, NOON, []), arrival("b", 2, NOON, [])], filters)
        assert tables.identities == []

        assert first(tables, [arrival("a", 3, NOON, []), arrival("c", 4, NOON, [])], filters) == [(0, 4)]
        assert tables.identities == ["a"]


def test_where_something_was_remembered_before_every_identity_is_looked_up(tmp_path: Path) -> None:
    tables = Asked()
    with in_memory():
        first(tables, [arrival("a", 0, NOON, [])], None)

        assert first(tables, [arrival("a", 1, NOON, []), arrival("b", 2, NOON, [])], fresh(tmp_path)) == [(0, 2)]

    assert sorted(tables.identities) == ["a", "a", "b"]


@given(hashes=numbers, more=numbers)
def test_what_was_added_is_never_new_again(tmp_path_factory: pytest.TempPathFactory, hashes: Any, more: Any) -> None:
    own = fresh(tmp_path_factory.mktemp("filters")).of(DAY, 0)
    own.meet(0, is_empty=True)
    places = [np.zeros(len(each), np.int64) for each in (hashes, more)]

    own.add(places[0], np.array(hashes, np.uint64))
    own.add(places[1], np.array(more, np.uint64))

    assert not own.add(places[0], np.array(hashes, np.uint64)).any()


def test_one_in_hundreds_is_looked_up_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_identities, "FILTER_BYTES", 2**16)
    own, chance = fresh(tmp_path).of(DAY, 0), np.random.default_rng(7)
    own.meet(0, is_empty=True)
    places = np.zeros(2**15, np.int64)  # 16 bits for each, when all are added
    own.add(places, chance.integers(0, 2**64, 2**15, np.uint64))

    others = own.add(places[:1000], chance.integers(0, 2**64, 1000, np.uint64))

    assert 980 < others.sum() <= 1000


def test_files_of_days_that_are_over_are_removed_and_made_again_for_late_events(tmp_path: Path) -> None:
    filters = fresh(tmp_path)
    old = filters.of(DAY, 0)
    old.meet(0, is_empty=True)

    filters.of(DAY + timedelta(days=4), 1)
    filters.remove_old()

    assert [path.name for path in filters.folder.iterdir()] == [f"{DAY + timedelta(days=4)}-1"]
    assert filters.of(DAY, 0).unmet([0]) == [0]


def test_workers_of_a_query_that_has_ended_fail_and_make_no_files(tmp_path: Path) -> None:
    filters = fresh(tmp_path)
    filters.of(DAY, 0)
    rmtree(filters.folder)

    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            filters.of(DAY, 0)
    assert not filters.folder.exists()


def test_a_file_that_a_killed_worker_has_begun_is_made_again(tmp_path: Path) -> None:
    filters = fresh(tmp_path)
    (filters.folder / f"begun-{DAY}-0").write_bytes(b"short")

    filters.of(DAY, 0).meet(0, is_empty=True)

    assert filters.of(DAY, 0).unmet([0, 1]) == [1]
