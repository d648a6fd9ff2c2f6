"""Find the archived deliveries of an event by its identity.

All deliveries with one identity are in the same day of its source's table, so one partition and a few narrow columns
suffice.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import pyarrow.compute as pc

from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.kafka.record import RecordPosition
from master_dataset.storage import is_table, open_table

KEY_COLUMNS = ["partition", "offset", "identity_hash"]
ALL_COLUMNS = [*KEY_COLUMNS, "received_at", "identity", "payload_hash"]


class EventKey(NamedTuple):
    """Where to look for the deliveries of one event."""

    topic: str
    day: date
    identity_hash: int


class Delivery(NamedTuple):
    """One archived delivery of an event. `content`: the payload hash, equal for two with the same content."""

    position: RecordPosition
    received_at: datetime
    identity: str
    content: int


def first_of(deliveries: Collection[Delivery]) -> Delivery:
    """Return the delivery that counts among those of one identity, by the rule of the batch layer (R3)."""
    homes: dict[int, Delivery] = {}
    for each in deliveries:
        known = homes.get(each.position.partition, each)
        homes[each.position.partition] = min(known, each, key=lambda found: found.position.offset)
    return min(homes.values(), key=lambda found: (found.received_at, found.position.partition))


class ArchivedEvents:
    """The events of one master dataset."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._root = root

    def deliveries(self, keys: Collection[EventKey]) -> Mapping[EventKey, Sequence[Delivery]]:
        """Return the deliveries archived so far, each position once."""
        found: dict[EventKey, dict[RecordPosition, Delivery]] = {each: {} for each in keys}
        for topic in {each.topic for each in keys}:
            path = f"{self._root}/{topic}"
            if is_table(path):
                table = open_table(path)
                dataset = arrow_dataset(table)
                for day in sorted({each.day for each in keys if each.topic == topic}):
                    with report_lost_files(table):
                        for row in _rows(
                            dataset, day, [each.identity_hash for each in keys if each[:2] == (topic, day)]
                        ):
                            position = RecordPosition(topic, row["partition"], row["offset"])
                            said = row["received_at"], row["identity"], row["payload_hash"]
                            found[EventKey(topic, day, row["identity_hash"])][position] = Delivery(position, *said)
        return {each: list(own.values()) for each, own in found.items()}


def _rows(dataset: Any, day: date, hashes: Sequence[int]) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 - pyarrow ships no types
    """Identities are read only if a hash matches: a day may have a million of them."""
    where = (pc.field("day") == day) & pc.field("identity_hash").isin(hashes)
    if not dataset.to_table(columns=KEY_COLUMNS, filter=where).num_rows:
        return []
    rows: list[dict[str, Any]] = dataset.to_table(columns=ALL_COLUMNS, filter=where).to_pylist()
    return rows
