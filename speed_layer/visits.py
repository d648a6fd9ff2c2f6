"""The bundles that are open: what a device may still add to. Held by the driver, in the order of their last receipt.

Nothing of it is stored. What is open follows from the topic alone, so a driver that starts reads the last hours of it
again (`speed_layer.heard`).

Visits in the speed layer: of what micro-batches give back, by the driver, which alone hears every partition.

sightings -> open bundles -> those that have closed -> the rows of views of visits
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client import Gauge
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.parsing.rows import EVENT
from master_dataset.visits.rows import VisitKey, VisitRow, rows_of, visits_table
from master_dataset.visits.visit import Bundle, Sighting, VisitRules
from speed_layer.additions import AdditionKey, Cells, additions
from speed_layer.arrow_tables import OUTPUT, last_received, of_kind, position_rows, sighting_rows
from speed_layer.contributions import visit_contributions_sql
from speed_layer.stream import Ages, Feed, past_input
from views.core.view import View

if TYPE_CHECKING:
    from views.control.generation import Offsets


@dataclass
class OpenVisits:
    """By partition, as its records are in order and no other's are. `skew`: by how much (ms) stamps may step back."""

    rules: VisitRules
    skew: int
    _open: dict[int, OrderedDict[VisitKey, Bundle]] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)

    def hear(self, partition: int, whose: VisitKey, sighting: Sighting) -> Iterator[VisitRow]:
        """Take a sighting, those of a partition in its order; gives the visits of the bundle that it closes, if any."""
        bundles, gap = self._open.setdefault(partition, OrderedDict()), self.rules.gap
        bundle = bundles.get(whose)
        closed: Iterator[VisitRow] = iter(())
        if bundle is not None and bundle.takes(sighting.received, gap):
            bundles[whose] = bundle.plus(sighting, gap)
        else:
            closed = rows_of(whose, bundle, self.rules) if bundle is not None else closed
            bundles[whose] = Bundle.of(sighting, gap)
        bundles.move_to_end(whose)
        return closed

    def pass_time(self, partition: int, received: int) -> Iterator[VisitRow]:
        """A record of the partition was received then (in ms): gives the visits of all bundles that it closes.

        Not before the skew is over, too: a stamp that steps back within it may still belong to them, and in batch does.
        """
        now = self._passed[partition] = max(received, self._passed.get(partition, received))
        bundles, closed = self._open.get(partition, OrderedDict()), []
        for whose, bundle in bundles.items():
            at = bundle.closes_at(self.rules.gap)
            if at >= now:  # they are in the order of their last receipt, but for the skew
                break
            if at < now - self.skew:
                closed.append(whose)
        for whose in closed:
            yield from rows_of(whose, bundles.pop(whose), self.rules)

    def __len__(self) -> int:
        """How many bundles are open."""
        return sum(map(len, self._open.values()))


OPEN = Gauge("galatea_speed_open_visits", "Bundles of sightings that the speed layer holds open.")
_HEARD_AT_ONCE = 50_000
"""Offsets of a partition: bounds what comes to the driver at once."""
_LOOK_BACK = 50
"""So many offsets before the first micro-batch are read to know when its topic was read last."""


class VisitTracker:
    """The views of visits of one generation."""

    def __init__(self, views: Sequence[View], ages: Ages, feed: Feed, skew: timedelta) -> None:
        """`views`: all of them, of one source. `skew`: by how much stamps may step back."""
        self.views, self._ages, self._feed = views, ages, feed
        self._open = OpenVisits(ages[1], skew // timedelta(milliseconds=1))
        self.is_begun = False

    def begin(self, spark: SparkSession, ends: "Offsets") -> None:
        """Before the first micro-batch of this process: hear again what may still be open where it starts.

        `ends`: of the micro-batch before, if there is one.
        """
        until = {number: end for number, end in ends.get(self.views[0].source.topic, {}).items() if end}
        since = self._since(spark, until) if until else {}
        while any(since[number] < end for number, end in until.items()):
            upto = {number: min(end, since[number] + _HEARD_AT_ONCE) for number, end in until.items()}
            for _ in self._heard(self._past(spark, since, upto)):
                pass  # counted by whoever heard it first
            since = upto
        self.is_begun = True

    def closed(self, given_back: pa.Table) -> pa.Table:
        """The visits that are known now, as `VISITS`."""
        found = visits_table(self._heard(given_back))
        OPEN.set(len(self._open))
        return found

    def additions(self, spark: SparkSession, visits: pa.Table, epoch: timedelta) -> Iterator[tuple[AdditionKey, Cells]]:
        """What these visits add to the cells of each view."""
        rows = spark.createDataFrame(visits)
        for view in self.views:
            given = F.expr(visit_contributions_sql(view)).alias("contributions")
            found = rows.select("store", "received_at", given).toArrow()
            yield from additions(found, {view.name: view}, epoch)

    def _heard(self, given_back: pa.Table) -> Iterator[VisitRow]:
        heard = given_back.filter(pc.is_valid(given_back["view"])).sort_by(
            [("partition", "ascending"), ("offset", "ascending")]
        )
        names = ("partition", "received_micros", "store", "device", "business_day", "happened_ms", "is_inside")
        for partition, received, store, device, day, happened, inside in zip(
            *(heard[name].to_pylist() for name in names), strict=True
        ):
            sighting = Sighting(received // 1000, happened, bool(inside))
            yield from self._open.hear(partition, VisitKey(store, device, day), sighting)
        for partition, received in last_received(given_back, self.views[0].source.topic):
            yield from self._open.pass_time(partition, received)

    def _since(self, spark: SparkSession, until: Mapping[int, int]) -> Mapping[int, int]:
        """From which offsets on sightings may be part of what is open there."""
        topic = self.views[0].source.topic
        near = self._past(spark, {number: max(0, end - _LOOK_BACK) for number, end in until.items()}, until)
        known = dict(last_received(near, topic))
        back = self._ages[1].longest_known // timedelta(milliseconds=1)
        found = {}
        for number, end in until.items():  # a partition may have had its last record days before another
            since = self._feed.offsets_since(topic, max(0, known.get(number, 0) - back))
            found[number] = min(since.get(number, 0), end)
        return found

    def _past(self, spark: SparkSession, since: Mapping[int, int], until: Mapping[int, int]) -> pa.Table:
        [view, *_] = self.views
        arrived, name = past_input(spark, view, self._feed, self._ages, (since, until)), view.name

        def given_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                yield from sighting_rows(of_kind(rows, EVENT), name)
                yield from position_rows(rows)

        return arrived.mapInArrow(given_back, from_arrow_schema(OUTPUT)).toArrow()
