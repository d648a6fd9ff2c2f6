"""Checksum files of Spark after a power cut: an incomplete one must not make a complete file unreadable."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from master_dataset.delta.fsync import matches_checksum
from master_dataset.delta.history import MARK
from tests.integration.test_compaction import TODAY, Writer


def sums(table: str) -> list[Path]:
    """Of data files, in the order of their commits."""
    return sorted(Path(table).glob("day=*/.*.parquet.crc"), key=lambda path: path.stat().st_mtime_ns)


def data_of(sums: Path) -> Path:
    return sums.with_name(sums.name.removeprefix(".").removesuffix(".crc"))


def tear(file: Path, *, is_cut: bool) -> None:
    """As a disk leaves a file of several blocks, of which only the first had been written."""
    beginning, size = file.read_bytes()[:12], file.stat().st_size
    file.write_bytes(beginning if is_cut else beginning + bytes(size - len(beginning)))


def append_by_spark(writer: Writer) -> None:
    """Write the first micro-batch once more, as earlier releases wrote the second one."""
    rows = writer.spark.read.format("delta").load(writer.path)
    rows.write.format("delta").mode("append").option(MARK, "query 1").save(writer.path)


def count(spark: SparkSession, table: str) -> int:
    return len(spark.read.format("delta").load(table).select("offset").collect())


@pytest.mark.parametrize(("is_cut", "stays"), [(True, 2), pytest.param(False, 1, marks=pytest.mark.nightly)])
def test_incomplete_checksum_files_of_a_repeated_commit_do_no_harm(
    spark: SparkSession, tmp_path: Path, *, is_cut: bool, stays: int
) -> None:
    writer = Writer(spark, tmp_path)
    writer.append(TODAY)
    append_by_spark(writer)
    tear(sums(writer.path)[-1], is_cut=is_cut)
    with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
        count(spark, writer.path)

    writer.tables.roll_back_incomplete("pos_transactions", ["query 1"])

    assert count(spark, writer.path) == stays


def test_a_file_with_a_hole_is_found_by_the_checksums_of_its_pages_and_its_commit_is_taken_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = Writer(spark, tmp_path)
    writer.append(TODAY, 2)
    file = Path(max(DeltaTable(writer.path).file_uris(), key=lambda each: Path(each).stat().st_mtime_ns))
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])

    writer.tables.roll_back_incomplete("pos_transactions", ["query 1"])

    assert DeltaTable(writer.path).count() == 1


def test_sums_say_whether_a_file_is_whole_unless_they_are_not(spark: SparkSession, tmp_path: Path) -> None:
    writer = Writer(spark, tmp_path)
    writer.append(TODAY)
    append_by_spark(writer)
    [own] = sums(writer.path)
    file = data_of(own)

    whole = matches_checksum(file)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    changed = matches_checksum(file)
    own.write_bytes(own.read_bytes()[:-1])
    cut_short = matches_checksum(file)

    assert (whole, changed, cut_short) == (True, False, None)
