"""The events that may explain why a publication changed what was shown: of one source, received between both cuts."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from batch_layer.archived import archived
from batch_layer.blocks import contributions, windowed
from batch_layer.deliveries import Deliveries, deliveries
from batch_layer.ledger.correction import Place
from batch_layer.recompute.touched import Master
from batch_layer.visits import late_visits
from master_dataset.visits.visit import VisitRules
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.source import Source

_MICROSECOND = timedelta(microseconds=1)
_MORE = ("identity", "kind", "month")


class Ages(NamedTuple):
    """What speed leaves to batch: what was older than `oldest` on arrival (A of R5), for visits what was not fresh."""

    oldest: timedelta
    visits: VisitRules


@dataclass(frozen=True)
class Facts:
    """`since` and `until`: the cuts of both sides. `days`: UTC days of the events."""

    spark: SparkSession
    source: "Source[Any]"
    master: Master
    since: datetime
    until: datetime
    ages: Ages
    days: Collection[date]

    def wholly_waited(self, view: View) -> dict[Place, int]:
        """Where all events waited, and how many: none was received before, and speed had to show none.

        Of visits it is not told, as several events make one.
        """
        if view.counts_visits:
            return {}
        rows = windowed(view, self._deliveries.first.where(F.col("received_at") < F.lit(self.until)))
        counted = rows.groupBy("store", "_day").agg(
            F.count_distinct(F.when(self._waits, F.col("identity"))).alias("waited"),
            F.count_if(~self._waits).alias("others"),
        )
        places = counted.where("others = 0").collect()
        return {(row["store"], row["_day"]): row["waited"] for row in places}

    def contributing(self, view: View, *, others: bool) -> DataFrame:
        """What events add to the cells of the view: `contributions`, identity, month, and `kind`.

        `waited`: first deliveries that speed left to batch. `miskeyed`: every delivery of events met in two partitions.
        `others`: the rest of what was received, only if they are asked for. `replaced`: visits of late sightings that
        are others now.
        """
        if view.counts_visits:
            return self._late(view)
        first = self._deliveries.first.where(self._received)
        kinds = F.when(self._waits, "waited").otherwise("others")
        found = (
            first.withColumn("kind", kinds) if others else first.where(self._waits).withColumn("kind", F.lit("waited"))
        )
        hashes = self._deliveries.repeats.where("is_miskeyed").select("identity_hash").distinct()
        met_twice = self._archived.join(F.broadcast(hashes), on="identity_hash", how="left_semi")
        both = found.unionByName(met_twice.select(first.columns).withColumn("kind", F.lit("miskeyed")))
        rows = windowed(view, both).withColumn("month", F.trunc("_day", "month"))
        return contributions(view, rows, _MORE)

    def _late(self, view: View) -> DataFrame:
        """What late sightings make now and made before: an old visit may have become a longer one."""
        first, rules = self._deliveries.first, self.ages.visits
        # When the last sighting of a device came is no part of its other visits.
        before, now = (late_visits(first, rules, each).drop("received_at") for each in (self.since, self.until))
        came, went = now.exceptAll(before), before.exceptAll(now)
        both = came.withColumn("kind", F.lit("waited")).unionByName(went.withColumn("kind", F.lit("replaced")))
        named = both.withColumn("identity", F.concat_ws(" ", "device", F.unix_millis("happened_at").cast("string")))
        return contributions(view, windowed(view, named).withColumn("month", F.trunc("_day", "month")), _MORE)

    @cached_property
    def _archived(self) -> DataFrame:
        return archived(self.spark, self.source, self.master, self.days)

    @cached_property
    def _deliveries(self) -> Deliveries:
        return deliveries(self._archived)

    @property
    def _received(self) -> Column:
        at = F.col("received_at")
        return (at >= F.lit(self.since)) & (at < F.lit(self.until))

    @property
    def _waits(self) -> Column:
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        return self._received & (age > self.ages.oldest // _MICROSECOND)
