"""Laws of the simulated checkout: first come, first served; never more at the tills than there are; Little's law."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.simulation.simulation import World
from lab.simulation.store_day import store_day, to_milliseconds
from lab.simulation.stores import equipped
from lab.simulation.tills import MOST_TILLS, QueueVisit
from master_dataset.registry.stores import Store
from tests.fast.unit.simulation.reading import Read, records_of

DAY = date(2026, 3, 7)
BEGINS = datetime(2026, 3, 7, tzinfo=UTC)
shops = st.integers(1, 50).map(lambda number: equipped(Store(str(number), "UTC")))
seconds = st.lists(st.integers(36_000, 40_000), max_size=80)  # many within an hour, some in the same second


def queue_visits(shop: Store, printed: list[int], seed: str) -> dict[str, list[QueueVisit]]:
    instants = [to_milliseconds(BEGINS + timedelta(seconds=second)) for second in printed]
    world = World(store_day(shop, DAY, seed), instants)
    found: dict[str, list[QueueVisit]] = {}
    for visit in world.queue_visits:
        found.setdefault(visit.queue, []).append(visit)
    return found


def changes(shop: Store, printed: list[int]) -> dict[str, list[tuple[int, Any]]]:
    instants = [to_milliseconds(BEGINS + timedelta(seconds=second)) for second in printed]
    deliveries = records_of(World(store_day(shop, DAY, "1"), instants), "queue_events")
    found: dict[str, list[tuple[int, Any]]] = {}
    for at, change in Read(deliveries, shop).payloads("queue_events"):
        found.setdefault(change.queue, []).append((at, change))
    return found


@given(shops, seconds)
@settings(max_examples=40, deadline=None)
def test_each_receipt_ends_one_service(shop: Store, printed: list[int]) -> None:
    served = Counter(
        visit.ended_ms for some in queue_visits(shop, printed, "1").values() for visit in some if visit.started_ms
    )

    assert served == Counter(to_milliseconds(BEGINS + timedelta(seconds=second)) for second in printed)


@given(shops, seconds, st.integers(0, 99).map(str))
@settings(max_examples=40, deadline=None)
def test_who_joined_first_is_served_first_and_nobody_is_overtaken(shop: Store, printed: list[int], seed: str) -> None:
    for some in queue_visits(shop, printed, seed).values():
        for before, after in pairwise(some):
            assert before.joined_ms <= after.joined_ms
            waited_until = before.started_ms if before.started_ms is not None else before.ended_ms
            assert before.joined_ms <= waited_until <= before.ended_ms
            if after.started_ms is not None:
                assert waited_until <= after.started_ms


@given(shops, seconds, st.integers(0, 99).map(str))
@settings(max_examples=40, deadline=None)
def test_never_are_more_served_at_once_than_there_are_tills(shop: Store, printed: list[int], seed: str) -> None:
    for some in queue_visits(shop, printed, seed).values():
        served = [(visit.started_ms, visit.ended_ms) for visit in some if visit.started_ms is not None]
        for started, _ in served:
            assert sum(begun <= started < ended for begun, ended in served) <= MOST_TILLS


@given(shops, seconds)
@settings(max_examples=30, deadline=None)
def test_the_sum_of_waits_is_the_integral_of_the_length_of_the_line(shop: Store, printed: list[int]) -> None:
    for events in changes(shop, printed).values():
        step = {"join": 1, "service_start": -1, "abandon": -1, "leave": 0}
        order = list(step)
        expected = sorted(events, key=lambda each: (each[0], order.index(each[1].change), each[1].track))
        length = area = before = 0
        for at, change in expected:
            area += length * (at - before)
            length, before = length + step[change.change], at
            assert change.length_after == length >= 0
        assert length == 0
        assert area == sum(change.wait_ms or 0 for _, change in expected)


def test_some_give_up_in_a_long_line() -> None:
    found = queue_visits(equipped(Store("3", "UTC")), list(range(36_000, 50_000, 20)), "1")

    kinds = Counter(visit.started_ms is None for some in found.values() for visit in some)
    assert 0 < kinds[True] < kinds[False] / 5
