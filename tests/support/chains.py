"""Chains of stores drawn at random: zones, currencies, business days, groups that change, and what happened in them."""

from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from master_dataset.registry.stores import GroupVersion, Store, currency
from tests.support import World, receipt
from tests.support.sensors import BEGIN, record, source_of
from views.core.cut import floor_to

FIRST, LAST = date(2026, 3, 26), date(2026, 4, 1)
"""29 March has 23 hours in Europe; BEGIN is 27 March, 12:00 UTC."""
ZONES = ("Europe/Bratislava", "America/New_York", "Asia/Tokyo", "UTC")


class Sale(NamedTuple):
    """A receipt of one line, `late` minutes on its way."""

    store: int
    minute: int
    minor: int
    late: int


class Count(NamedTuple):
    """People who came in during a quarter of an hour."""

    store: int
    minute: int
    people: int


class Chain(NamedTuple):
    """Some stores and what happened in them. `cut`: minutes after BEGIN; None: nothing was published."""

    stores: tuple[Store, ...]
    sales: tuple[Sale, ...]
    counts: tuple[Count, ...]
    cut: int | None

    def zone(self, place: int) -> ZoneInfo:
        return ZoneInfo(self.stores[place].timezone)

    def local(self, event: Sale | Count) -> datetime:
        return (BEGIN + timedelta(minutes=event.minute)).astimezone(self.zone(event.store))

    def day(self, event: Sale | Count) -> date:
        """The business day, said as people say it: before the day starts it is still yesterday."""
        local = self.local(event)
        starts = time.fromisoformat(self.stores[event.store].day_starts_at)
        return local.date() if local.time() >= starts else local.date() - timedelta(days=1)

    def world(self) -> World:
        world = World(*self.stores)
        arrivals: list[tuple[datetime, int, Sale | Count]] = []
        events: list[Sale | Count] = [*self.sales, *self.counts]
        for number, event in enumerate(events):
            late = event.late if isinstance(event, Sale) else 0
            arrivals.append((BEGIN + timedelta(minutes=event.minute + late, seconds=1), number, event))
        for stamp, number, event in sorted(arrivals):
            id_ = self.stores[event.store].id
            at = BEGIN + timedelta(minutes=event.minute)
            if isinstance(event, Sale):
                line = {"title": "thing", "price": abs(event.minor) / 100, "amount": 1 if event.minor > 0 else -1}
                world.receive(receipt(at.isoformat(), [line], number=number, store=id_), stamp)
            else:
                drawn = (event.minute, event.people, 0)
                world.receive(record("people_counts", drawn, id_), stamp, source_of("people_counts"))
        world.pass_time("2026-04-02T00:00:00Z")
        if self.cut is not None:
            world.rebuild(floor_to(BEGIN + timedelta(minutes=self.cut), timedelta(minutes=5)))
        return world


@st.composite
def histories(draw: st.DrawFn) -> tuple[GroupVersion, ...]:
    """The groups of a store, which change on some days of the question and around it."""
    values = st.fixed_dictionaries(
        {}, optional={"region": st.sampled_from(["East", "West"]), "format": st.sampled_from(["city", "mall"])}
    )
    days = st.none() | st.dates(FIRST - timedelta(days=1), LAST)
    versions = draw(st.lists(st.builds(GroupVersion, days, values), max_size=3, unique_by=lambda each: each.valid_from))
    return tuple(sorted(versions, key=lambda each: each.valid_from or date.min))


@st.composite
def registered(draw: st.DrawFn) -> tuple[Store, ...]:
    """The stores of a chain. Their ids are their places in it."""
    return tuple(
        Store(
            id=str(number),
            groups=draw(histories()),
            timezone=draw(st.sampled_from(ZONES)),
            currency=currency(draw(st.sampled_from(("EUR", "EUR", "CZK")))),
            day_starts_at=draw(st.sampled_from(("00:00", "04:00", "06:30"))),
            floor_m2=draw(st.integers(1, 900)),
        )
        for number in range(draw(st.integers(1, 4)))
    )


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    stores = draw(registered())
    places, minutes = st.integers(0, len(stores) - 1), st.integers(0, 4000)
    sales = st.builds(Sale, places, minutes, st.integers(-500, 5000).filter(bool), st.integers(0, 900))
    counts = st.builds(Count, places, minutes, st.integers(1, 90))
    return Chain(
        stores,
        tuple(draw(st.lists(sales, max_size=12))),
        tuple(draw(st.lists(counts, max_size=6, unique_by=lambda count: (count.store, count.minute)))),
        draw(st.none() | st.integers(0, 4500)),
    )
