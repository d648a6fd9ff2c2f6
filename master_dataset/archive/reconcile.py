"""Records of one partition against what tables have of it, by place: a sum hides one lost beside one twice.

Is every record that was received still there? received = events + duplicates + dead letters, of each topic.

Counted before the archive's committed positions, of what the topic still holds: from the topic itself on the one side,
from the tables on the other. The archive keeps every delivery. Which of them repeat an event is told as a rebuild tells
it: of deliveries with one identity the first is the event, those that say the same are duplicates, and those that do
not are dead letters (`conflicting_duplicate`), whether a rebuild has found them yet or not.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.dead_letters import table as rows
from master_dataset.dead_letters.deliveries import Delivery, first_of
from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.kafka.offset_audit import OffsetAudit
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason


class Comparison(NamedTuple):
    """How many: records that are `missing` in every table, `twice` an event and a dead letter, `phantom` rows."""

    missing: int
    twice: int
    phantom: int


def compare_offsets(census: OffsetAudit, events: pa.ChunkedArray, letters: pa.ChunkedArray) -> Comparison:
    """`events` and `letters`: offsets within the census. A table may have one several times, which is no fault."""
    own, others = events.unique(), letters.unique()
    twice = pc.sum(pc.is_in(others, value_set=own)).as_py() or 0
    # As numbers in place: Python's own would take five times as much.
    sorted_ = pc.take(kept := pa.chunked_array([own, others], pa.int64()).unique(), pc.sort_indices(kept))
    found = memoryview(sorted_.buffers()[1] or b"").cast("q")[: len(sorted_)]
    there = sum(bisect_left(found, until) - bisect_left(found, first) for first, until in census.runs)
    return Comparison(census.records - there, twice, len(sorted_) - there)


DEAD_LETTERS = "dead_letters"
_AT = pa.schema([rows.HEADING.field("partition"), rows.HEADING.field("offset")])
DELIVERY = [*rows.POSITION, "received_at", "identity_hash", "payload_hash"]


@dataclass(frozen=True)
class Reconciliation:
    """Of one topic. `dead_letters`: reason to how many.

    `missing`: records that no table has. `twice`: events that are dead letters as well. `phantom`: rows of places at
    which the topic has no record. All three are 0 unless something is wrong.
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
    def is_well(self) -> bool:
        """Every record has its one place, and nothing else has."""
        return not (self.missing or self.twice or self.phantom)

    def shown(self) -> dict[str, Any]:
        """In the words of the interface."""
        counted: dict[str, Any] = {
            "topic": self.topic,
            "received": self.received,
            "events": self.events,
            "missing": self.missing,
        }
        counted |= {"duplicates": self.duplicates, "dead_letters": dict(self.dead_letters)}
        return counted | {"twice": self.twice, "phantom": self.phantom}


def reconcile(root: str, topic: str, spans: Mapping[int, OffsetAudit]) -> Reconciliation:
    """`root` of the master dataset; `spans`: what the topic has, by partition. MasterFileLostError.

    Day by day, as an identity lies in one. A 64-bit hash stands for the identity: two that share one, which is hardly
    ever so, would be told as a conflict; the sum does not change by that.
    """
    kept: Counter[str] = Counter()
    lie = [_AT.empty_table()]
    for day in _days(f"{root}/{topic}"):
        kept += _judged(rows.once(day), spans)
        lie.append(day.filter(_within(spans)).select(_AT.names).cast(_AT))
    letters = _letters(root, topic, spans)
    told = rows.by_reason(letters)
    if conflicts := kept[Reason.CONFLICTING_DUPLICATE]:
        told[Reason.CONFLICTING_DUPLICATE.value] = conflicts
    found = [
        compare_offsets(each, *(_of(part, all_) for all_ in (pa.concat_tables(lie), letters)))
        for part, each in spans.items()
    ]
    wrong = [sum(each) for each in zip(*found, strict=True)] or [0, 0, 0]
    received = sum(each.records for each in spans.values())
    return Reconciliation(topic, received, kept["event"], kept["duplicate"], told, *wrong)


def _days(path: str) -> Iterator[pa.Table]:
    if DeltaTable.is_deltatable(path):
        table = DeltaTable(path)
        dataset = arrow_dataset(table)
        days = pa.table(table.get_add_actions(flatten=True))["partition.day"].unique()
        for day in days:
            with report_lost_files(table):
                yield dataset.to_table(columns=DELIVERY, filter=pc.field("day") == day)


def _judged(day: pa.Table, spans: Mapping[int, OffsetAudit]) -> Counter[str]:
    """What the deliveries within the spans are; those before are looked at, too: they may be first."""
    counts = day.group_by("identity_hash").aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts["count_all"], 1)).select(["identity_hash"])
    alone = day.join(several, "identity_hash", join_type="left anti").filter(_within(spans))
    found = Counter({"event": alone.num_rows})
    same: dict[int, list[Delivery]] = {}
    for row in day.join(several, "identity_hash", join_type="left semi").to_pylist():
        place = RecordPosition(row["topic"], row["partition"], row["offset"])
        same.setdefault(row["identity_hash"], []).append(Delivery(place, row["received_at"], "", row["payload_hash"]))
    for deliveries in same.values():
        first = first_of(deliveries)
        for each in deliveries:
            span = spans.get(each.place.partition)
            if span is not None and span.first <= each.place.offset < span.until:
                is_same = each.content == first.content
                later = "duplicate" if is_same else Reason.CONFLICTING_DUPLICATE.value
                found["event" if each.place == first.place else later] += 1
    return found


def _of(partition: int, places: pa.Table) -> pa.ChunkedArray:
    return places.filter(pc.field("partition") == partition)["offset"]


def _letters(root: str, topic: str, spans: Mapping[int, OffsetAudit]) -> pa.Table:
    path = f"{root}/{DEAD_LETTERS}"
    if not spans or not DeltaTable.is_deltatable(path):
        return rows.HEADING.empty_table()
    table = DeltaTable(path)
    where = (pc.field("topic") == topic) & _within(spans)
    with report_lost_files(table):
        found = arrow_dataset(table).to_table(columns=[*rows.POSITION, "reason"], filter=where)
    return rows.once(found)


def _within(spans: Mapping[int, OffsetAudit]) -> rows.Expression:
    offset = pc.field("offset")
    parts = [
        (pc.field("partition") == part) & (offset >= span.first) & (offset < span.until) for part, span in spans.items()
    ]
    return reduce(or_, parts, pc.scalar(False))  # noqa: FBT003 - nothing is within no span
