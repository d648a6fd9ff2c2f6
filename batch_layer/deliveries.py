"""Which delivery of an event counts: in a partition the least offset, of several partitions the one received first.

Duplicates are dropped over everything archived, before the cut selects (R4). The 64-bit hash only finds candidates, the
identity itself decides. Whole events are never shuffled: the places of later deliveries are found once, from narrow
columns of the few rows whose hash is not alone, and left out of every scan.
"""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

BROADCAST_AT_MOST = 2_000_000
"""So many rows of a few numbers are sent to every executor instead of shuffling the events."""

_SUSPECT = ["day", "identity_hash"]
_PLACE = ["identity_hash", "partition", "offset"]
"""With the hash, so that places differ also when a topic was made anew and counts from 0 again."""


@dataclass(frozen=True)
class Deliveries:
    """`first`: one row per event. `repeats`: every later delivery.

    A repeat has `is_conflict` (another payload than the first) and `is_miskeyed` (another partition than the first).
    `kept` is what was kept in memory for both.
    """

    first: DataFrame
    repeats: DataFrame
    kept: DataFrame

    def release(self) -> None:
        """Free what was kept in memory."""
        self.kept.unpersist()


def deliveries(archived: DataFrame) -> Deliveries:
    """Take apart the rows of whole days of one source's table. Equal identities always lie in one day."""
    twice = archived.groupBy(_SUSPECT).count().where("count > 1").select(_SUSPECT).persist(StorageLevel.MEMORY_AND_DISK)
    days = [row.day for row in twice.select("day").distinct().collect()]
    if not days:
        none = archived.where("false").selectExpr("*", "false AS is_conflict", "false AS is_miskeyed")
        return Deliveries(archived, none, twice)
    suspected = archived.where(F.col("day").isin(days))
    later = _later(suspected.join(_small(twice), on=_SUSPECT, how="left_semi")).persist(StorageLevel.MEMORY_AND_DISK)
    left_out = _small(later.select(_PLACE))
    twice.unpersist()
    first = archived.join(left_out, on=_PLACE, how="left_anti").select(archived.columns)
    copies = later.where("is_copy").select(_PLACE).distinct()
    if copies.count():
        once = suspected.join(F.broadcast(copies), on=_PLACE, how="left_semi").dropDuplicates(_PLACE)
        first = first.unionByName(once.select(archived.columns))
    repeats = later.where("not is_copy").drop("is_copy").dropDuplicates(_PLACE)
    return Deliveries(first, suspected.join(_small(repeats), on=_PLACE).dropDuplicates(_PLACE), later)


def _later(candidates: DataFrame) -> DataFrame:
    """Every row behind the first of its identity. `is_copy`: the first delivery itself, archived once more.

    An archive that lost its checkpoint goes on at its recorded positions and may keep some places twice.
    """
    home = Window.partitionBy("identity", "partition").orderBy("offset")
    # Stamps may step back, and speed goes by offset: else it would count the one and batch the other (R3).
    met = candidates.withColumn("_met", F.first("received_at").over(home))
    same = Window.partitionBy("identity").orderBy("_met", "partition", "offset")
    ranked = met.select(
        *_PLACE,
        F.row_number().over(same).alias("delivery"),
        F.struct("partition", "offset")
        .eqNullSafe(F.first(F.struct("partition", "offset")).over(same))
        .alias("is_copy"),
        (F.col("payload_hash") != F.first("payload_hash").over(same)).alias("is_conflict"),
        (F.col("partition") != F.first("partition").over(same)).alias("is_miskeyed"),
    )
    return ranked.where("delivery > 1").drop("delivery")


def _small(rows: DataFrame) -> DataFrame:
    return F.broadcast(rows) if rows.count() <= BROADCAST_AT_MOST else rows
