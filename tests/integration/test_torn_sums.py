"""The sums that Spark keeps beside its files, after a power cut: a torn one must not make a whole file unreadable."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.integration.test_compaction import TODAY, Writer


def sums(table: str) -> list[Path]:
    """Of data files, in the order of their commits."""
    return sorted(Path(table).glob("day=*/.*.parquet.crc"), key=lambda path: path.stat().st_mtime_ns)


def tear(file: Path) -> None:
    """As a disk leaves a file of several blocks, of which only the first had been written."""
    beginning = file.read_bytes()[:8]
    file.write_bytes(beginning + bytes(file.stat().st_size - len(beginning)))


def count(spark: SparkSession, table: str) -> int:
    return spark.read.format("delta").load(table).select("offset").distinct().count()


def test_whole_files_of_the_commit_that_comes_again_are_read_without_their_torn_sums(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = Writer(spark, tmp_path)
    writer.append(TODAY, 2)
    tear(sums(writer.path)[-1])
    with pytest.raises(Py4JJavaError, match="FAILED_READ_FILE"):
        count(spark, writer.path)

    writer.tables.take_back_torn("pos_transactions", "query 1")

    assert count(spark, writer.path) == 2
