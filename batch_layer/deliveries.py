"""Which delivery of an event counts: of equal identities the least (received_at, partition, offset).

Duplicates are dropped over everything archived, before the cut selects (R4). The 64-bit hash only finds candidates, the
identity itself decides. Rows whose hash stands alone, nearly all of them, are never shuffled.
"""

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

BROADCAST_AT_MOST = 2_000_000
"""So many repeated hashes (8 bytes each) are sent to every executor instead of shuffling the events."""


@dataclass(frozen=True)
class Deliveries:
    """`first`: one row per event. `repeats`: every later delivery.

    A repeat has `is_conflict` (another payload than the first) and `is_miskeyed` (another partition than the first).
    """

    first: DataFrame
    repeats: DataFrame

    def release(self) -> None:
        """Free what was kept in memory."""
        self.repeats.unpersist()


def deliveries(archived: DataFrame) -> Deliveries:
    """Take apart the rows of whole days of one source's table."""
    repeated = archived.groupBy("identity_hash").count().where("count > 1").select("identity_hash")
    repeated = repeated.persist(StorageLevel.MEMORY_AND_DISK)
    if repeated.count() <= BROADCAST_AT_MOST:
        repeated = F.broadcast(repeated)
    alone = archived.join(repeated, on="identity_hash", how="left_anti")
    same = Window.partitionBy("identity").orderBy("received_at", "partition", "offset")
    ranked = (
        archived.join(repeated, on="identity_hash", how="left_semi")
        .withColumn("delivery", F.row_number().over(same))
        .withColumn("is_conflict", F.col("payload_hash") != F.first("payload_hash").over(same))
        .withColumn("is_miskeyed", F.col("partition") != F.first("partition").over(same))
    )
    columns = archived.columns
    first = alone.select(columns).unionByName(ranked.where("delivery = 1").select(columns))
    return Deliveries(first, ranked.where("delivery > 1"))
