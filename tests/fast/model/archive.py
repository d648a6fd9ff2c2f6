"""The master dataset in the model: every event that was read, in versions, and what a planner asks of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

from batch_layer.fence import Offsets
from batch_layer.master import Master
from tests.fast.model.facts import PARTITIONS, TOPIC, Fact
from tests.fast.model.topic import Record, Topic


class Row(NamedTuple):
    """One delivery as it was archived."""

    version: int
    fact: Fact
    record: Record

    @property
    def day(self) -> date:
        """By which the table is partitioned."""
        return self.fact.happened_at.date()


@dataclass
class Archive:
    """Reads the topic in offset order; `dirty`: also what is not committed."""

    topic: Topic
    dirty: bool = False
    any_time: bool = False
    rows: list[Row] = field(default_factory=list)
    version: int = 0
    at: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))
    recorded: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))

    def read(self, partition: int, most: int, *, again: int = 0) -> bool:
        """One micro-batch: some records of one partition. `again`: as many are kept twice, its checkpoint was lost."""
        part = self.topic.parts[partition]
        start = self.at.get(partition, 0)
        end = min(start + most, len(part.records) if self.dirty else part.stable)
        if end == start:
            return False
        self.version += 1
        for record in part.records[max(0, start - again) : end]:
            if record.fact and (record.is_event or self.any_time) and (record.is_visible or self.dirty):
                self.rows.append(Row(self.version, record.fact, record))
        self.at[partition] = end
        given = [each.offset for each in part.records[start:end] if each.is_visible or self.dirty]
        self.recorded[partition] = max([self.recorded.get(partition, 0), *(offset + 1 for offset in given)])
        return True

    def positions(self) -> Offsets:
        """As they are recorded for the fence."""
        return {TOPIC: dict(self.recorded)}

    def version_of(self, record: Record) -> int | None:
        """The version that this record came with."""
        return next((row.version for row in self.rows if row.record is record), None)


@dataclass(frozen=True)
class Archived(Master):
    """The table at one version, for the product's planner."""

    rows: Sequence[Row] = ()
    steps_back: bool = True
    """Whether rows with an older stamp are looked for, as they have to be."""

    @classmethod
    def of(cls, archive: Archive, *, steps_back: bool) -> "Archived":
        """As it is now."""
        return cls("", archive.version, tuple(archive.rows), steps_back)

    def days(self, stores: Sequence[str] = ()) -> set[date]:
        return {row.day for row in self.rows if not stores or row.fact.store in stores}

    def days_received(self, since: datetime, before: datetime) -> set[date]:
        return {row.day for row in self.rows if since <= row.record.received_at < before}

    def days_stepped_back(self, base_version: int, before: datetime) -> set[date]:
        if not self.steps_back:
            return set()
        return {row.day for row in self.rows if row.version > base_version and row.record.received_at < before}
