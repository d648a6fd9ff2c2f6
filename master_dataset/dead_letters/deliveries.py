"""Which deliveries of an identity the master dataset has: whether an event is there already, and what a replay became.

An identity lies in one day of its source's table, so that one folder of narrow columns answers it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import pyarrow.compute as pc
from deltalake import DeltaTable

from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.kafka.record import RecordPosition

NARROW = ["partition", "offset", "identity_hash"]
WIDE = [*NARROW, "received_at", "identity", "payload_hash"]


class EventKey(NamedTuple):
    """Where deliveries of one event are looked for."""

    topic: str
    day: date
    identity_hash: int


class Delivery(NamedTuple):
    """One of them, as it was archived. `content`: equal for two that say the same."""

    place: RecordPosition
    received_at: datetime
    identity: str
    content: int


def first_of(deliveries: Collection[Delivery]) -> Delivery:
    """The one that counts, of at least one, all of one identity: as batch tells it (R3)."""
    homes: dict[int, Delivery] = {}
    for each in deliveries:
        known = homes.get(each.place.partition, each)
        homes[each.place.partition] = min(known, each, key=lambda found: found.place.offset)
    return min(homes.values(), key=lambda found: (found.received_at, found.place.partition))


class ArchivedEvents:
    """Of one master dataset."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root

    def deliveries(self, sought: Collection[EventKey]) -> Mapping[EventKey, Sequence[Delivery]]:
        """Those that are archived by now, each place once; none for an event of which there are none."""
        found: dict[EventKey, dict[RecordPosition, Delivery]] = {each: {} for each in sought}
        for topic in {each.topic for each in sought}:
            path = f"{self._root}/{topic}"
            if DeltaTable.is_deltatable(path):
                table = DeltaTable(path)
                dataset = arrow_dataset(table)
                for day in sorted({each.day for each in sought if each.topic == topic}):
                    with report_lost_files(table):
                        for row in _rows(
                            dataset, day, [each.identity_hash for each in sought if each[:2] == (topic, day)]
                        ):
                            place = RecordPosition(topic, row["partition"], row["offset"])
                            said = row["received_at"], row["identity"], row["payload_hash"]
                            found[EventKey(topic, day, row["identity_hash"])][place] = Delivery(place, *said)
        return {each: list(own.values()) for each, own in found.items()}


def _rows(dataset: Any, day: date, hashes: Sequence[int]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - pyarrow ships no types
    """Texts are read only where a hash is there: a day may hold a million identities."""
    where = (pc.field("day") == day) & pc.field("identity_hash").isin(hashes)
    if not dataset.to_table(columns=NARROW, filter=where).num_rows:
        return []
    rows: list[dict[str, Any]] = dataset.to_table(columns=WIDE, filter=where).to_pylist()
    return rows
