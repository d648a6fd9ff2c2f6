"""Laws of a simulated store: everyone who enters leaves, and all sensors report the same people."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.simulation.simulation import Simulation, World, matching_records, sensor_topics
from lab.simulation.store_day import QUARTER_MS, store_day, to_milliseconds, window_start
from lab.simulation.stores import equipped
from lab.simulation.visitors import IDLE, MOST_CONVERSION
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from tests.fast.unit.simulation.reading import Read
from tests.support.examples import examples

ZONES = ("Europe/Bratislava", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo")
BEGINS = datetime(2026, 3, 7, tzinfo=UTC)
ENDS = BEGINS + timedelta(days=1)

seeds = st.integers(0, 10_000).map(str)
shops = st.builds(lambda number, zone: equipped(Store(str(number), zone)), st.integers(1, 50), st.sampled_from(ZONES))
days = st.dates(date(2026, 1, 1), date(2027, 12, 31))
receipts = st.lists(st.integers(0, 86_399).map(lambda second: BEGINS + timedelta(seconds=second)), max_size=60)


def simulated(shop: Store, day: date, seed: str) -> Read:
    everything = Simulation([shop], day, day, seed, registered_sources(), faults=False)
    return Read(everything.deliveries(), shop)


@pytest.fixture(scope="module")
def saturday(store: Store) -> Read:
    """What a shop sends on a day."""
    return simulated(store, date(2026, 3, 7), "1")


def matched(shop: Store, printed: list[datetime], seed: str) -> Read:
    deliveries = matching_records(shop, (BEGINS, ENDS), printed, seed, ["people_counts", "demographics"])
    return Read(deliveries, shop)


@given(shops, days, seeds)
@settings(max_examples=examples(20, least=2), deadline=None)
def test_every_record_of_a_day_without_faults_is_an_event_of_its_own(shop: Store, day: date, seed: str) -> None:
    read = simulated(shop, day, seed)

    assert read.dead_letters == {}
    assert read.sent == len(read.events)
    odd = {flag for event in read.events.values() for flag in getattr(event.payload, "flags", ())}
    assert odd <= {"instant_wait", "weak_signal"}
    assert {event.topic for event in read.events.values()} == set(registered_sources())


@given(shops, receipts, seeds)
@settings(max_examples=examples(50, least=5), deadline=None)
def test_everybody_who_came_in_goes_out_and_nobody_before(shop: Store, printed: list[datetime], seed: str) -> None:
    counts = matched(shop, printed, seed).payloads("people_counts")

    by_window: Counter[int] = Counter()
    for at, count in counts:
        by_window[at] += count.people_in - count.people_out
    inside = list(accumulate(by_window[at] for at in sorted(by_window)))
    assert min(inside) >= 0
    assert inside[-1] == 0
    assert sum(c.staff_in for _, c in counts) == sum(c.staff_out for _, c in counts)
    assert sum(c.group_in for _, c in counts) == sum(c.group_out for _, c in counts)


@given(shops, receipts, seeds)
@settings(max_examples=examples(50, least=5), deadline=None)
def test_demographics_sum_to_who_came_in(shop: Store, printed: list[datetime], seed: str) -> None:
    read = matched(shop, printed, seed)

    came, seen = Counter[int](), Counter[int]()
    for at, count in read.payloads("people_counts"):
        came[at] += count.people_in
    for at, some in read.payloads("demographics"):
        seen[at] += some.people
    assert +came == +seen


@given(shops, receipts, seeds)
@settings(max_examples=examples(50, least=5), deadline=None)
def test_conversion_is_what_a_shop_could_have(shop: Store, printed: list[datetime], seed: str) -> None:
    people = sum(count.people_in for _, count in matched(shop, printed, seed).payloads("people_counts"))

    if printed:
        assert 0.2 <= len(printed) / people <= 0.6
    else:
        assert people == 0


@given(shops, receipts, seeds)
@settings(max_examples=examples(50, least=5), deadline=None)
def test_in_every_window_more_come_in_than_pay(shop: Store, printed: list[datetime], seed: str) -> None:
    came: Counter[int] = Counter()
    for at, count in matched(shop, printed, seed).payloads("people_counts"):
        came[at] += count.people_in

    paid = Counter(window_start(to_milliseconds(at)) for at in printed)
    assert {at: number for at, number in paid.items() if number > MOST_CONVERSION * came[at]} == {}


@given(st.lists(st.integers(9 * 3600, 18 * 3600 - 1), max_size=60), seeds)
@settings(max_examples=examples(30, least=3), deadline=None)
def test_a_store_with_opening_hours_is_empty_when_it_is_closed(paid: list[int], seed: str) -> None:
    shop = equipped(Store("1", "UTC", opening_hours={"sat": ("09:00-18:00",)}))
    counts = matched(shop, [BEGINS + timedelta(seconds=second) for second in paid], seed).payloads("people_counts")

    opens, closes = (to_milliseconds(BEGINS + timedelta(hours=hour)) for hour in (9, 18))
    moved = [at for at, count in counts if count.people_in or count.people_out]
    assert all(opens <= at < closes for at in moved)


@given(shops, receipts, seeds)
@settings(max_examples=examples(50, least=5), deadline=None)
def test_each_receipt_has_a_visitor_who_came_in_before(shop: Store, printed: list[datetime], seed: str) -> None:
    world = World(store_day(shop, BEGINS.date(), seed), [to_milliseconds(at) for at in printed])
    begins = world.day.begins
    came = sorted(person.came_ms for person in world.people)

    for number, paid in enumerate(at for at in world.receipts if begins < at < world.day.ends):
        assert came[number] <= paid


@given(shops, days, seeds)
@settings(max_examples=examples(30, least=3), deadline=None)
def test_the_receipts_of_a_shop_without_real_ones_fit_its_visitors_too(shop: Store, day: date, seed: str) -> None:
    world = World(store_day(shop, day, seed))

    opens, closes = world.day.open[0][0], world.day.open[-1][1]
    assert all(opens < at < closes for at in world.receipts)
    if world.receipts:
        assert 0.2 <= len(world.receipts) / len(world.people) <= 0.6


@given(shops, days, seeds)
@settings(max_examples=examples(20, least=2), deadline=None)
def test_an_interval_lies_in_one_window_and_zeros_are_said(shop: Store, day: date, seed: str) -> None:
    read = simulated(shop, day, seed)
    windows = list(store_day(shop, day, seed).quarters())

    for topic in ("people_counts", "demographics", "weather_observations", "sensor_heartbeats"):
        for at, payload in read.payloads(topic):
            assert at // QUARTER_MS == (at + payload.interval_ms - 1) // QUARTER_MS
    lines = {count.line for _, count in read.payloads("people_counts")}
    for line in lines:
        assert [at for at, count in read.payloads("people_counts") if count.line == line] == windows
    assert [at for at, _ in read.payloads("weather_observations")] == windows


def test_every_zone_that_was_entered_is_left_again(saturday: Read) -> None:
    visits = saturday.payloads("zone_presence")

    entered = Counter((who.zone, who.track, at) for at, who in visits if who.crossing == "enter")
    left = Counter((who.zone, who.track, who.entered_us // 1000) for _, who in visits if who.crossing == "exit")
    assert entered == left
    assert len(entered) > 100


def test_a_closed_day_has_signs_of_life_and_weather_but_no_visitors(store: Store) -> None:
    read = simulated(store, date(2026, 3, 9), "1")  # a Monday

    assert sum(count.people_in + count.staff_in for _, count in read.payloads("people_counts")) == 0
    assert read.payloads("weather_observations")
    assert read.payloads("sensor_heartbeats")
    assert not read.payloads("queue_events") + read.payloads("pos_transactions") + read.payloads("staff_hours")


def test_a_day_that_sold_nothing_has_only_a_few_who_look_in(store: Store) -> None:
    world = World(store_day(store, date(2026, 3, 7), "1"), [])

    assert 0 < len(world.people) <= IDLE


def test_a_correction_takes_back_what_was_said_before() -> None:
    shop = equipped(Store("1", "Europe/Bratislava"))
    everything = Simulation([shop], date(2026, 3, 2), date(2026, 3, 8), "1", ["staff_hours"], faults=False)
    segments = Read(everything.deliveries(), shop).payloads("staff_hours")

    said = {(who.staff, who.basis, who.started_us, at) for at, who in segments if who.sign == 1}
    taken_back = {(who.staff, who.basis, who.started_us, at) for at, who in segments if who.sign == -1}
    assert taken_back
    assert taken_back <= said
    assert all(who.revision == 1 for _, who in segments if who.sign == -1)


@pytest.mark.parametrize("topic", sensor_topics())
def test_simulated_sensors_say_so_in_their_names(saturday: Read, topic: str) -> None:
    payloads = [payload for _, payload in saturday.payloads(topic)]

    names = {str(getattr(each, "sensor_id", getattr(each, "provider", "simulated"))) for each in payloads}
    assert all(name.startswith("sim") for name in names)
