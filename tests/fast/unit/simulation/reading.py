"""What becomes of simulated deliveries when the one parser reads them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from lab.simulation.records import SentCounts, TimedRecord
from lab.simulation.simulation import World, sent_records, timed
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.registry.stores import DEFAULT_TERMS, Store
from master_dataset.sources import source_named


def records_of(world: World, *topics: str) -> list[TimedRecord]:
    """What a shop sends of these sources on a day without faults."""
    return [timed(each) for each in sent_records(world, topics, SentCounts(), faults=False)]


class Read:
    """`events`: each once, the first delivery. `dead_letters`: how many for which reason, conflicts among them."""

    def __init__(self, deliveries: Iterable[TimedRecord], *stores: Store) -> None:
        self.events: dict[tuple[str, str], Event[Any]] = {}
        self.dead_letters: Counter[str] = Counter()
        self.duplicates = self.sent = 0
        terms = {store.id: store.terms for store in stores}
        for send_at, topic, value in deliveries:
            self.sent += 1
            received_us = int(send_at.timestamp() * 1_000_000)
            read = parse(
                source_named(topic), value, lambda store: terms.get(store, DEFAULT_TERMS), received_us=received_us
            )
            self._take(topic, read)

    def of(self, topic: str) -> list[Any]:
        """The events of a source by when they happened."""
        return sorted((event for event in self.events.values() if event.topic == topic), key=lambda e: e.happened_ms)

    def payloads(self, topic: str) -> list[tuple[int, Any]]:
        """When and what."""
        return [(event.happened_ms, event.payload) for event in self.of(topic)]

    def _take(self, topic: str, read: Event[Any] | DeadLetter) -> None:
        if isinstance(read, DeadLetter):
            self.dead_letters[str(read.reason)] += 1
            return
        before = self.events.setdefault((topic, read.identity), read)
        if before.payload_hash != read.payload_hash:
            self.dead_letters["conflicting_duplicate"] += 1
        elif before is not read:
            self.duplicates += 1
