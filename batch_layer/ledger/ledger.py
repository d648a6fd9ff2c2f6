"""Writes the correction ledger of one change: of a publication, or of what a preview would publish.

differing   which blocks differ from those before, by their digests; what speed shows between the cuts
wholly new  nothing was shown of a store and day, and all its events waited: one entry says so
compared    the rest, cell by cell, beside the events that may explain it; again with all events where they do not
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import structlog

from batch_layer.arrow_events import unless_too_large
from batch_layer.blocks import StoreDay
from batch_layer.computed import are_few
from batch_layer.ledger.change import BlockDifferences, Change, differing, digests, units
from batch_layer.ledger.compare import LedgerComparer
from batch_layer.ledger.correction import Ledgers, Summed, TotalsBuilder, Whole
from batch_layer.ledger.events import (
    Compared,
    Explained,
    ExplainingEvents,
    ExplainingFrames,
    ExplainingRules,
    ExplainingTables,
    compared_here,
    compared_in_spark,
)
from batch_layer.master import Master
from batch_layer.run import Digest
from batch_layer.speed_span import SpeedSpan
from views.control.recompute import LedgerTotals
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

FEW_UNITS = 1_000
"""Maximum number of units that are compared in this process, where no events are needed."""
log = structlog.get_logger()


@dataclass(frozen=True)
class Ledger:
    """`subject`: a run, or a publication's number. `rules`: by what changes are explained.

    `spark` is called where more than `few_events` may explain a change.
    """

    connect: "Callable[[], Session]"
    subject: str
    change: Change
    masters: Mapping[str, Master]
    rules: ExplainingRules
    spark: "Callable[[], SparkSession]"
    few_events: int = 0
    _events: dict[tuple[str, frozenset[date]], ExplainingEvents] = field(default_factory=dict)
    _days_of_spans: dict[tuple[int, datetime, datetime], Mapping[str, Mapping[StoreDay, list[date]]]] = field(
        default_factory=dict
    )

    def write(self, views: Sequence[View], base: int, progress: Callable[[int, int, str], None]) -> LedgerTotals:
        """Write every line; returns what they add up to. Both layers must have read everything before both cuts."""
        sums, table = TotalsBuilder(), Ledgers(self.connect())
        for done, view in enumerate(sorted(views, key=lambda view: view.source.topic)):
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
            for key, received in self._days_of(span).get(view.name, {}).items():
                found.setdefault(key, []).extend(received)
        return found

    def _days_of(self, span: SpeedSpan) -> Mapping[str, Mapping[StoreDay, list[date]]]:
        """Reads all views of a span together, once."""
        key = (span.generation, span.since, span.until)
        if key not in self._days_of_spans:
            self._days_of_spans[key] = span.days()
        return self._days_of_spans[key]

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

    def _with_events(self, view: View, compared_units: pa.Table, comparer: LedgerComparer, *, others: bool) -> Compared:
        if comparer.fixed:
            if self.few_events and compared_units.num_rows <= FEW_UNITS:
                return compared_here(comparer, compared_units)
            return compared_in_spark(comparer, compared_units, self.spark())
        days = {day for own in compared_units["days"].to_pylist() for day in own}
        events = self._events_of(view, view.days_read(days))
        return events.compared(view, compared_units, comparer, others=others)

    def _events_of(self, view: View, days: set[date]) -> ExplainingEvents:
        """Shared by all views of a source that need the same days, so that first deliveries are found once."""
        key = (view.source.topic, frozenset(days))
        if any(topic != view.source.topic for topic, _ in self._events):
            self._events.clear()  # views of a source follow each other
        if key not in self._events:
            master, since = self.masters[view.source.topic], self.change.before.cut
            of = Explained(view.source, master, since, self.change.until, self.rules, frozenset(days))
            self._events[key] = self._read(of)
        return self._events[key]

    def _read(self, of: Explained) -> ExplainingEvents:
        if are_few(of.master, of.days, self.few_events):
            if (found := unless_too_large(lambda: ExplainingTables(of))) is not None:
                return found
            log.info("ledger.large_events", source=of.source.topic, reader="Spark")
        return ExplainingFrames(of, self.spark())


def _added(view: View, new: Iterable[Digest]) -> tuple[int, dict[str, tuple[int, int]]]:
    """Of blocks that are wholly new."""
    listed = list(new)
    cells = sum(each.cells for each in listed)
    sums = zip(*(each.sums for each in listed), strict=True)
    return cells, {
        state: (cells, sum(value or 0 for value in own)) for state, own in zip(view.columns, sums, strict=True)
    }
