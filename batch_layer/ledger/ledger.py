"""Writes the ledger of one change: of a publication, or of what a preview would publish.

differing   which blocks are others than before, by their digests; what speed shows between the cuts
wholly new  nothing was shown of a store and day, and all its events waited: one line says so
compared    the rest, cell by cell, beside the events that may explain it; again with all events where they do not
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.ledger.change import Change
from batch_layer.ledger.comparing import COMPARED, Comparing
from batch_layer.ledger.correction import Place, Summed, Totals, Whole
from batch_layer.ledger.facts import Ages, Facts
from batch_layer.ledger.table import Ledgers
from batch_layer.ledger.units import Differing, differing, digests, units
from batch_layer.recompute.touched import Master
from batch_layer.run import Digest
from batch_layer.speed_span import Partition, SpeedSpan
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

log = structlog.get_logger()
_KEYS = ("store", "month")
_SCHEMA = from_arrow_schema(COMPARED)


@dataclass(frozen=True)
class Ledger:
    """`subject`: a run, or a publication's number. `ages`: what speed leaves to batch.

    `spark` is called if something is compared.
    """

    connect: "Callable[[], Session]"
    subject: str
    change: Change
    masters: Mapping[str, Master]
    ages: Ages
    spark: Callable[[], SparkSession]
    _known: dict[tuple[str, frozenset[date]], Facts] = field(default_factory=dict)
    _listed: dict[tuple[int, datetime, datetime], Mapping[str, list[Partition]]] = field(default_factory=dict)

    def write(self, views: Sequence[View], base: int, progress: Callable[[int, int, str], None]) -> Mapping[str, Any]:
        """Write every line and say what they add up to. Both layers have to have read all before both cuts."""
        totals, table = Totals(), Ledgers(self.connect())
        for place, view in enumerate(views):
            progress(place, len(views), f"corrections of {view.name}")
            for some in self._of_view(view, table, table.begin(self.subject, view.name)):
                totals.add(view.name, some)
        table.close(self.subject, self.subject, base, totals.shown())
        progress(len(views), len(views), "corrections")
        return totals.shown()

    def _of_view(self, view: View, table: Ledgers, begun: int) -> Iterable[Summed]:
        received = self._received(view)
        found = self._differing(view)
        fixed = self.change.fixed_cause(view)
        new = {place: digest for place, digest in found.new.items() if place not in received}
        events: Mapping[Place, int] = dict.fromkeys(new, 0)
        if new and fixed is None:
            events = self._facts(view, view.days_read({day for _, day in new})).wholly_waited(view)
            new = {place: digest for place, digest in new.items() if place in events}
        _, after = self.change.runs(view.name)
        cause = fixed or "waited"
        wholes = ((*place, Whole(after[place[1]], cause, events[place])) for place in sorted(new))
        table.keep(self.subject, view.name, wholes, begun + 1)
        yield {cause: _added(view, new.values())} if new else {}
        asked = units((found.places | found.new.keys()) - new.keys(), received)
        if asked.num_rows:
            shown, kept = self.change.spans(self.connect, view)
            runs = self.change.all_runs(view.name)
            comparing = Comparing(self.connect, self.subject, view, *runs, shown, kept, fixed, begun + 1)
            yield from self._compared(view, asked, comparing)

    def _differing(self, view: View) -> Differing:
        before, after = self.change.runs(view.name)
        session = self.connect()
        return differing(digests(session, view.name, before), digests(session, view.name, after))

    def _received(self, view: View) -> Mapping[Place, list[date]]:
        """What speed shows between the cuts, before or after: on which days it was received."""
        found: dict[Place, list[date]] = {}
        for span in self.change.spans(self.connect, view):
            if span.since >= span.until:
                continue
            partitions = self._partitions(span).get(view.name, [])
            for partition, days in zip(partitions, span.days(partitions), strict=True):
                for day in days:
                    found.setdefault((partition.store, day), []).append(partition.received_day)
        return found

    def _partitions(self, span: SpeedSpan) -> Mapping[str, list[Partition]]:
        """By view; the keys of the whole table are listed once for all views."""
        key = (span.generation, span.since, span.until)
        if key not in self._listed:
            found: dict[str, list[Partition]] = {}
            for each in span.partitions():
                found.setdefault(each.view, []).append(each)
            self._listed[key] = found
        return self._listed[key]

    def _compared(self, view: View, asked: pa.Table, comparing: Comparing) -> Iterable[Summed]:
        told = self._with_events(view, asked, comparing, others=False)
        unexplained = {(row["store"], row["month"]) for row in told if row["open"]}
        yield from (orjson.loads(row["totals"]) for row in told if not row["open"])
        if unexplained:
            log.warning("ledger.unexplained", subject=self.subject, view=view.name, units=len(unexplained))
            left = [row for row in asked.to_pylist() if (row["store"], row["month"]) in unexplained]
            again = pa.Table.from_pylist(left, schema=asked.schema)
            over = replace(comparing, stamp=comparing.stamp + 1)
            for row in self._with_events(view, again, over, others=True):
                yield orjson.loads(row["totals"])

    def _with_events(self, view: View, asked: pa.Table, comparing: Comparing, *, others: bool) -> list[dict[str, Any]]:
        wanted = self.spark().createDataFrame(asked)
        if comparing.fixed:
            return _rows(wanted.groupBy(*_KEYS).applyInArrow(_without_events(comparing), _SCHEMA))
        days = {day for own in asked["days"].to_pylist() for day in own}
        events = self._facts(view, view.days_read(days)).contributing(view, others=others)
        events = events.join(F.broadcast(wanted.select(*_KEYS)), on=list(_KEYS), how="left_semi")
        return _rows(_cogrouped(wanted, events, comparing))

    def _facts(self, view: View, days: set[date]) -> Facts:
        """One for all views of a source that ask for the same days: first deliveries are found once."""
        key = (view.source.topic, frozenset(days))
        if key not in self._known:
            master, since = self.masters[view.source.topic], self.change.before.cut
            self._known[key] = Facts(
                self.spark(), view.source, master, since, self.change.until, self.ages, frozenset(days)
            )
        return self._known[key]


def _rows(compared: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = compared.toArrow().to_pylist()
    return rows


def _without_events(comparing: Comparing) -> Callable[[pa.Table], pa.Table]:
    def compare(units: pa.Table) -> pa.Table:  # Spark counts a function's arguments
        return comparing(units, None)

    return compare


def _cogrouped(wanted: DataFrame, events: DataFrame, comparing: Comparing) -> DataFrame:
    def compare(units: pa.Table, found: pa.Table) -> pa.Table:
        return comparing(units, found)

    return wanted.groupBy(*_KEYS).cogroup(events.groupBy(*_KEYS)).applyInArrow(compare, _SCHEMA)


def _added(view: View, new: Iterable[Digest]) -> tuple[int, dict[str, tuple[int, int]]]:
    """Of blocks that are wholly new."""
    listed = list(new)
    cells = sum(each.cells for each in listed)
    sums = zip(*(each.sums for each in listed), strict=True)
    return cells, {
        state: (cells, sum(value or 0 for value in own)) for state, own in zip(view.columns, sums, strict=True)
    }
