"""The progress of stores: a mark for every micro-batch that wrote rows of them, and their newest event."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from speed_layer.store_progress import StoreProgress
from tests.fast.laws.delivery.tables import Tables, in_memory
from tests.support.arrivals import arrival, arrived

NOW = datetime(2026, 3, 7, 9, 0, 3, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def millis(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def events(*received: tuple[str, datetime]) -> pa.Table:
    rows = [arrival(f"{number}", number, at, [], store=store) for number, (store, at) in enumerate(received)]
    return pa.Table.from_batches([arrived(rows)])


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def progress(tables: Tables) -> StoreProgress:
    return StoreProgress(tables, 1, timedelta(days=7))


def of_stores(tables: Tables) -> dict[str, tuple[int, int | None]]:
    return {row["store"]: (row["mark"], row.get("received_at")) for row in tables.of("speed_stores")}


def test_a_store_has_the_micro_batch_and_its_own_newest_event(tables: Tables, progress: StoreProgress) -> None:
    with in_memory():
        progress.counted(3, events(("1", NOW + SECOND), ("2", NOW + 9 * SECOND), ("1", NOW)))

    assert of_stores(tables) == {"1": (6, millis(NOW + SECOND)), "2": (6, millis(NOW + 9 * SECOND))}


def test_a_partition_that_lags_behind_moves_the_mark_and_not_the_time(tables: Tables, progress: StoreProgress) -> None:
    with in_memory():
        progress.counted(3, events(("1", NOW)))
        progress.counted(4, events(("1", NOW - SECOND)))

    assert of_stores(tables) == {"1": (8, millis(NOW))}


def test_visits_that_close_later_in_a_micro_batch_are_another_mark(tables: Tables, progress: StoreProgress) -> None:
    with in_memory():
        progress.counted(3, events(("1", NOW)))
        progress.visited(3, ["1", "2"])

    assert of_stores(tables) == {"1": (7, millis(NOW)), "2": (7, None)}


def test_a_replay_changes_nothing(tables: Tables, progress: StoreProgress) -> None:
    with in_memory():
        for number in (3, 4, 3, 4):
            progress.counted(number, events(("1", NOW + number * SECOND)))

    assert of_stores(tables) == {"1": (8, millis(NOW + 4 * SECOND))}


class OneRow:
    """A session whose only row is the static one of a generation."""

    def __init__(self) -> None:
        self.row: SimpleNamespace | None = None

    def prepare(self, query: str) -> str:
        return query

    def execute(self, query: str, values: tuple[int, ...]) -> SimpleNamespace:
        if query.startswith("UPDATE"):
            _, kept_from, kept_through, _ = values
            self.row = SimpleNamespace(kept_from=kept_from, kept_through=kept_through)
        return SimpleNamespace(one=lambda: self.row)


def test_micro_batches_of_an_earlier_release_in_between_are_seen() -> None:
    session, found = OneRow(), list[tuple[int, int]]()
    for query in ((3, 4), (4, 5), (8, 9), (9, 10)):
        progress = StoreProgress(session, 1, timedelta(days=7))
        for number in query:
            progress.keep(number)
            assert session.row is not None
            found.append((session.row.kept_from, session.row.kept_through))

    assert found == [(3, 3), (3, 4), (3, 4), (3, 5), (8, 8), (8, 9), (8, 9), (8, 10)]
