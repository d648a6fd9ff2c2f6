"""Alerts that were refused for good: all that wait are kept by one commit, in a table that can be compacted."""

import asyncio
import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from master_dataset.dead_letters.replay_history import REPLAYS, ReplayTable
from master_dataset.dead_letters.table import UNDELIVERED, undelivered_layout
from master_dataset.delta.compaction import Compaction
from master_dataset.errors import DeadLetterNotStoredError
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.delivery import UndeliveredTable
from tests.support.alert_topic import record

ENDPOINTS = [Endpoint(f"e{number}", "acme", "https://acme.example/", "secret") for number in range(3)]


async def refuse(table: UndeliveredTable, *offsets: int) -> list[BaseException | None]:
    """By three endpoints at once; what became of each."""
    kept = [
        table.keep(endpoint, record("acme", "1", offset, offset), "the endpoint answered 422")
        for endpoint in ENDPOINTS
        for offset in offsets
    ]
    return await asyncio.gather(*kept, return_exceptions=True)


def rows(root: Path) -> list[tuple[str, int, str]]:
    found = DeltaTable(str(root / UNDELIVERED)).to_pyarrow_table().to_pylist()
    return sorted((each["topic"], each["offset"], each["sentence"]) for each in found)


def expected(*offsets: int) -> list[tuple[str, int, str]]:
    return sorted(
        (f"webhook.{each.id}", offset, "The endpoint answered 422.") for each in ENDPOINTS for offset in offsets
    )


def test_all_that_are_refused_at_once_are_kept_by_one_commit(tmp_path: Path) -> None:
    said = asyncio.run(refuse(UndeliveredTable(str(tmp_path)), *range(50)))

    assert said == [None] * 150
    assert rows(tmp_path) == expected(*range(50))
    assert DeltaTable(str(tmp_path / UNDELIVERED)).version() == 1  # 0 has made the table


def test_what_is_refused_during_a_commit_is_kept_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    table = UndeliveredTable(str(tmp_path))
    append = table.append

    def slowly(dead_letters: object) -> None:
        begun.set()
        goes_on.wait()
        append(dead_letters)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "append", slowly)

    async def work() -> None:
        first = asyncio.ensure_future(refuse(table, 0))
        await asyncio.to_thread(begun.wait)
        others = [asyncio.ensure_future(refuse(table, number)) for number in range(1, 10)]
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.gather(first, *others)

    asyncio.run(work())

    assert rows(tmp_path) == expected(*range(10))
    assert DeltaTable(str(tmp_path / UNDELIVERED)).version() == 2


def test_what_cannot_be_kept_is_said_to_all_who_wait_and_can_be_kept_later(tmp_path: Path) -> None:
    root = tmp_path / "master"
    root.write_text("a file where the folder should be")
    table = UndeliveredTable(str(root))

    async def work() -> list[BaseException | None]:
        said = await refuse(table, 1, 2)
        root.unlink()
        await refuse(table, 1, 2)
        return said

    said = asyncio.run(work())

    assert [type(each) for each in said] == [DeadLetterNotStoredError] * 6
    assert rows(root) == expected(1, 2)


def test_one_that_waits_no_longer_takes_nothing_from_the_others(tmp_path: Path) -> None:
    table = UndeliveredTable(str(tmp_path))

    async def work() -> list[BaseException | None]:
        gone = asyncio.ensure_future(refuse(table, 1))
        others = asyncio.ensure_future(refuse(table, 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gone.cancel()
        return await others

    assert asyncio.run(work()) == [None] * 3
    assert set(expected(2)) <= set(rows(tmp_path))


def test_it_has_the_properties_of_replays_and_can_be_compacted(tmp_path: Path) -> None:
    table = UndeliveredTable(str(tmp_path))
    ReplayTable(str(tmp_path)).create()

    async def work() -> None:
        for number in range(5):
            await refuse(table, number)

    asyncio.run(work())
    done = Compaction(lambda: None, 7).run(str(tmp_path / UNDELIVERED), lambda *_: None)

    own, replays = (DeltaTable(str(tmp_path / name)).metadata() for name in (UNDELIVERED, REPLAYS))
    configuration = replays.configuration | {"delta.dataSkippingStatsColumns": "received_at"}
    assert (own.configuration, own.partition_columns) == (configuration, replays.partition_columns)
    assert (done.files_before, done.files_after) == (15, 3)
    assert rows(tmp_path) == expected(*range(5))


def test_one_that_was_made_without_partitions_is_appended_to_and_left_as_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / UNDELIVERED)
    write_deltalake(path, undelivered_layout().schema.empty_table())
    table = UndeliveredTable(str(tmp_path))

    async def work() -> None:
        for number in range(5):
            await refuse(table, number)

    asyncio.run(work())
    done = Compaction(lambda: None, 7).run(path, lambda *_: None)

    assert done.files_after == done.files_before == 5
    assert rows(tmp_path) == expected(*range(5))
