"""The events that may explain what a publication changed, and the comparison of cells beside them.

By Spark, or, where the events are few, by Arrow in this process; see `batch_layer.computed`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.archived import archived
from batch_layer.arrow_events import Delivered, archived_table, columns_of, days_of, delivered, late_visits_of
from batch_layer.blocks import StoreDay, contributions, windowed
from batch_layer.deliveries import Deliveries, deliveries
from batch_layer.ledger.compare import COMPARED, LedgerComparer, Unit
from batch_layer.visits import late_visits
from master_dataset.kafka.growth import Move
from master_dataset.visits.rows import VISITS
from master_dataset.visits.visit import VisitRules
from views import registered_views
from views.arrow.contributions import EVENT_ROW, windows
from views.arrow.contributions import contributions as arrow_contributions
from views.arrow.expressions import Rows
from views.core.cells import WINDOW_KEY
from views.core.view import View

if TYPE_CHECKING:
    from batch_layer.master import Master
    from master_dataset.source import Source

_MICROSECOND = timedelta(microseconds=1)
_MORE = ("identity", "kind", "month")
_KEYS = ("store", "month")
_SCHEMA = from_arrow_schema(COMPARED)
_AT_ONCE = 256
"""Days, and partitions of speed rows, that are read together in this process. Bounds its memory."""
Compared = list[dict[str, Any]]
"""Rows of `COMPARED`."""


class ExplainingRules(NamedTuple):
    """By what changes are explained.

    Attributes:
        oldest: What was older on arrival speed leaves to batch (A of R5).
        visits: When sightings make a visit; what was not fresh is left to batch.
        moves: When stores moved to partitions that were added.
    """

    oldest: timedelta
    visits: VisitRules
    moves: Sequence[Move] = ()


@dataclass(frozen=True)
class Explained:
    """The events that may explain a change.

    Attributes:
        source: Their source.
        master: Its table.
        since: The cut before. Events received between both may explain a change.
        until: The cut after.
        rules: By what.
        days: UTC days of the events.
    """

    source: "Source[Any]"
    master: "Master"
    since: datetime
    until: datetime
    rules: ExplainingRules
    days: Collection[date]


class ExplainingEvents(Protocol):
    """The events of one source that may explain why a publication changed what was shown."""

    def wholly_waited(self, view: View) -> dict[StoreDay, int]:
        """Where all events waited, and how many: none was received before, and speed had to show none.

        Unknown for visits, because several events make one.
        """

    def compared(self, view: View, units: pa.Table, comparer: LedgerComparer, *, others: bool) -> Compared:
        """Compare `UNITS` of a view beside the events that contribute to them, of these kinds.

        `waited`: first deliveries that speed left to batch. `miskeyed`: every delivery of events met in two partitions.
        `others`: the rest of what was received, only if requested. `replaced`: visits of late sightings that
        are others now.
        """


class ExplainingTables:
    """Few events, in this process."""

    def __init__(self, of: Explained) -> None:
        """Read every delivery.

        Raises:
            TooManyBytesError: They need more memory than this process may take.
        """
        self._of = of
        self._archived = archived_table(of.source, of.master, of.days, columns_of(_views(of)))

    def wholly_waited(self, view: View) -> dict[StoreDay, int]:
        """See `ExplainingEvents`."""
        if view.counts_visits:
            return {}
        first = self._delivered.first
        known = first.filter(pc.less(first["received_at"], self._of.until))
        found = windows(view, Rows.of(known))
        keys = {"store": known["store"].take(found[EVENT_ROW]), "day": days_of(found[WINDOW_KEY])}
        waits, identities = (column.take(found[EVENT_ROW]) for column in (self._waits(known), known["identity"]))
        waited: dict[StoreDay, set[str]] = {}
        shown: set[StoreDay] = set()
        rows = (keys["store"], keys["day"], waits, identities)
        for store, day, is_waiting, identity in zip(*(each.to_pylist() for each in rows), strict=True):
            if is_waiting:
                waited.setdefault((store, day), set()).add(identity)
            else:
                shown.add((store, day))
        return {key: len(own) for key, own in waited.items() if key not in shown}

    def compared(self, view: View, units: pa.Table, comparer: LedgerComparer, *, others: bool) -> Compared:
        """See `ExplainingEvents`."""
        return compared_here(comparer, units, self.contributing(view, others=others))

    def contributing(self, view: View, *, others: bool) -> pa.Table:
        """What events add to the cells of the view, with `store`, `identity`, `month` and `kind`."""
        if view.counts_visits:
            return self._late(view)
        first = self._delivered.first
        received = first.filter(
            pc.and_(
                pc.greater_equal(first["received_at"], self._of.since), pc.less(first["received_at"], self._of.until)
            )
        )
        waits = self._waits(received)
        found = received.append_column("kind", pc.if_else(waits, "waited", "others"))
        repeats = self._delivered.repeats
        hashes = repeats.filter(repeats["is_miskeyed"])["identity_hash"].unique()
        met_twice = self._archived.filter(pc.is_in(self._archived["identity_hash"], value_set=hashes))
        miskeyed = met_twice.append_column("kind", pa.repeat(pa.scalar("miskeyed"), met_twice.num_rows))
        return _contributing(view, pa.concat_tables([found if others else found.filter(waits), miskeyed]))

    def _late(self, view: View) -> pa.Table:
        first, visits = self._delivered.first, self._of.rules.visits
        # When the last sighting of a device came is no part of its other visits.
        before, now = (
            Counter(_rows_of(late_visits_of(first, visits, each))) for each in (self._of.since, self._of.until)
        )
        kinds = [("waited", row) for row in (now - before).elements()]
        kinds += [("replaced", row) for row in (before - now).elements()]
        schema = VISITS.remove(VISITS.get_field_index("received_at"))
        rows = pa.Table.from_pylist([dict(row) for _, row in kinds], schema=schema)
        happened_ms = pc.divide(rows["happened_at"].cast(pa.int64()), 1000).cast(pa.string())
        named = pc.binary_join_element_wise(rows["device"], happened_ms, " ")
        rows = rows.append_column("identity", named)
        return _contributing(view, rows.append_column("kind", pa.array([kind for kind, _ in kinds], pa.string())))

    def _waits(self, rows: pa.Table) -> pa.ChunkedArray:
        received, happened = (rows[name].cast(pa.int64()) for name in ("received_at", "happened_at"))
        is_old = pc.greater(pc.subtract(received, happened), self._of.rules.oldest // _MICROSECOND)
        return pc.and_(pc.greater_equal(rows["received_at"], self._of.since), is_old)

    @cached_property
    def _delivered(self) -> Delivered:
        return delivered(self._archived, self._of.rules.moves)


def _views(of: Explained) -> list[View]:
    return [view for view in registered_views() if view.source.topic == of.source.topic]


def _rows_of(visits: pa.Table) -> Iterator[tuple[tuple[str, Any], ...]]:
    names = [name for name in visits.column_names if name != "received_at"]
    return (tuple(row.items()) for row in visits.select(names).to_pylist())


def _contributing(view: View, rows: pa.Table) -> pa.Table:
    found = arrow_contributions(view, Rows.of(rows))
    months = pc.floor_temporal(days_of(found[WINDOW_KEY]), unit="month").cast(pa.date32())
    found = found.append_column("month", months)
    for name in ("store", "identity", "kind"):
        found = found.append_column(name, rows[name].take(found[EVENT_ROW]))
    return found


def compared_here(comparer: LedgerComparer, units: pa.Table, events: pa.Table | None = None) -> Compared:
    """Compare units in this process. `events`: with `_KEYS`; None if none explain anything."""
    places, compared = _by_key(events) if events is not None else {}, Compared()
    for some in _groups(units.to_pylist()):
        rows = [places.get((unit["store"], unit["month"])) for unit in some]
        own = [None if events is None or row is None else events.take(row) for row in rows]
        compared += comparer.compare(list(zip(some, own, strict=True)))
    return compared


def _groups(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Units that are compared together: as many as have at most `_AT_ONCE` days and partitions, but at least one."""
    group, size = list[Unit](), 0
    for unit in units:
        own = len(unit["days"]) + len(unit["received"])
        if group and size + own > _AT_ONCE:
            yield group
            group, size = [], 0
        group.append(unit)
        size += own
    if group:
        yield group


def _by_key(events: pa.Table) -> dict[tuple[str, date], pa.Array]:
    """The places of the events of each unit."""
    rows = events.select(_KEYS).append_column("row", pa.array(range(events.num_rows), pa.int64()))
    grouped = rows.group_by(list(_KEYS), use_threads=False).aggregate([("row", "list")]).combine_chunks()
    keys = zip(grouped["store"].to_pylist(), grouped["month"].to_pylist(), strict=True)
    lists = grouped["row_list"].combine_chunks()
    return {key: lists[at].values for at, key in enumerate(keys)}


def compared_in_spark(comparer: LedgerComparer, units: pa.Table, spark: SparkSession) -> Compared:
    """Compare units that no events explain in Spark's workers."""

    def compare(units: pa.Table) -> pa.Table:  # Spark counts a function's arguments
        return comparer(units, None)

    return _rows(spark.createDataFrame(units).groupBy(*_KEYS).applyInArrow(compare, _SCHEMA))


class ExplainingFrames:
    """Events of any number, in Spark."""

    def __init__(self, of: Explained, spark: SparkSession) -> None:
        """Nothing is read yet."""
        self._of, self._spark = of, spark

    def wholly_waited(self, view: View) -> dict[StoreDay, int]:
        """See `ExplainingEvents`."""
        if view.counts_visits:
            return {}
        rows = windowed(view, self._deliveries.first.where(F.col("received_at") < F.lit(self._of.until)))
        counted = rows.groupBy("store", "_day").agg(
            F.count_distinct(F.when(self._waits, F.col("identity"))).alias("waited"),
            F.count_if(~self._waits).alias("others"),
        )
        waited = counted.where("others = 0").collect()
        return {(row["store"], row["_day"]): row["waited"] for row in waited}

    def compared(self, view: View, units: pa.Table, comparer: LedgerComparer, *, others: bool) -> Compared:
        """See `ExplainingEvents`."""
        frame = self._spark.createDataFrame(units)
        events = self.contributing(view, others=others)
        events = events.join(F.broadcast(frame.select(*_KEYS)), on=list(_KEYS), how="left_semi")

        def compare(units: pa.Table, found: pa.Table) -> pa.Table:
            return comparer(units, found)

        return _rows(frame.groupBy(*_KEYS).cogroup(events.groupBy(*_KEYS)).applyInArrow(compare, _SCHEMA))

    def contributing(self, view: View, *, others: bool) -> DataFrame:
        """What events add to the cells of the view, with `store`, `identity`, `month` and `kind`."""
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
        first, visits = self._deliveries.first, self._of.rules.visits
        # When the last sighting of a device came is no part of its other visits.
        before, now = (
            late_visits(first, visits, each).drop("received_at") for each in (self._of.since, self._of.until)
        )
        came, went = now.exceptAll(before), before.exceptAll(now)
        both = came.withColumn("kind", F.lit("waited")).unionByName(went.withColumn("kind", F.lit("replaced")))
        named = both.withColumn("identity", F.concat_ws(" ", "device", F.unix_millis("happened_at").cast("string")))
        return contributions(view, windowed(view, named).withColumn("month", F.trunc("_day", "month")), _MORE)

    @cached_property
    def _archived(self) -> DataFrame:
        return archived(self._spark, self._of.source, self._of.master, self._of.days)

    @cached_property
    def _deliveries(self) -> Deliveries:
        return deliveries(self._archived, self._of.rules.moves)

    @property
    def _received(self) -> Column:
        at = F.col("received_at")
        return (at >= F.lit(self._of.since)) & (at < F.lit(self._of.until))

    @property
    def _waits(self) -> Column:
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        return self._received & (age > self._of.rules.oldest // _MICROSECOND)


def _rows(compared: DataFrame) -> Compared:
    rows: Compared = compared.toArrow().to_pylist()
    return rows
