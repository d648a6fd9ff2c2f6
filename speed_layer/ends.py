"""Up to where a micro-batch reads: what Spark wrote down before it ran it, and reads again to replay it."""

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from speed_layer.generation import Offsets

_VERSION = "v1"
_NO_DATA = "-"
"""What a source that has never had a record writes."""


def read_ends(spark: "SparkSession", checkpoint: str, micro_batch: int) -> "Offsets":
    """The offsets behind the last record of each partition, on whatever file system the checkpoint lies."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]  # noqa: SLF001 - Spark's only way
    path = hadoop.Path(f"{checkpoint}/offsets/{micro_batch}")
    stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)  # noqa: SLF001
    try:
        text: str = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")  # type: ignore[union-attr]  # noqa: SLF001
    finally:
        stream.close()
    return ends_in(text)


def ends_in(offset_log: str) -> "Offsets":
    """Of the text of an entry of Spark's offset log: its version, its metadata, then a line per source.

    ValueError for another version than the one that Spark 4.2 writes.
    """
    version, _, *sources = offset_log.splitlines()
    if version != _VERSION:
        raise ValueError(f"Spark's offset log says `{version}`, known is `{_VERSION}`")
    told = (orjson.loads(line) for line in sources if line != _NO_DATA)
    return {
        topic: {int(partition): offset for partition, offset in own.items()}
        for line in told
        for topic, own in line.items()
    }
