"""Check that every received record is archived: received = events + duplicates + dead letters, for each topic.

Counts what the topic still holds before the archive's committed positions, in the topic itself and in the tables. The
archive keeps every delivery. Which deliveries repeat an event is decided as a rebuild does it: of all deliveries with
one identity the first is the event, those with equal content are duplicates, and the others are dead letters
(`conflicting_duplicate`), even if no rebuild has found them yet.

Records are compared by offset: a sum would hide one lost record beside one that was archived twice.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.dead_letters.deliveries import Delivery, first_of
from master_dataset.dead_letters.table import (
    POSITION,
    SUMMARY_SCHEMA,
    Expression,
    count_by_reason,
    deduplicate,
)
from master_dataset.delta.dataset import arrow_dataset, report_lost_files, scan
from master_dataset.kafka.offset_audit import OffsetAudit
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason
from master_dataset.storage import is_table, open_table

DEAD_LETTERS = "dead_letters"
_OFFSETS = pa.schema([SUMMARY_SCHEMA.field("partition"), SUMMARY_SCHEMA.field("offset")])
_SAME = ["day", "identity_hash"]
"""Deliveries that are equal in these are of one event."""
_DELIVERY = [*POSITION, "received_at", *_SAME, "payload_hash"]
_ROWS_TOGETHER = 250_000
"""Rows of several days that are read at a time: some 20 MB. A day with more is read alone."""


@dataclass(frozen=True)
class Reconciliation:
    """The result for one topic. `dead_letters`: reason to number.

    `missing`: records that are in no table. `twice`: events that are dead letters too. `phantom`: rows at positions
    where the topic has no record. All three are 0 unless something is wrong.
    """

    topic: str
    received: int
    events: int
    duplicates: int
    dead_letters: Mapping[str, int]
    missing: int
    twice: int
    phantom: int

    @property
    def is_balanced(self) -> bool:
        """Whether every record is in exactly one table, and nothing else is."""
        return not (self.missing or self.twice or self.phantom)

    def shown(self) -> dict[str, Any]:
        """As the command prints it in JSON."""
        return {
            "topic": self.topic,
            "received": self.received,
            "events": self.events,
            "missing": self.missing,
            "duplicates": self.duplicates,
            "dead_letters": dict(self.dead_letters),
            "twice": self.twice,
            "phantom": self.phantom,
        }


def reconcile(root: str, topic: str, audits: Mapping[int, OffsetAudit]) -> Reconciliation:
    """Compare the tables of a topic with the records in it.

    Reads whole days at a time, because all deliveries of an event are in one day. Identities are compared by a 64-bit
    hash: two events with the same hash, which is very unlikely, would count as a conflict; the sum stays right.

    Args:
        root: Root of the master dataset.
        topic: The topic.
        audits: What the topic contains, by partition.

    Raises:
        MasterFileLostError: A file of a table cannot be read.
    """
    kept: Counter[str] = Counter()
    offsets = [_OFFSETS.empty_table()]
    for deliveries in _deliveries(f"{root}/{topic}"):
        kept += _classify(deduplicate(deliveries), audits)
        offsets.append(deliveries.filter(_within(audits)).select(_OFFSETS.names).cast(_OFFSETS))
    events, rejected = pa.concat_tables(offsets), _dead_letters(root, topic, audits)
    reasons = count_by_reason(rejected)
    if conflicts := kept[Reason.CONFLICTING_DUPLICATE]:
        reasons[Reason.CONFLICTING_DUPLICATE.value] = conflicts
    differences = [
        compare_offsets(audit, _offsets_of(partition, events), _offsets_of(partition, rejected))
        for partition, audit in audits.items()
    ]
    totals = [sum(each) for each in zip(*differences, strict=True)] or [0, 0, 0]
    received = sum(audit.records for audit in audits.values())
    return Reconciliation(topic, received, kept["event"], kept["duplicate"], reasons, *totals)


def _deliveries(path: str) -> Iterator[pa.Table]:
    """All deliveries, in tables of whole days."""
    if is_table(path):
        table = open_table(path)
        for days in _days_together(table):
            with report_lost_files(table):
                yield scan(arrow_dataset(table, days), _DELIVERY).to_table()


def _days_together(table: DeltaTable) -> Iterator[list[date]]:
    """The days of a table, in groups of about `_ROWS_TOGETHER` rows."""
    files = pa.table(table.get_add_actions(flatten=True)).select(["partition.day", "num_records"])
    rows = files.group_by("partition.day").aggregate([("num_records", "sum")]).sort_by("partition.day")
    days, held = list[date](), 0
    for day, records in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        days.append(day)
        held += records or _ROWS_TOGETHER  # a log need not say it
        if held >= _ROWS_TOGETHER:
            yield days
            days, held = [], 0
    if days:
        yield days


def _classify(deliveries: pa.Table, audits: Mapping[int, OffsetAudit]) -> Counter[str]:
    """Count events, duplicates and conflicts within the audits. A delivery before them may be the first one, too."""
    counts = deliveries.group_by(_SAME).aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts["count_all"], 1)).select(_SAME)
    alone = deliveries.join(several, _SAME, join_type="left anti").filter(_within(audits))
    found = Counter({"event": alone.num_rows})
    same: dict[tuple[date, int], list[Delivery]] = {}
    for row in deliveries.join(several, _SAME, join_type="left semi").to_pylist():
        position = RecordPosition(row["topic"], row["partition"], row["offset"])
        same.setdefault((row["day"], row["identity_hash"]), []).append(
            Delivery(position, row["received_at"], "", row["payload_hash"])
        )
    for repeated in same.values():
        first = first_of(repeated)
        for each in repeated:
            audit = audits.get(each.position.partition)
            if audit is not None and audit.first <= each.position.offset < audit.until:
                later = "duplicate" if each.content == first.content else Reason.CONFLICTING_DUPLICATE.value
                found["event" if each.position == first.position else later] += 1
    return found


def _dead_letters(root: str, topic: str, audits: Mapping[int, OffsetAudit]) -> pa.Table:
    path = f"{root}/{DEAD_LETTERS}"
    if not audits or not is_table(path):
        return SUMMARY_SCHEMA.empty_table()
    table = open_table(path)
    where = (pc.field("topic") == topic) & _within(audits)
    with report_lost_files(table):
        found = arrow_dataset(table).to_table(columns=[*POSITION, "reason"], filter=where)
    return deduplicate(found)


def _within(audits: Mapping[int, OffsetAudit]) -> Expression:
    offset = pc.field("offset")
    parts = [
        (pc.field("partition") == partition) & (offset >= audit.first) & (offset < audit.until)
        for partition, audit in audits.items()
    ]
    return reduce(or_, parts, pc.scalar(False))  # noqa: FBT003 - without audits nothing is within one


def _offsets_of(partition: int, rows: pa.Table) -> pa.ChunkedArray:
    return rows.filter(pc.field("partition") == partition)["offset"]


class Comparison(NamedTuple):
    """How many records are `missing` in every table, are `twice` there (event and dead letter), or are `phantom`."""

    missing: int
    twice: int
    phantom: int


def compare_offsets(audit: OffsetAudit, events: pa.ChunkedArray, rejected: pa.ChunkedArray) -> Comparison:
    """Compare the offsets in the tables with those in a partition.

    Args:
        audit: What the partition contains.
        events: Offsets of events within the audit; one may occur several times, which is not an error.
        rejected: Offsets of dead letters within the audit; one may occur several times.
    """
    own, others = events.unique(), rejected.unique()
    twice = pc.sum(pc.is_in(others, value_set=own)).as_py() or 0
    # A memory view of Arrow's sorted numbers: Python's own integers would need five times as much memory.
    sorted_ = pc.take(kept := pa.chunked_array([own, others], pa.int64()).unique(), pc.sort_indices(kept))
    found = memoryview(sorted_.buffers()[1] or b"").cast("q")[: len(sorted_)]
    there = sum(bisect_left(found, until) - bisect_left(found, first) for first, until in audit.runs)
    return Comparison(audit.records - there, twice, len(sorted_) - there)
