"""What is sent besides the events: the same bytes once more, broken records, and other words under a known identity."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from lab.simulation.breakage import BREAKAGES
from lab.simulation.clock import MINUTE_MS, SECOND_MS
from lab.simulation.record import Record
from lab.simulation.sendable import Sendable, encode
from lab.simulation.shop_day import ShopDay
from lab.simulation.tally import DUPLICATES, Tally
from master_dataset.parsing.dead_letter import Reason
from master_dataset.sources import source_named

REPEATED = 0.005
"""Of the records."""
BROKEN = 0.25
"""Of the ways to be wrong, so many occur in a source on a day."""
CONFLICTING = 0.5
"""Of the sources of a day, so many contradict themselves once."""
OTHERWISE: dict[str, Any] = {"interval_ms": -1, "people_in": 1, "signal_dbm": -1, "length_after": 1, "people": 1}
"""What says something else when it is so much more. The first that a record has is taken."""


def repetitions(day: ShopDay, records: Sequence[Record], tally: Tally) -> Iterator[Sendable]:
    """Repeat, break and contradict some of these records of one source (not empty), later than they are sent."""
    topic = records[0].topic
    drawn = day.chance(f"repetitions {topic}")
    for record in records:
        if drawn.random() < REPEATED:
            tally.add(topic, DUPLICATES)
            later = record.sent_ms + drawn.randint(SECOND_MS, 10 * MINUTE_MS)
            yield Sendable(later, topic, encode(record.body))
    yield from _broken(drawn, records, tally)
    if drawn.random() < CONFLICTING:
        yield from _conflict(drawn.choice(records), tally)


def _broken(drawn: Random, records: Sequence[Record], tally: Tally) -> Iterator[Sendable]:
    source = source_named(records[0].topic)
    for reason, broken in BREAKAGES.items():
        record, is_met = drawn.choice(records), drawn.random() < BROKEN
        value = broken(source, dict(record.body)) if is_met else None
        if value is not None:
            tally.dead_letter(record.topic, reason)
            yield Sendable(record.sent_ms + drawn.randint(1, SECOND_MS), record.topic, value)


def _conflict(record: Record, tally: Tally) -> Iterator[Sendable]:
    name = next((name for name in OTHERWISE if name in record.body), None)
    if name is not None:
        tally.dead_letter(record.topic, Reason.CONFLICTING_DUPLICATE)
        value = encode({**record.body, name: record.body[name] + OTHERWISE[name]})
        yield Sendable(record.sent_ms + 5 * SECOND_MS, record.topic, value)
