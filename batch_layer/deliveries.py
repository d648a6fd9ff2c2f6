"""The delivery of an event that counts: within a partition the lowest offset, across partitions the one received first.

Duplicates are dropped over everything archived, before the cut selects (R4). The 64-bit hash only finds candidates, the
identity itself decides. Whole events are never shuffled: the places of later deliveries are found once, from narrow
columns of the few rows whose hash is not unique, and left out of every scan.

Deliveries that repeat an identity with another payload are conflicts. They are kept as dead letters in a table of their
own, one row per place, however often a day is rebuilt.
"""

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.delta.tables import CONFLICTS, MasterTables, dead_letter_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from master_dataset.kafka.growth import Move
    from master_dataset.source import Source

BROADCAST_AT_MOST = 2_000_000
"""Up to this many narrow rows are broadcast instead of shuffling the events."""

_SUSPECT = ["day", "identity_hash"]
PLACE = ["identity_hash", "partition", "offset"]
"""Identifies a delivery in its table, even if the topic was recreated and its offsets start at 0 again."""
LATER = [*PLACE, "day", "received_at"]
"""The columns that are kept of a repeat."""


@dataclass(frozen=True)
class Deliveries:
    """`first`: one row per event. `repeats`: a narrow row for every later delivery, kept in memory.

    A repeat has its place, `received_at`, `is_conflict` (another payload than the first) and `is_miskeyed` (another
    partition than the first, although the store did not move there when partitions were added). `kept` is what was kept
    in memory for both.
    """

    first: DataFrame
    repeats: DataFrame
    kept: DataFrame

    def release(self) -> None:
        """Free what was kept in memory."""
        self.kept.unpersist()


def deliveries(archived: DataFrame, moves: "Sequence[Move]" = ()) -> Deliveries:
    """Separate first deliveries from repeats, for whole days of one source's table.

    `moves`: when stores moved to partitions that were added.

    Equal identities always lie in one day. Few Spark jobs: each takes a second in a JVM that has just started, even for
    a few thousand rows.
    """
    twice = archived.groupBy(_SUSPECT).count().where("count > 1").select(_SUSPECT).persist(StorageLevel.MEMORY_AND_DISK)
    days = {row.day: row.number for row in twice.groupBy("day").agg(F.count("*").alias("number")).collect()}
    if not days:
        none = archived.where("false").selectExpr(*LATER, "false AS is_conflict", "false AS is_miskeyed")
        return Deliveries(archived, none, twice)
    suspected = archived.where(F.col("day").isin(list(days)))
    candidates = suspected.join(small(twice, sum(days.values())), on=_SUSPECT, how="left_semi")
    later = _later(candidates, moves).persist(StorageLevel.MEMORY_AND_DISK)
    found = later.agg(F.count("*").alias("later"), F.count_if("is_copy").alias("copies")).collect()[0]
    twice.unpersist()
    left_out = small(later.select(PLACE), found.later)
    first = archived.join(left_out, on=PLACE, how="left_anti").select(archived.columns)
    if found.copies:
        copies = small(later.where("is_copy").select(PLACE), found.copies)
        once = suspected.join(copies, on=PLACE, how="left_semi").dropDuplicates(PLACE)
        first = first.unionByName(once.select(archived.columns))
    repeats = later.where("not is_copy").drop("is_copy")
    return Deliveries(first, repeats.dropDuplicates(PLACE), later)  # places may be archived twice


def _later(candidates: DataFrame, moves: "Sequence[Move]") -> DataFrame:
    """Every row after the first of its identity. `is_copy`: the first delivery itself, archived a second time.

    An archive that lost its checkpoint continues from its recorded positions, and may archive some records twice.
    """
    home = Window.partitionBy("identity", "partition").orderBy("offset")
    # Timestamps may step back, and speed goes by offset. Otherwise the two layers could count different deliveries
    # (R3).
    rows = candidates.withColumn("_met", F.first("received_at").over(home))
    same = Window.partitionBy("identity").orderBy("_met", "partition", "offset")
    here, first, met = F.col("partition"), F.first("partition").over(same), F.first("_met").over(same)
    is_elsewhere = [(here % before != first) | (met >= F.lit(at)) for before, at in moves]
    ranked = rows.select(
        *LATER,
        F.row_number().over(same).alias("delivery"),
        F.struct("partition", "offset")
        .eqNullSafe(F.first(F.struct("partition", "offset")).over(same))
        .alias("is_copy"),
        (F.col("payload_hash") != F.first("payload_hash").over(same)).alias("is_conflict"),
        reduce(and_, is_elsewhere, here != first).alias("is_miskeyed"),
    )
    return ranked.where("delivery > 1").drop("delivery")


def small(rows: DataFrame, number: int) -> DataFrame:
    """Broadcast the rows if they are few enough."""
    return F.broadcast(rows) if number <= BROADCAST_AT_MOST else rows


SENTENCE = "Another record with the same identity but different content was received first; the first one counts."
DEAD_LETTER_PLACE = ["topic", "partition", "offset"]
"""Identifies a dead letter."""


class Repeats(NamedTuple):
    """How many deliveries repeat an earlier one, and how many of these have a different payload or partition."""

    repeats: int
    conflicts: int
    miskeyed: int


def count_repeats(repeats: DataFrame) -> Repeats:
    """Count the repeats of `Deliveries`."""
    counted = repeats.agg(F.count("*"), F.count_if("is_conflict"), F.count_if("is_miskeyed")).collect()[0]
    return Repeats(*counted)


def keep_conflicts(
    tables: MasterTables, source: "Source[Any]", archived: DataFrame, repeats: DataFrame, conflicts: int
) -> None:
    """Keep the conflicts among these repeats that are not kept yet. `archived` has the whole rows."""
    kept = tables.positions(repeats.sparkSession, CONFLICTS, source.topic)
    headers = from_arrow_schema(dead_letter_schema(source))["headers"].dataType
    places = repeats.where("is_conflict").select(PLACE)
    whole = archived.join(small(places, conflicts), on=PLACE, how="left_semi")
    dead_letters = whole.dropDuplicates(DEAD_LETTER_PLACE).select(
        *DEAD_LETTER_PLACE,
        "received_at",
        F.lit("conflicting_duplicate").alias("reason"),
        F.lit("").alias("field"),
        F.lit(SENTENCE).alias("sentence"),
        "key",
        "value",
        F.lit(None).cast(headers).alias("headers"),
    )
    tables.append_conflicts(source, dead_letters.join(kept, on=DEAD_LETTER_PLACE, how="left_anti"))
