"""Compaction leaves days whose rows are so large that delta-rs would need too much memory to merge them."""

from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from structlog.testing import capture_logs

from master_dataset.delta import compaction
from master_dataset.delta.compaction import Compaction

LARGE, USUAL = date(2026, 3, 6), date(2026, 3, 7)
MEGABYTE = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Four small files of each day: of one day with rows of a megabyte, which compress to nothing."""
    path = str(tmp_path / "Läden 1")
    for day, size in ((LARGE, MEGABYTE), (USUAL, 100)):
        for number in range(4):
            rows = pa.table({"day": [day], "value": [b"%d" % number * size]})
            write_deltalake(path, rows, mode="append", partition_by=["day"])
    return path


def files(path: str) -> Counter[date]:
    return Counter(pa.table(DeltaTable(path).get_add_actions(flatten=True))["partition.day"].to_pylist())


@pytest.mark.parametrize(("most", "left"), [(3 * MEGABYTE, 4), (5 * MEGABYTE, 1)])
def test_a_day_of_large_rows_is_left_as_it_is_and_named(
    path: str, monkeypatch: pytest.MonkeyPatch, most: int, left: int
) -> None:
    monkeypatch.setattr(compaction, "MOST_BYTES_AT_ONCE", most)

    with capture_logs() as logs:
        Compaction(lambda: None, 7).run(path, lambda *_: None)

    assert files(path) == {LARGE: left, USUAL: 1}
    named = [(each["day"], each["table"]) for each in logs if each["event"] == "master.not_compacted"]
    assert named == [("2026-03-06", "Läden 1")] * (left > 1)


def test_only_as_many_rows_count_as_are_decoded_at_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_BYTES_AT_ONCE", 3 * MEGABYTE)
    monkeypatch.setattr(compaction, "ROWS_AT_ONCE", 2)

    Compaction(lambda: None, 7).run(path, lambda *_: None)

    assert files(path) == {LARGE: 1, USUAL: 1}
