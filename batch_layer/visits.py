"""Visits for views that count them: bundles of everything archived, and sightings that came too late for one.

Bundles are made of everything, and the cut selects those that closed before it (R4). Late sightings have no bundle:
speed leaves them to batch, which derives visits from those received before the cut, by the time they happened.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.visits.rows import VisitKey, VisitRow, rows_of, visit_rows, visits_table
from master_dataset.visits.visit import Sighting, Stretch, VisitRules, add_sighting, bundles_of, visits_of
from views.core.view import View, fresh_sql

_AT_ONCE = 10_000
WHOSE = ("store", "device", "business_day")
"""Sightings that are equal in these make visits together."""
SIGHTING = ("received_ms", "happened_ms", "is_inside")
"""The columns of a sighting besides `WHOSE`, times in ms since 1970."""
Makes = Callable[[VisitKey, Iterable[Sighting]], Iterator[VisitRow]]


@dataclass(frozen=True)
class CountedRows:
    """Rows that views count. `archived`: every delivery of some days. `first`: one row per event of them.

    `late_until`: late sightings that were received then or later are left out, as they wait for batch.
    """

    archived: DataFrame
    first: DataFrame
    rules: VisitRules
    late_until: datetime

    def of(self, view: View, days: Collection[date] = ()) -> DataFrame:
        """The rows that the view counts: the events, or the visits that they make (`VISITS`).

        Visits of bundles have the instant at which they closed as `received_at`. `days`: those whose cells are
        computed; all if empty.
        """
        read = F.col("day").isin(sorted(view.days_read(days))) if days else F.lit(True)  # noqa: FBT003 - a literal
        first = self.first.where(read)
        if not view.counts_visits:
            return first
        heard = _sightings(self.archived.where(read).where(fresh_sql(self.rules)), ("partition", "offset"))
        made = heard.mapInArrow(bundled_visits(self.rules), _schema())
        return made.unionByName(late_visits(first, self.rules, self.late_until))


def late_visits(first: DataFrame, rules: VisitRules, until: datetime) -> DataFrame:
    """The visits of sightings that came too late for a bundle, of those received before."""
    late = first.where(f"not ({fresh_sql(rules)})").where(F.col("received_at") < F.lit(until))
    return _sightings(late, ("happened_ms",)).mapInArrow(visits_of_late(rules), _schema())


def _sightings(rows: DataFrame, order: tuple[str, ...]) -> DataFrame:
    """Sightings grouped by store, device and business day; those of a partition keep its order."""
    narrow = rows.select(
        *WHOSE,
        "partition",
        "offset",
        F.unix_millis("received_at").alias("received_ms"),
        F.unix_millis("happened_at").alias("happened_ms"),
        "is_inside",
    )
    return narrow.repartition("store", "device").sortWithinPartitions(*WHOSE, *order)


def bundled_visits(rules: VisitRules) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """The visits of bundles, as `VISITS`, from sightings of a partition in its order."""

    def of_one(whose: VisitKey, sightings: Iterable[Sighting]) -> Iterator[VisitRow]:
        for bundle in bundles_of(sightings, rules.gap):
            yield from rows_of(whose, bundle, rules)

    return _made((*WHOSE, "partition"), of_one)


def visits_of_late(rules: VisitRules) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """The visits of late sightings, as `VISITS`, in the order in which they happened."""

    def of_one(whose: VisitKey, sightings: Iterable[Sighting]) -> Iterator[VisitRow]:
        stretches: tuple[Stretch, ...] = ()
        known_at = 0
        for each in sightings:
            stretches = add_sighting(stretches, each, rules.gap)
            known_at = max(known_at, each.received)
        yield from visit_rows(whose, visits_of(stretches, rules), known_at, rules)

    return _made(WHOSE, of_one)


def _made(of: tuple[str, ...], makes: Makes) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Rows that are equal in `of` follow each other, and make visits together."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: Iterator[tuple[Any, ...]] = (
            row
            for batch in batches
            for row in zip(*(batch.column(name).to_pylist() for name in (*of, *SIGHTING)), strict=True)
        )
        width = len(of)
        own = groupby(rows, key=itemgetter(slice(width)))
        visits = (
            row for key, each in own for row in makes(VisitKey(*key[:3]), (Sighting(*one[width:]) for one in each))
        )
        while some := list(islice(visits, _AT_ONCE)):
            yield from visits_table(some).to_batches()

    return made


def _schema() -> Any:  # noqa: ANN401 - Spark's own
    return from_arrow_schema(visits_table(()).schema)
