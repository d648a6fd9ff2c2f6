"""A source's table at one version as Spark sees it.

Spark's Delta reader replays the table's log in jobs of its own, which takes four seconds in a Java that has just
started, whatever is asked for. delta-rs has read the log for the plan, so Spark is given the files that it names.
"""

import re
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.appended import files_at
from batch_layer.recompute.touched import Master
from master_dataset.delta.lost_files import refuse_lost
from master_dataset.delta.tables import event_schema

if TYPE_CHECKING:
    from master_dataset.source import Source

PLAIN = 1
"""The reader version of tables whose rows are all the rows of their files."""


def archived(spark: SparkSession, source: "Source[Any]", master: Master, days: Collection[date] = ()) -> DataFrame:
    """The rows of these days, or of all; the columns of `event_schema`. MasterFileLost if a file of them is gone.

    What is found broken only when it is read: `batch_layer.reading`.
    """
    table = DeltaTable(master.path, version=master.version)
    files = table.file_uris(file_pruning_predicate=[("day", "in", sorted(days))] if days else None)
    if not _are_plain(master.path, files) or table.protocol().min_reader_version > PLAIN:
        rows = spark.read.format("delta").option("versionAsOf", master.version).load(master.path)
        return rows.where(rows.day.isin(sorted(days))) if days else rows
    schema = from_arrow_schema(event_schema(source))
    if not files:
        return spark.createDataFrame([], schema)
    sizes = {f"{master.path}/{file.path}": file.size for file in files_at(master.path, master.version)}
    refuse_lost(master.path, {file: sizes[file] for file in files})
    return spark.read.schema(schema).option("basePath", master.path).parquet(*files).select(schema.names)


def _are_plain(path: str, files: Collection[str]) -> bool:
    """Whether Spark finds them under these names: in a folder, not by a link, nothing encoded, and no pattern."""
    return not re.search(r"://|[*?{}\[\]\\]", path) and all(file.startswith(f"{path}/") for file in files)
