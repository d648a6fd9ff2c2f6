"""Chains drawn at random whose tills and sensors send records of every source: some late, some more than once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from hypothesis import strategies as st

from master_dataset.registry.stores import Sensor, Store
from tests.support import World, receipt
from tests.support.chains import registered
from tests.support.sensors import BEGIN, Drawn, record, source_of, topics
from views.core.cut import floor_to

TILLS = "pos_transactions"
HOURS = {"mon": ("08:00-20:00",), "fri": ("06:00-22:00",), "sat": ("20:00-02:00",), "sun": ("00:00-24:00",)}
SENSORS = (Sensor("s", "people_counts"), Sensor("s0", "wifi_sightings"))
Fields = dict[str, object]


class Sent(NamedTuple):
    """A record and when it arrives.

    Attributes:
        store: its place in the chain.
        topic: that it is sent to.
        drawn: what it says, see `record`; of a receipt the minute and the till.
        lines: of a receipt.
        payments: of a receipt; None of an old till.
        late: how many minutes after it happened it arrives.
        repeats: how many minutes after that it arrives again.
    """

    store: int
    topic: str
    drawn: Drawn
    lines: Sequence[Fields]
    payments: Sequence[Fields] | None
    late: int
    repeats: Sequence[int]

    def value(self, number: int) -> bytes:
        """The record. `number`: of the receipt."""
        minute, till, _ = self.drawn
        if self.topic != TILLS:
            return record(self.topic, self.drawn, str(self.store))
        at = (BEGIN + timedelta(minutes=minute)).isoformat()
        of = {"number": number, "till": f"t{till}", "store": str(self.store), "payments": self.payments}
        return receipt(at, self.lines, **of)  # type: ignore[arg-type]

    def arrivals(self) -> list[datetime]:
        first = BEGIN + timedelta(minutes=self.drawn[0] + self.late, seconds=1)
        return [first + timedelta(minutes=minutes) for minutes in (0, *self.repeats)]


class Trading(NamedTuple):
    """Some stores and what they sent. `cuts`: of the publications, in minutes after BEGIN."""

    stores: tuple[Store, ...]
    sent: tuple[Sent, ...]
    cuts: tuple[int, ...]

    def world(self) -> World:
        """The world in which all of it happened, on 2 April."""
        world = World(*self.stores)
        arrivals = [(at, number) for number, each in enumerate(self.sent) for at in each.arrivals()]
        for at, number in sorted(arrivals):
            each = self.sent[number]
            world.receive(each.value(number), at, source_of(each.topic))
        world.pass_time("2026-04-02T00:00:00Z")
        for cut in self.cuts:
            world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), timedelta(minutes=5)))
        return world


@st.composite
def lines(draw: st.DrawFn) -> Fields:
    amount = draw(st.sampled_from([1, 1, 2, 3, -1, 0.5]))
    said: Fields = {"title": "t", "price": draw(st.integers(-300, 5000)) / 100, "amount": amount}
    sku, discount = draw(st.none() | st.sampled_from("abc")), draw(st.none() | st.sampled_from([0, 1, 2.5]))
    said |= {"sku": sku} if sku else {}
    return said | ({} if discount is None else {"discount": -discount if amount < 0 else discount})


PAYMENTS = st.none() | st.lists(
    st.builds(
        lambda kind, minor: {"type": kind, "amount": minor / 100},
        st.sampled_from(["cash", "card"]),
        st.integers(-500, 5000),
    ),
    max_size=2,
)
MINUTES = st.integers(0, 4000)
LATE = st.just(0) | st.integers(0, 2000)
"""Minutes. The speed layer leaves what is more than 23 hours late to the next publication."""
REPEATS = st.just(()) | st.lists(st.integers(1, 1500), max_size=2)


@st.composite
def tradings(draw: st.DrawFn, topic: str = TILLS, *, registers_sensors: bool = True) -> Trading:
    """Records of every source, most of them of one topic.

    Args:
        draw: of Hypothesis.
        topic: the one that most of them are sent to.
        registers_sensors: whether stores may say which sensors they have. Counts are null where these were mostly off.
    """
    sensors = st.sampled_from([(), SENSORS]) if registers_sensors else st.just(())
    stores = tuple(
        replace(store, sensors=draw(sensors), opening_hours=draw(st.sampled_from([{}, HOURS])))
        for store in draw(registered())
    )
    places = st.integers(0, len(stores) - 1)
    tills = st.builds(
        Sent,
        places,
        st.just(TILLS),
        st.tuples(MINUTES, st.integers(1, 2), st.just(0)),
        st.lists(lines(), max_size=3),
        PAYMENTS,
        LATE,
        REPEATS,
    )

    def sensed(of: st.SearchStrategy[str]) -> st.SearchStrategy[Sent]:
        drawn = st.tuples(MINUTES, st.integers(0, 4000), st.integers(0, 5))
        return st.builds(Sent, places, of, drawn, st.just(()), st.none(), LATE, REPEATS)

    most = tills if topic == TILLS else sensed(st.just(topic))
    others = tills | sensed(st.sampled_from(topics()))
    sent = [*draw(st.lists(most, min_size=1, max_size=10)), *draw(st.lists(others, max_size=6))]
    cuts = draw(st.lists(st.integers(0, 6000), max_size=2))
    return Trading(stores, tuple(sent), tuple(sorted(cuts)))
