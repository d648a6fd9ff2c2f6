"""Deliveries that repeat an identity with another payload: conflicts, kept as dead letters.

They lie in a table of their own, one row per place, however often a day is rebuilt.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from master_dataset.tables import CONFLICTS, DEAD_LETTER_COLUMNS, MasterTables

if TYPE_CHECKING:
    from master_dataset.source import Source

SENTENCE = "Another record with the same identity was received first and has another content; the first one counts."
_PLACE = ["topic", "partition", "offset"]


def keep_conflicts(tables: MasterTables, source: "Source[Any]", repeats: DataFrame) -> dict[str, int]:
    """Append the conflicts among these repeats that are not kept yet. Gives back repeats, conflicts, miskeyed."""
    counted = repeats.agg(
        F.count("*").alias("repeats"),
        F.count_if("is_conflict").alias("conflicts"),
        F.count_if("is_miskeyed").alias("miskeyed"),
    ).collect()[0]
    if counted.conflicts:
        kept = (
            repeats.sparkSession.read.format("delta").load(tables.path(CONFLICTS)).where(F.col("topic") == source.topic)
        )
        letters = repeats.where("is_conflict").select(
            *_PLACE, "received_at",
            F.lit("conflicting_duplicate").alias("reason"), F.lit("").alias("field"), F.lit(SENTENCE).alias("sentence"),
            "key", "value",
            F.lit(None).cast(kept.schema["headers"].dataType).alias("headers"),
        )  # fmt: skip
        new = letters.join(kept.select(*_PLACE), on=_PLACE, how="left_anti").select(*DEAD_LETTER_COLUMNS)
        new.coalesce(1).write.format("delta").mode("append").save(tables.path(CONFLICTS))
    return {"repeats": counted.repeats, "conflicts": counted.conflicts, "miskeyed": counted.miskeyed}
