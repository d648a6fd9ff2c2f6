"""A source's table at one version, as a Spark DataFrame.

Spark's Delta reader replays the table's log in jobs of its own, which takes four seconds in a JVM that has just
started. delta-rs has read the log for the plan, so Spark is given the files that it names.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.master import Master
from master_dataset.delta.dataset import check_files, file_lost, sizes_of
from master_dataset.delta.tables import MasterTables, event_schema
from master_dataset.errors import ObjectStoreUnavailableError
from master_dataset.object_store import is_remote, object_store, spark_uri
from master_dataset.storage import exists, open_table

if TYPE_CHECKING:
    from master_dataset.source import Source

PLAIN = 1
"""The reader version of tables whose rows are all the rows of their files."""


def archived(spark: SparkSession, source: "Source[Any]", master: Master, days: Collection[date] = ()) -> DataFrame:
    """The rows of these days, or of all, with the columns of `event_schema`; null in those that their version lacks.

    Raises:
        MasterFileLostError: A file of them is missing. Damaged files are found when they are read, see
            `report_unreadable_files`.
    """
    table = open_table(master.path, master.version)
    files = table.file_uris(file_pruning_predicate=[("day", "in", sorted(days))] if days else None)
    schema = from_arrow_schema(event_schema(source))
    if not _are_plain(master.path, files) or table.protocol().min_reader_version > PLAIN:
        rows = spark.read.format("delta").option("versionAsOf", master.version).load(spark_uri(master.path))
        rows = rows.where(rows.day.isin(sorted(days))) if days else rows
        lacking = {each.name: F.lit(None).cast(each.dataType) for each in schema if each.name not in rows.columns}
        return rows.withColumns(lacking).select(schema.names)
    if not files:
        return spark.createDataFrame([], schema)
    sizes, names = sizes_of(table), [file.removeprefix(f"{master.path}/") for file in files]
    check_files(master.path, {name: sizes[name] for name in names})
    rows = spark.read.schema(schema).option("basePath", spark_uri(master.path)).parquet(*map(spark_uri, files))
    return rows.select(schema.names)


def _are_plain(path: str, files: Collection[str]) -> bool:
    """Whether Spark finds the files by name: no URI of a folder, no link, no encoded characters, no glob pattern."""
    is_named = is_remote(path) or "://" not in path
    return is_named and not re.search(r"[*?{}\[\]\\]", path) and all(file.startswith(f"{path}/") for file in files)


_CANNOT_READ = re.compile(
    r"\[(?:FAILED_READ_FILE|PATH_NOT_FOUND|CANNOT_READ_FILE_FOOTER)[^\]]*\].*?(?:file:/*|s3a:/)(/\S+\.parquet)"
)
_DAMAGED = re.compile(r"(?i)checksum|corrupt|not a parquet file|crc")
"""What Spark says of a file that is there and was read, but not of a network that failed."""


@contextmanager
def report_unreadable_files(tables: MasterTables) -> Iterator[None]:
    """Replace an error of Spark that names a file of these tables which it cannot read.

    Raises:
        MasterFileLostError: The file is gone or damaged.
        ObjectStoreUnavailableError: It is there, and its object store did not answer in time, or refused.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _CANNOT_READ.search(str(error))
        if found is None:
            raise
        file = f"{'s3:/' if is_remote(tables.root) else ''}{unquote(found[1])}"
        if is_remote(file) and not _DAMAGED.search(str(error)) and exists(file):
            message = f"`{file}` could not be read from {object_store().shown}, although it is there"
            raise ObjectStoreUnavailableError(message, do="galatea doctor; then run it again") from error
        table = next((part for part in file.removeprefix(f"{tables.root}/").split("/") if part), "")
        raise file_lost(tables.path(table), file, "cannot be read") from error
