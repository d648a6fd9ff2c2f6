"""The master dataset on an object store: writers that race and lose answers lose no commit, and none is made twice."""

import json
import multiprocessing
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from master_dataset.delta.append import ATTEMPT, Writer, commit_files
from master_dataset.delta.data_files import DATA_FILES, FileWriter
from master_dataset.delta.dataset import arrow_dataset
from master_dataset.errors import ObjectStoreAccessError, ObjectStoreUnavailableError, OperatorError
from master_dataset.object_store import ObjectStore, use
from master_dataset.storage import exists, names_in, open_table, probe, read_bytes
from tests.support.object_stores import BUCKET, KEY, SECRET, Fault, LocalObjectStore, object_store_server
from tests.support.racing_writers import (
    DAYS,
    EXPORTED,
    LAYOUT,
    append_small,
    archive,
    compact,
    create,
    export,
    exported_day,
    rows_of,
)

TABLE = f"s3://{BUCKET}/master/pos_transactions"
CORRECTED = f"s3://{BUCKET}/corrected/{EXPORTED.name}"
SETTING = "GALATEA_MASTER_URI"


@pytest.fixture(scope="module")
def server() -> Iterator[LocalObjectStore]:
    with object_store_server() as served:
        yield served


@pytest.fixture
def store(server: LocalObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalObjectStore]:
    """It is empty."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server.reset()
    use(server.store)
    yield server
    use(ObjectStore())


def race(*works: Callable[[], None]) -> None:
    """Run each in a process of its own, at once."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(works)


def entries(table: str = TABLE) -> Iterator[list[dict[str, Any]]]:
    """The actions of each version; the log has no gap."""
    names = sorted(name for name in names_in(f"{table}/_delta_log") if name.endswith(".json"))
    assert names == [f"{number:020}.json" for number in range(len(names))]
    for name in names:
        yield [json.loads(line) for line in read_bytes(f"{table}/_delta_log/{name}").splitlines()]


def numbers_in(path: str) -> list[int]:
    found: list[int] = pq.read_table(BytesIO(read_bytes(f"{TABLE}/{unquote(path)}")), columns=["number"])[0].to_pylist()
    return found


def files_by_version(table: str) -> Iterator[set[str]]:
    """The data files of each version, by the log alone."""
    files: set[str] = set()
    for actions in entries(table):
        files -= {each["remove"]["path"] for each in actions if "remove" in each}
        files |= {each["add"]["path"] for each in actions if "add" in each}
        yield files


def assert_each_once(commits: int) -> int:
    """Every row is there once, and no version has lost or repeated one that an earlier version had.

    Returns the number of versions.
    """
    known: dict[str, list[int]] = {}
    rows: set[int] = set()
    versions = 0
    for files in files_by_version(TABLE):
        known |= {path: numbers_in(path) for path in files - known.keys()}
        listed = [number for path in files for number in known[path]]
        assert len(listed) == len(set(listed)), "a row is there twice"
        assert rows <= set(listed), "a row was lost"
        rows = set(listed)
        versions += 1
    expected = list(range(commits * DAYS))
    assert sorted(rows) == expected
    assert sorted(arrow_dataset(open_table(TABLE)).to_table(columns=["number"])["number"].to_pylist()) == expected
    return versions


def assert_exported_in_order(publications: range) -> None:
    """Each publication is one version, and of every version each day is that of its last publication."""
    days: dict[str, str] = {}
    for publication, files in zip(publications, files_by_version(CORRECTED), strict=True):
        days[str(exported_day(publication))] = f"run-{publication}"
        found = (unquote(path).split("/")[:2] for path in files)
        assert sorted((day.removeprefix("day="), run.removeprefix("run=")) for day, run in found) == sorted(
            days.items()
        )


def racing(store: ObjectStore, archives: int, commits: int, compactions: int, exports: range) -> None:
    """As many archives, two that append little, one that compacts, and an export, at once.

    Each archive and the two make `commits`.
    """
    first, half = archives * commits, commits // 2
    create(store, TABLE)
    race(
        *(
            partial(archive, store, TABLE, f"query {each}", range(each * commits, (each + 1) * commits))
            for each in range(archives)
        ),
        partial(append_small, store, TABLE, range(first, first + half)),
        partial(append_small, store, TABLE, range(first + half, first + 2 * half)),
        partial(compact, store, TABLE, compactions),
        partial(export, store, f"s3://{BUCKET}/corrected", exports),
    )


def test_racing_writers_a_compaction_and_an_export_lose_no_commit_and_repeat_none(store: LocalObjectStore) -> None:
    racing(store.store, archives=2, commits=4, compactions=1, exports=range(1, 4))

    assert_each_once(commits=12)
    assert_exported_in_order(range(1, 4))


@pytest.mark.nightly
def test_five_hundred_racing_commits_with_answers_lost_are_each_made_once(store: LocalObjectStore) -> None:
    store.inject(Fault("drop", every=7, of="_delta_log"))

    racing(store.store, archives=4, commits=100, compactions=12, exports=range(1, 51))

    lost = store.faults
    store.inject(None)
    versions = assert_each_once(commits=500)
    assert_exported_in_order(range(1, 51))
    print(f"{versions} versions, 50 exports, {lost} answers lost; 0 commits lost, 0 made twice")  # noqa: T201
    assert lost > 50


@pytest.mark.parametrize("fault", ["drop", "late_error"])
def test_a_commit_whose_answer_is_lost_is_made_once(store: LocalObjectStore, fault: str) -> None:
    create(store.store, TABLE)
    store.inject(Fault(fault, every=2, of="_delta_log"))

    archive(store.store, TABLE, "query", range(3))
    append_small(store.store, TABLE, range(3, 6))
    compact(store.store, TABLE, 1)

    assert store.faults >= 3
    store.inject(None)
    assert_each_once(commits=6)
    writes = [each["commitInfo"] for actions in entries() for each in actions if "commitInfo" in each]
    assert sum(ATTEMPT in each and each["operation"] == "WRITE" for each in writes) == 6


def test_a_slow_store_is_waited_for(store: LocalObjectStore) -> None:
    create(store.store, TABLE)
    store.inject(Fault("slow", of="_delta_log"))

    archive(store.store, TABLE, "query", range(2))

    assert store.faults >= 2
    assert_each_once(commits=2)


def test_a_commit_that_is_told_to_slow_down_is_tried_again(store: LocalObjectStore) -> None:
    create(store.store, TABLE)
    store.inject(Fault("slow_down", every=2, of="_delta_log"))

    archive(store.store, TABLE, "query", range(3))

    assert store.faults >= 1
    store.inject(None)
    assert_each_once(commits=3)


def test_of_two_archives_with_one_checkpoint_the_second_notices_the_first(
    store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store.store, TABLE)
    archive(store.store, TABLE, "query", range(1))
    files = pa.Table.from_batches(FileWriter(TABLE, LAYOUT, store.store)(rows_of(1).to_batches()), DATA_FILES)
    opened = [open_table(TABLE)]
    commit_files(TABLE, LAYOUT, files, Writer("query", 1), "query 1")
    monkeypatch.setattr(
        "master_dataset.delta.append.open_table", lambda uri: opened.pop() if opened else open_table(uri)
    )

    with pytest.raises(OperatorError, match=r"another process commits to .* as `query`"):
        commit_files(TABLE, LAYOUT, files, Writer("query", 1), "query 1")

    assert_each_once(commits=2)


@pytest.mark.usefixtures("store")
def test_a_store_with_conditional_put_is_accepted_and_left_as_it_was() -> None:
    probe(f"s3://{BUCKET}/master", SETTING)
    probe("/a/folder", SETTING)

    assert not exists(f"s3://{BUCKET}/master")


def test_a_store_that_ignores_the_condition_is_refused(store: LocalObjectStore) -> None:
    store.inject(Fault("unconditional"))

    with pytest.raises(ObjectStoreAccessError, match="ignores `If-None-Match`") as refused:
        probe(f"s3://{BUCKET}/master", SETTING)

    assert SETTING in refused.value.do


@pytest.mark.usefixtures("store")
def test_a_missing_bucket_is_named() -> None:
    with pytest.raises(ObjectStoreAccessError, match="has no bucket `puddle`") as refused:
        probe("s3://puddle/master", SETTING)

    assert SETTING in refused.value.do


def test_missing_rights_are_named(store: LocalObjectStore) -> None:
    store.inject(Fault("forbidden"))

    with pytest.raises(ObjectStoreAccessError, match="AccessDenied") as refused:
        probe(f"s3://{BUCKET}/master", SETTING)

    assert "AWS_" in refused.value.do


def test_a_store_that_throttles_is_waited_for_and_then_named(store: LocalObjectStore) -> None:
    store.inject(Fault("slow_down"))

    with pytest.raises(ObjectStoreUnavailableError, match="limits the rate of requests: SlowDown"):
        probe(f"s3://{BUCKET}/master", SETTING)

    assert store.faults >= 4


def test_a_probe_whose_answer_is_lost_is_no_reason_to_refuse(store: LocalObjectStore) -> None:
    store.inject(Fault("drop", times=1))

    probe(f"s3://{BUCKET}/master", SETTING)

    assert store.faults == 1


def test_unreachable_object_store_is_reported() -> None:
    use(ObjectStore("http://127.0.0.1:9", "us-east-1", path_style=True))

    with pytest.raises(ObjectStoreUnavailableError, match="does not answer"):
        probe(f"s3://{BUCKET}/master", SETTING)


@pytest.mark.usefixtures("store")
def test_a_table_that_cannot_be_opened_says_why_in_one_sentence() -> None:
    use(ObjectStore("http://127.0.0.1:9", "us-east-1", path_style=True))

    with pytest.raises(
        ObjectStoreUnavailableError, match=r"`s3://lake/master/.*` on the object store .* cannot be read"
    ):
        open_table(TABLE)
