"""One shop on one day: receipts, queues, visitors and staff that fit each other, and what every source says of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.simulation.baskets import pos_transactions
from lab.simulation.beating import sensor_heartbeats
from lab.simulation.browsing import zone_presence
from lab.simulation.checkout import Turn, checkout
from lab.simulation.counting import demographics, people_counts
from lab.simulation.demand import demand
from lab.simulation.equipment import simulated
from lab.simulation.queueing import queue_events
from lab.simulation.radio import Radio
from lab.simulation.record import Record, Records
from lab.simulation.roster import Shift, roster, staff_hours
from lab.simulation.shop_day import ShopDay
from lab.simulation.visitors import Visitor, visitors
from lab.simulation.weather import weather_observations

SEEN = ("people_counts", "wifi_sightings", "queue_events", "demographics", "zone_presence")
"""Sources of sensors: a shop that has none of a source tells nothing of it."""


@dataclass(frozen=True, eq=False)
class World:
    """`real`: instants of the real receipts, in ms; with None the shop has none and prints its own."""

    day: ShopDay
    real: Sequence[int] | None = None

    @cached_property
    def receipts(self) -> Sequence[int]:
        """The instants of the receipts, sorted."""
        return demand(self.day) if self.real is None else sorted(self.real)

    @cached_property
    def turns(self) -> Sequence[Turn]:
        """Who stood in a queue."""
        return checkout(self.day, self.receipts)

    @cached_property
    def people(self) -> Sequence[Visitor]:
        """Who came in."""
        return visitors(self.day, self.turns)

    @cached_property
    def shifts(self) -> Sequence[Shift]:
        """Who worked."""
        return roster(self.day)

    def records(self, topics: Collection[str]) -> Sequence[Record]:
        """What the sensors and tills send of these sources, by when it is sent. Real receipts are not sent again."""
        told: Mapping[str, Callable[[], Records]] = {
            "people_counts": lambda: people_counts(self.day, self.people, self.shifts),
            "wifi_sightings": lambda: Radio(self.day).hear(self.people, self.shifts),
            "queue_events": lambda: queue_events(self.day, self.turns),
            "demographics": lambda: demographics(self.day, self.people),
            "zone_presence": lambda: zone_presence(self.day, self.people),
            "staff_hours": lambda: staff_hours(self.day, self.shifts),
            "weather_observations": lambda: weather_observations(self.day),
            "sensor_heartbeats": lambda: sensor_heartbeats(self.day),
            "pos_transactions": lambda: pos_transactions(self.day, self.receipts if self.real is None else ()),
        }
        asked = [topic for topic in told if topic in topics and (topic not in SEEN or simulated(self.day.store, topic))]
        found = [record for topic in asked for record in told[topic]()]
        return sorted(found, key=lambda record: record.sent_ms)
