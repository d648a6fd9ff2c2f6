"""The rows of a portion of a rebuild: by Spark, or, where they are few, by Arrow in this process.

A day of a chain is computed in Arrow before Spark has started. A year of it needs all cores, and bounded memory.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from batch_layer.archived import archived
from batch_layer.arrow_events import (
    CountedTables,
    archived_table,
    cell_batches,
    columns_of,
    delivered,
    keep_conflicts_of,
    repeats_counted,
    unless_too_large,
)
from batch_layer.blocks import Extent, batches_for, cells_used
from batch_layer.deliveries import Repeats, count_repeats, deliveries, keep_conflicts
from batch_layer.run import Apply, RunWriter, run_schema
from batch_layer.visits import CountedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from batch_layer.master import Master
    from master_dataset.delta.tables import MasterTables
    from master_dataset.kafka.growth import Move
    from master_dataset.source import Source
    from master_dataset.visits.visit import VisitRules
    from views.core.view import View

log = structlog.get_logger()


def are_few(master: "Master", days: Collection[date], few: int) -> bool:
    """Whether these days have at most `few` rows; never if that is 0. 250,000 take some hundred megabytes."""
    events = master.events_by_day()
    return bool(few) and sum(events.get(day, 0) for day in days) <= few


@dataclass(frozen=True)
class PortionEvents:
    """The events that a portion is computed from.

    Attributes:
        source: Their source.
        master: Its table.
        days_read: The days that are read.
        days: The days that are computed: repeats of other days are counted in their own portion.
        cut: Events received then or later do not count.
        rules: When sightings make a visit.
        moves: When stores moved to partitions that were added.
        views: What is computed.
    """

    source: "Source[Any]"
    master: "Master"
    days_read: Collection[date]
    days: Collection[date]
    cut: datetime
    rules: "VisitRules"
    moves: "Sequence[Move]"
    views: "Sequence[View]"


class ComputedPortion(Protocol):
    """The rows of a portion."""

    @property
    def repeats(self) -> Repeats:
        """How many deliveries repeat an earlier one, of those received before the cut on the portion's days."""

    def keep_conflicts(self, tables: "MasterTables") -> None:
        """Keep the conflicts among the repeats."""

    def rows(self, view: "View", days: Collection[date]) -> Apply:
        """Applies a writer to the cell rows of these days."""

    def release(self) -> None:
        """Free what was kept in memory."""


class ArrowPortion:
    """A small portion, in this process."""

    def __init__(self, of: PortionEvents) -> None:
        """Read every delivery, and find the first ones.

        Raises:
            TooManyBytesError: They need more memory than this process may take.
        """
        self._of = of
        archived = archived_table(of.source, of.master, of.days_read, columns_of(of.views))
        needs_all = any(view.counts_visits for view in of.views)
        # Every delivery is kept only if a view needs more than the first ones.
        self._archived = archived if needs_all else archived.schema.empty_table()
        self._found = delivered(archived, of.moves)

    @cached_property
    def repeats(self) -> Repeats:
        """See `ComputedPortion`."""
        return repeats_counted(self._own_repeats)

    def keep_conflicts(self, tables: "MasterTables") -> None:
        """See `ComputedPortion`."""
        keep_conflicts_of(tables, self._of.source, self._of.master, self._own_repeats)

    def rows(self, view: "View", days: Collection[date]) -> Apply:
        """See `ComputedPortion`."""

        def apply(writer: RunWriter) -> Iterator[pa.RecordBatch]:
            yield from writer(cell_batches(view, self._counted.of(view, days), self._of.cut, days))

        return apply

    def release(self) -> None:
        """See `ComputedPortion`. What Arrow has freed goes back to the system; otherwise it is kept for later."""
        del self._archived, self._found
        pa.default_memory_pool().release_unused()

    @property
    def _counted(self) -> CountedTables:
        return CountedTables(self._archived, self._found.first, self._of.rules, self._of.cut)

    @cached_property
    def _own_repeats(self) -> pa.Table:
        repeats = self._found.repeats
        days = pa.array(sorted(self._of.days), pa.date32())
        return repeats.filter(
            pc.and_(pc.less(repeats["received_at"], self._of.cut), pc.is_in(repeats["day"], value_set=days))
        )


class SparkPortion:
    """A portion of any size, by Spark."""

    def __init__(self, of: PortionEvents, spark: "SparkSession") -> None:
        """Find the first deliveries."""
        self._of = of
        self._archived = archived(spark, of.source, of.master, of.days_read)
        self._found = deliveries(self._archived, of.moves)
        self._counted = CountedRows(self._archived, self._found.first, of.rules, of.cut)

    @cached_property
    def repeats(self) -> Repeats:
        """See `ComputedPortion`."""
        return count_repeats(self._own_repeats)

    def keep_conflicts(self, tables: "MasterTables") -> None:
        """See `ComputedPortion`."""
        keep_conflicts(tables, self._of.source, self._archived, self._own_repeats, self.repeats.conflicts)

    def rows(self, view: "View", days: Collection[date]) -> Apply:
        """See `ComputedPortion`."""

        def apply(writer: RunWriter) -> Iterable[pa.RecordBatch]:
            counted = self._counted.of(view, days)
            written = cells_used(view, counted, Extent(self._of.cut, days), writer, run_schema(view))
            with batches_for(view, counted):
                batches: list[pa.RecordBatch] = written.toArrow().to_batches()
            return batches

        return apply

    def release(self) -> None:
        """See `ComputedPortion`."""
        self._found.release()

    @cached_property
    def _own_repeats(self) -> "DataFrame":
        repeats = self._found.repeats.where(self._found.repeats.received_at < self._of.cut)
        if set(self._of.days_read) != set(self._of.days):
            repeats = repeats.where(repeats.day.isin(sorted(self._of.days)))
        return repeats


def computed_portion(of: PortionEvents, spark: "Callable[[], SparkSession]", few: int) -> ComputedPortion:
    """Read a portion, in this process if it is small.

    Args:
        of: Which events it is computed from.
        spark: Starts Spark, if it is needed.
        few: As `are_few`.
    """
    if are_few(of.master, of.days_read, few):
        if (found := unless_too_large(lambda: ArrowPortion(of))) is not None:
            return found
        log.info("rebuild.large_events", source=of.source.topic, days=len(of.days_read), reader="Spark")
    return SparkPortion(of, spark())
