"""What happens to sensors: one is off for a while, one cannot send for a while, the clock of one is wrong."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property

from lab.simulation.clock import MINUTE_MS, SECOND_MS, milliseconds, written
from lab.simulation.equipment import simulated
from lab.simulation.record import Record
from lab.simulation.shop_day import ShopDay, Span
from lab.simulation.tally import DRIFTED, EVENTS, LATE, SILENCED, Tally
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS

OFF = 0.08
CUT_OFF = 0.08
WRONG_CLOCK = 0.3
"""Of the sensors of a day; of the days, for the clock."""
DRIFT_MS = (30 * SECOND_MS, 120 * SECOND_MS)
"""By so much the clock is wrong at the end of the day."""
AFTER_ANOTHER_MS = 20
"""Between two records of a late batch."""


class Trouble:
    """Of one shop and day. Who has it does not depend on which sources are asked for."""

    def __init__(self, day: ShopDay, tally: Tally) -> None:
        """`tally` is told of every record."""
        self._day, self._tally = day, tally
        self._spans: dict[str, tuple[Span, Span]] = {}
        self._late: dict[str, int] = {}

    def over(self, records: Iterable[Record]) -> Iterator[Record]:
        """Give what is sent after all, in the order of the records (by when each should have been sent)."""
        for record in records:
            sender = record.sensor or record.topic
            off, cut_off = self._spans.get(sender) or self._spans.setdefault(sender, self._drawn(sender))
            if record.sensor and off[0] <= record.sent_ms < off[1]:
                self._tally.add(record.topic, SILENCED)
                continue
            shown = self._drifted(record) if record.sensor == self._wrong_clock[0] else record
            is_late = cut_off[0] <= record.sent_ms < cut_off[1]
            self._tally.add(record.topic, EVENTS)
            yield self._later(shown, sender, cut_off[1]) if is_late else shown

    def _drawn(self, sender: str) -> tuple[Span, Span]:
        drawn = self._day.chance(f"trouble {sender}")
        spans = []
        for share in (OFF, CUT_OFF):
            begins = drawn.randrange(self._day.begins, self._day.ends, MINUTE_MS)
            spans.append((begins, begins + (drawn.random() < share) * drawn.randint(15, 120) * MINUTE_MS))
        return spans[0], spans[1]

    def _later(self, record: Record, sender: str, again_ms: int) -> Record:
        """Send it once the sensor can send again: all that waited, one after another."""
        self._late[sender] = self._late.get(sender, again_ms) + AFTER_ANOTHER_MS
        self._tally.add(record.topic, LATE)
        return record._replace(sent_ms=self._late[sender])

    @cached_property
    def _wrong_clock(self) -> tuple[str, int]:
        """A router, and by how much its clock is wrong in the end. What counts intervals would leave its window."""
        drawn = self._day.chance("clock")
        routers = [each.id for each in simulated(self._day.store, WIFI_SIGHTINGS.topic)]
        if not routers or drawn.random() >= WRONG_CLOCK:
            return "-", 0
        return drawn.choice(routers), drawn.choice((-1, 1)) * drawn.randint(*DRIFT_MS)

    def _drifted(self, record: Record) -> Record:
        if record.topic != WIFI_SIGHTINGS.topic:
            return record
        at = milliseconds(datetime.fromisoformat(record.body["happened_at"]))
        shown = at + self._wrong_clock[1] * (at - self._day.begins) // (self._day.ends - self._day.begins)
        self._tally.add(record.topic, DRIFTED)
        return record._replace(body={**record.body, "happened_at": written(shown)})
