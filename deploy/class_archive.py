"""An archive of the Java classes that Spark loads: with it, Java needs less processor time to start Spark.

`galatea jars` makes it once for each installation. Java writes it at the end of a session that has done what sessions
do. It checks by itself that an archive belongs to its version and to the jars, and starts as usual if not.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.jars import jar_paths, spark_parts
from deploy.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deploy.settings import Settings

FOLDER = Path(sys.prefix) / "share" / "galatea"
"""Beside the packages, whose jars are in it as well: it is removed with them."""
_MAKES = "JDK_JAVA_OPTIONS"
"""A variable with options that every `java` adds to its own."""
_SECONDS = 600
_KAFKA = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def class_archive(jars: Sequence[str]) -> Path:
    """Return where the archive is, or would be, for this Java and these jars beside those of Spark."""
    names = "\n".join((find_java().version, str(find_java().home), *jars))
    return FOLDER / f"spark-{hashlib.sha256(names.encode()).hexdigest()[:16]}.jsa"


def archive_option(jars: Sequence[str]) -> str:
    """Return the option that lets Java use the archive; empty if none has been made."""
    archive = class_archive(jars)
    return f"-XX:SharedArchiveFile={archive}" if archive.exists() else ""


def make_class_archive(settings: "Settings") -> str:
    """Make the archive if there is none, and remove those of other jars.

    Returns:
        Why there is none, for nothing needs it; empty if there is one. Java makes none if it has no archive of its own
        classes, on which this one builds.
    """
    archive = class_archive(_jars(settings))
    if archive.exists():
        return ""
    part = archive.with_suffix(f".{os.getpid()}")
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        part.touch()
    except OSError as error:
        return f"`{FOLDER}` cannot be written: {error.strerror}"
    part.unlink()
    with tempfile.TemporaryDirectory() as home:
        local = {"GALATEA_HOME": home, "GALATEA_SPARK_MASTER": "local[2]", _MAKES: f"-XX:ArchiveClassesAtExit={part}"}
        try:
            subprocess.run(
                [sys.executable, "-m", "deploy.class_archive"],
                env={**os.environ, **local},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            part.unlink(missing_ok=True)
            return f"Spark did not start: {error.stdout[-500:]}"
        except subprocess.TimeoutExpired:
            part.unlink(missing_ok=True)
            return f"Spark has not ended after {_SECONDS} s"
    if not part.exists():
        return "this Java can make none"
    for former in FOLDER.glob("spark-*.jsa"):
        former.unlink(missing_ok=True)
    part.replace(archive)
    return ""


def _jars(settings: "Settings") -> list[str]:
    return [str(path) for part in spark_parts(settings) for path in jar_paths(part, settings)]


def _load_classes() -> None:
    """Do in one session what streams and recomputes do, and end Java, which then writes what it has loaded."""
    from pyspark import SparkContext  # noqa: PLC0415 - slow to import

    from deploy.settings import Settings  # noqa: PLC0415 - likewise
    from deploy.spark import Work, spark_session  # noqa: PLC0415 - it imports this module

    settings = Settings()
    spark = spark_session(settings, "classes", Work.STREAM, memory_mb=512, partitions=2)
    table = str(settings.home / "table")
    rows = spark.range(1000).selectExpr("id", "id % 7 AS store", "CAST(id AS STRING) AS value", "current_date() AS day")
    rows.write.format("delta").partitionBy("day").save(table)
    read = spark.read.format("delta").load(table)
    read.join(read.groupBy("store").count(), "store").orderBy("id").write.format("delta").mode("append").save(
        f"{table}-2"
    )
    counted = read.mapInArrow(lambda batches: batches, read.schema).groupBy("store").count()
    counted.write.format("noop").mode("overwrite").save()
    stream = spark.readStream.format("delta").load(table).writeStream.trigger(availableNow=True)
    stream.foreachBatch(_count).option("checkpointLocation", f"{table}-3").start().awaitTermination()
    gateway = SparkContext._gateway  # noqa: SLF001 - no other way to end Java
    if gateway is None:
        raise RuntimeError("Spark has started no Java")
    gateway.jvm.java.lang.Class.forName(_KAFKA)
    process = gateway.proc
    spark.stop()
    process.stdin.close()
    process.wait()


def _count(batch: "DataFrame", _number: int) -> None:
    batch.count()


if __name__ == "__main__":
    _load_classes()
