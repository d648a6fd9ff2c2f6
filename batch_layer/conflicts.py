"""Deliveries that repeat an identity with another payload: conflicts, kept as dead letters.

They lie in a table of their own, one row per place, however often a day is rebuilt.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from batch_layer.deliveries import PLACE, small
from master_dataset.delta.tables import CONFLICTS, MasterTables

if TYPE_CHECKING:
    from master_dataset.source import Source

SENTENCE = "Another record with the same identity was received first and has another content; the first one counts."
_LETTER_PLACE = ["topic", "partition", "offset"]


class Repeats(NamedTuple):
    """How many deliveries repeat one before; of them those with another content, and those in another partition."""

    repeats: int
    conflicts: int
    miskeyed: int


def count_repeats(repeats: DataFrame) -> Repeats:
    """Of repeats as `Deliveries` has them."""
    counted = repeats.agg(F.count("*"), F.count_if("is_conflict"), F.count_if("is_miskeyed")).collect()[0]
    return Repeats(*counted)


def keep_conflicts(
    tables: MasterTables, source: "Source[Any]", archived: DataFrame, repeats: DataFrame, conflicts: int
) -> None:
    """Append those among these repeats that are not kept yet. `archived` has them whole; `conflicts`: how many."""
    if conflicts:
        kept = (
            repeats.sparkSession.read.format("delta").load(tables.path(CONFLICTS)).where(F.col("topic") == source.topic)
        )
        places = repeats.where("is_conflict").select(PLACE)
        whole = archived.join(small(places, conflicts), on=PLACE, how="left_semi")
        letters = whole.dropDuplicates(_LETTER_PLACE).select(
            *_LETTER_PLACE,
            "received_at",
            F.lit("conflicting_duplicate").alias("reason"),
            F.lit("").alias("field"),
            F.lit(SENTENCE).alias("sentence"),
            "key",
            "value",
            F.lit(None).cast(kept.schema["headers"].dataType).alias("headers"),
        )
        tables.append_conflicts(letters.join(kept.select(*_LETTER_PLACE), on=_LETTER_PLACE, how="left_anti"))
