"""Visits in the speed layer. The driver tracks them, because only it sees all partitions.

    sightings -> open bundles -> closed bundles -> visits -> additions to the views of visits

Open bundles are in memory only. They depend on the topic alone, so a driver that starts reads its last hours again.
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
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.parsing.rows import EVENT
from master_dataset.visits.rows import VisitKey, VisitRow, rows_of, visits_table
from master_dataset.visits.visit import Bundle, Sighting, VisitRules
from speed_layer.additions import Added, additions
from speed_layer.arrow_tables import OUTPUT, last_received, of_kind, position_rows, sighting_rows
from speed_layer.contributions import Contributed, Contributions
from speed_layer.stream import Ages, Feed, past_records
from views.arrow.contributions import contributions
from views.arrow.expressions import Rows
from views.core.view import View

if TYPE_CHECKING:
    from views.control.generation import Offsets


OPEN = Gauge("galatea_speed_open_visits", "Bundles of sightings that the speed layer holds open.")
_RECOVERED_AT_ONCE = 50_000
"""Offsets per partition: limits what the driver reads at once."""
_CLOCK_OFFSETS = 50
"""How many offsets before the first micro-batch are read to know the time of each partition."""


@dataclass
class OpenVisits:
    """The open bundles, by partition (only its records are in order), in the order of their last receipt.

    `skew`: how far timestamps may step back, in ms.
    """

    rules: VisitRules
    skew: int
    _open: dict[int, OrderedDict[VisitKey, Bundle]] = field(default_factory=dict)
    _clock: dict[int, int] = field(default_factory=dict)

    def add(self, partition: int, key: VisitKey, sighting: Sighting) -> Iterator[VisitRow]:
        """Add a sighting, in the order of its partition. Yields the visits of the bundle that it closes, if any."""
        bundles, gap = self._open.setdefault(partition, OrderedDict()), self.rules.gap
        bundle = bundles.get(key)
        closed: Iterator[VisitRow] = iter(())
        if bundle is not None and bundle.accepts(sighting.received, gap):
            bundles[key] = bundle.plus(sighting, gap)
        else:
            closed = rows_of(key, bundle, self.rules) if bundle is not None else closed
            bundles[key] = Bundle.of(sighting, gap)
        bundles.move_to_end(key)
        return closed

    def advance(self, partition: int, received: int) -> Iterator[VisitRow]:
        """A record of the partition was received at that time (ms). Yields the visits of all bundles that this closes.

        A bundle closes only after the skew: a record whose timestamp steps back may still belong to it, as in batch.
        """
        now = self._clock[partition] = max(received, self._clock.get(partition, received))
        bundles, closed = self._open.get(partition, OrderedDict()), []
        for key, bundle in bundles.items():
            at = bundle.closes_at(self.rules.gap)
            if at >= now:  # bundles are in the order of their last receipt, but for the skew
                break
            if at < now - self.skew:
                closed.append(key)
        for key in closed:
            yield from rows_of(key, bundles.pop(key), self.rules)

    def __len__(self) -> int:
        """How many bundles are open."""
        return sum(map(len, self._open.values()))


class VisitTracker:
    """Follows the visits of one generation for all views of visits."""

    def __init__(self, views: Sequence[View], ages: Ages, feed: Feed, skew: timedelta) -> None:
        """`views`: all views of visits, of one source. `skew`: how far timestamps may step back."""
        self.views, self._ages, self._feed = views, ages, feed
        self._open = OpenVisits(ages[1], skew // timedelta(milliseconds=1))
        self.is_recovered = False

    def recover(self, spark: SparkSession, ends: "Offsets") -> None:
        """Before the first micro-batch of this process: restore the open bundles from the topic.

        `ends`: the end offsets of the micro-batch before; empty if there is none.
        """
        until = {number: end for number, end in ends.get(self.views[0].source.topic, {}).items() if end}
        since = self._start_offsets(spark, until) if until else {}
        while any(since[number] < end for number, end in until.items()):
            upto = {number: min(end, since[number] + _RECOVERED_AT_ONCE) for number, end in until.items()}
            for _ in self._track(self._read_past(spark, since, upto)):
                pass  # visits that closed earlier have been counted
            since = upto
        self.is_recovered = True

    def closed(self, output: pa.Table) -> pa.Table:
        """The visits that have closed, as `VISITS`."""
        found = visits_table(self._track(output))
        OPEN.set(len(self._open))
        return found

    def additions(self, visits: pa.Table, epoch: timedelta) -> Iterator[Added]:
        """What visits add to the cells of each view."""
        shapes = {view.name: view for view in self.views}

        def contribute(some: pa.Table) -> Contributed:
            return {view.name: contributions(view, Rows.of(some)) for view in self.views}

        return additions(visits, contribute, shapes, epoch)

    def _track(self, output: pa.Table) -> Iterator[VisitRow]:
        sightings = output.filter(pc.is_valid(output["view"])).sort_by(
            [("partition", "ascending"), ("offset", "ascending")]
        )
        names = ("partition", "received_micros", "store", "device", "business_day", "happened_ms", "is_inside")
        for partition, received, store, device, day, happened, inside in zip(
            *(sightings[name].to_pylist() for name in names), strict=True
        ):
            sighting = Sighting(received // 1000, happened, bool(inside))
            yield from self._open.add(partition, VisitKey(store, device, day), sighting)
        for partition, received in last_received(output, self.views[0].source.topic):
            yield from self._open.advance(partition, received)

    def _start_offsets(self, spark: SparkSession, until: Mapping[int, int]) -> Mapping[int, int]:
        """The offsets from which sightings may belong to bundles that are open at `until`."""
        topic = self.views[0].source.topic
        near = self._read_past(spark, {number: max(0, end - _CLOCK_OFFSETS) for number, end in until.items()}, until)
        known = dict(last_received(near, topic))
        horizon = self._ages[1].longest_known // timedelta(milliseconds=1)
        found = {}
        for number, end in until.items():  # a partition may have had its last record days before another
            since_ms = max(0, known.get(number, 0) - horizon)
            since = self._feed.partitions.start_offsets(self._feed.offsets_since(topic, since_ms), since_ms)
            found[number] = min(since.get(number, 0), end)
        return found

    def _read_past(self, spark: SparkSession, since: Mapping[int, int], until: Mapping[int, int]) -> pa.Table:
        [view, *_] = self.views
        records, parser = past_records(spark, view, self._feed, (since, until))
        of = Contributions([view], *self._ages)

        def output(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in parser(batches):
                rows = pa.Table.from_batches([batch])
                yield from sighting_rows(of.sightings(of_kind(rows, EVENT), view), view.name)
                yield from position_rows(rows)

        return records.mapInArrow(output, from_arrow_schema(OUTPUT)).toArrow()
