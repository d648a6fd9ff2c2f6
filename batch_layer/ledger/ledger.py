"""Writes the correction ledger of one change: of a publication, or of what a preview would publish.

differing   which blocks differ from those before, by their digests; what speed shows between the cuts
wholly new  nothing was shown of a store and day, and all its events waited: one entry says so
compared    the rest, cell by cell, beside the events that may explain it; again with all events where they do not
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import structlog
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.archived import archived
from batch_layer.blocks import StoreDay, contributions, windowed
from batch_layer.deliveries import Deliveries, deliveries
from batch_layer.ledger.change import BlockDifferences, Change, differing, digests, units
from batch_layer.ledger.compare import COMPARED, LedgerComparer
from batch_layer.ledger.correction import Ledgers, Summed, TotalsBuilder, Whole
from batch_layer.master import Master
from batch_layer.run import Digest
from batch_layer.speed_span import SpeedPartition, SpeedSpan
from batch_layer.visits import late_visits
from master_dataset.kafka.growth import Move
from master_dataset.visits.visit import VisitRules
from views.control.recompute import LedgerTotals
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from master_dataset.source import Source

_MICROSECOND = timedelta(microseconds=1)
_MORE = ("identity", "kind", "month")


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
class ExplainingEvents:
    """The events of one source that may explain why a publication changed what was shown.

    `since`, `until`: the cuts before and after; events received between both may explain a change. `days`: UTC days of
    the events.
    """

    spark: SparkSession
    source: "Source[Any]"
    master: Master
    since: datetime
    until: datetime
    rules: ExplainingRules
    days: Collection[date]

    def wholly_waited(self, view: View) -> dict[StoreDay, int]:
        """Where all events waited, and how many: none was received before, and speed had to show none.

        Unknown for visits, because several events make one.
        """
        if view.counts_visits:
            return {}
        rows = windowed(view, self._deliveries.first.where(F.col("received_at") < F.lit(self.until)))
        counted = rows.groupBy("store", "_day").agg(
            F.count_distinct(F.when(self._waits, F.col("identity"))).alias("waited"),
            F.count_if(~self._waits).alias("others"),
        )
        waited = counted.where("others = 0").collect()
        return {(row["store"], row["_day"]): row["waited"] for row in waited}

    def contributing(self, view: View, *, others: bool) -> DataFrame:
        """What events add to the cells of the view: `contributions`, identity, month, and `kind`.

        `waited`: first deliveries that speed left to batch. `miskeyed`: every delivery of events met in two partitions.
        `others`: the rest of what was received, only if requested. `replaced`: visits of late sightings that
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
        first, visits = self._deliveries.first, self.rules.visits
        # When the last sighting of a device came is no part of its other visits.
        before, now = (late_visits(first, visits, each).drop("received_at") for each in (self.since, self.until))
        came, went = now.exceptAll(before), before.exceptAll(now)
        both = came.withColumn("kind", F.lit("waited")).unionByName(went.withColumn("kind", F.lit("replaced")))
        named = both.withColumn("identity", F.concat_ws(" ", "device", F.unix_millis("happened_at").cast("string")))
        return contributions(view, windowed(view, named).withColumn("month", F.trunc("_day", "month")), _MORE)

    @cached_property
    def _archived(self) -> DataFrame:
        return archived(self.spark, self.source, self.master, self.days)

    @cached_property
    def _deliveries(self) -> Deliveries:
        return deliveries(self._archived, self.rules.moves)

    @property
    def _received(self) -> Column:
        at = F.col("received_at")
        return (at >= F.lit(self.since)) & (at < F.lit(self.until))

    @property
    def _waits(self) -> Column:
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        return self._received & (age > self.rules.oldest // _MICROSECOND)


log = structlog.get_logger()
_KEYS = ("store", "month")
_SCHEMA = from_arrow_schema(COMPARED)


@dataclass(frozen=True)
class Ledger:
    """`subject`: a run, or a publication's number. `rules`: by what changes are explained.

    `spark` is called if something is compared.
    """

    connect: "Callable[[], Session]"
    subject: str
    change: Change
    masters: Mapping[str, Master]
    rules: ExplainingRules
    spark: Callable[[], SparkSession]
    _events: dict[tuple[str, frozenset[date]], ExplainingEvents] = field(default_factory=dict)
    _partitions_by_view: dict[tuple[int, datetime, datetime], Mapping[str, list[SpeedPartition]]] = field(
        default_factory=dict
    )

    def write(self, views: Sequence[View], base: int, progress: Callable[[int, int, str], None]) -> LedgerTotals:
        """Write every line; returns what they add up to. Both layers must have read everything before both cuts."""
        sums, table = TotalsBuilder(), Ledgers(self.connect())
        for done, view in enumerate(views):
            progress(done, len(views), f"corrections of {view.name}")
            for some in self._of_view(view, table, table.begin(self.subject, view.name)):
                sums.add(view.name, some)
        totals = sums.totals()
        table.close(self.subject, self.subject, base, totals)
        progress(len(views), len(views), "corrections")
        return totals

    def _of_view(self, view: View, table: Ledgers, begun: int) -> Iterable[Summed]:
        received = self._received(view)
        found = self._differing(view)
        fixed = self.change.fixed_cause(view)
        new = {key: digest for key, digest in found.new.items() if key not in received}
        events: Mapping[StoreDay, int] = dict.fromkeys(new, 0)
        if new and fixed is None:
            events = self._events_of(view, view.days_read({day for _, day in new})).wholly_waited(view)
            new = {key: digest for key, digest in new.items() if key in events}
        _, after = self.change.runs(view.name)
        cause = fixed or "waited"
        wholes = ((*key, Whole(after[key[1]], cause, events[key])) for key in sorted(new))
        table.keep(self.subject, view.name, wholes, begun + 1)
        yield {cause: _added(view, new.values())} if new else {}
        compared_units = units((found.changed | found.new.keys()) - new.keys(), received)
        if compared_units.num_rows:
            shown, kept = self.change.spans(self.connect, view)
            runs = self.change.all_runs(view.name)
            comparer = LedgerComparer(self.connect, self.subject, view, *runs, shown, kept, fixed, begun + 1)
            yield from self._compared(view, compared_units, comparer)

    def _differing(self, view: View) -> BlockDifferences:
        before, after = self.change.runs(view.name)
        session = self.connect()
        return differing(digests(session, view.name, before), digests(session, view.name, after))

    def _received(self, view: View) -> Mapping[StoreDay, list[date]]:
        """What speed shows between the cuts, before or after: on which days it was received."""
        found: dict[StoreDay, list[date]] = {}
        for span in self.change.spans(self.connect, view):
            if span.since >= span.until:
                continue
            partitions = self._partitions(span).get(view.name, [])
            for partition, days in zip(partitions, span.days(partitions), strict=True):
                for day in days:
                    found.setdefault((partition.store, day), []).append(partition.received_day)
        return found

    def _partitions(self, span: SpeedSpan) -> Mapping[str, list[SpeedPartition]]:
        """By view; the keys of the whole table are listed once for all views."""
        key = (span.generation, span.since, span.until)
        if key not in self._partitions_by_view:
            found: dict[str, list[SpeedPartition]] = {}
            for each in span.partitions():
                found.setdefault(each.view, []).append(each)
            self._partitions_by_view[key] = found
        return self._partitions_by_view[key]

    def _compared(self, view: View, compared_units: pa.Table, comparer: LedgerComparer) -> Iterable[Summed]:
        compared = self._with_events(view, compared_units, comparer, others=False)
        unexplained = {(row["store"], row["month"]) for row in compared if row["open"]}
        yield from (msgspec.json.decode(row["totals"], type=Summed) for row in compared if not row["open"])
        if unexplained:
            log.warning("ledger.unexplained", subject=self.subject, view=view.name, units=len(unexplained))
            left = [row for row in compared_units.to_pylist() if (row["store"], row["month"]) in unexplained]
            again = pa.Table.from_pylist(left, schema=compared_units.schema)
            over = replace(comparer, stamp=comparer.stamp + 1)
            for row in self._with_events(view, again, over, others=True):
                yield msgspec.json.decode(row["totals"], type=Summed)

    def _with_events(
        self, view: View, compared_units: pa.Table, comparer: LedgerComparer, *, others: bool
    ) -> list[dict[str, Any]]:
        units_frame = self.spark().createDataFrame(compared_units)
        if comparer.fixed:
            return _rows(units_frame.groupBy(*_KEYS).applyInArrow(_without_events(comparer), _SCHEMA))
        days = {day for own in compared_units["days"].to_pylist() for day in own}
        events = self._events_of(view, view.days_read(days)).contributing(view, others=others)
        events = events.join(F.broadcast(units_frame.select(*_KEYS)), on=list(_KEYS), how="left_semi")
        return _rows(_cogrouped(units_frame, events, comparer))

    def _events_of(self, view: View, days: set[date]) -> ExplainingEvents:
        """Shared by all views of a source that need the same days, so that first deliveries are found once."""
        key = (view.source.topic, frozenset(days))
        if key not in self._events:
            master, since = self.masters[view.source.topic], self.change.before.cut
            self._events[key] = ExplainingEvents(
                self.spark(), view.source, master, since, self.change.until, self.rules, frozenset(days)
            )
        return self._events[key]


def _rows(compared: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = compared.toArrow().to_pylist()
    return rows


def _without_events(comparer: LedgerComparer) -> Callable[[pa.Table], pa.Table]:
    def compare(units: pa.Table) -> pa.Table:  # Spark counts a function's arguments
        return comparer(units, None)

    return compare


def _cogrouped(units_frame: DataFrame, events: DataFrame, comparer: LedgerComparer) -> DataFrame:
    def compare(units: pa.Table, found: pa.Table) -> pa.Table:
        return comparer(units, found)

    return units_frame.groupBy(*_KEYS).cogroup(events.groupBy(*_KEYS)).applyInArrow(compare, _SCHEMA)


def _added(view: View, new: Iterable[Digest]) -> tuple[int, dict[str, tuple[int, int]]]:
    """Of blocks that are wholly new."""
    listed = list(new)
    cells = sum(each.cells for each in listed)
    sums = zip(*(each.sums for each in listed), strict=True)
    return cells, {
        state: (cells, sum(value or 0 for value in own)) for state, own in zip(view.columns, sums, strict=True)
    }
