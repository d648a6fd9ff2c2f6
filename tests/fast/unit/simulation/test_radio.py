"""Devices pass outside, some of them come in, and at night their names end."""

from collections import defaultdict
from datetime import date
from itertools import groupby, pairwise
from typing import Any

import pytest

from lab.simulation.simulation import Simulation, World
from lab.simulation.store_day import store_day
from master_dataset.registry.stores import Store
from tests.fast.unit.simulation.reading import Read

DAY = date(2026, 3, 7)
GAP_MS, STAY_MS, STATIONARY_MS = 30 * 60_000, 2 * 60_000, 6 * 3_600_000


@pytest.fixture
def sightings(store: Store) -> list[tuple[int, Any]]:
    everything = Simulation([store], DAY, DAY, "1", ["wifi_sightings"], faults=False)
    return Read(everything.deliveries(), store).payloads("wifi_sightings")


def visits(sightings: list[tuple[int, Any]]) -> list[list[tuple[int, Any]]]:
    """Naively: the sightings of a device, apart where it was not heard for more than half an hour."""
    found = []
    by_device = sorted(sightings, key=lambda each: (each[1].device, each[0]))
    for _, heard in groupby(by_device, key=lambda each: each[1].device):
        visit: list[tuple[int, Any]] = []
        for each in heard:
            if visit and each[0] - visit[-1][0] > GAP_MS:
                found.append(visit)
                visit = []
            visit.append(each)
        found.append(visit)
    return found


def test_as_many_devices_come_in_as_visitors_may_carry(store: Store, sightings: list[tuple[int, Any]]) -> None:
    people = World(store_day(store, DAY, "1")).people
    stays = [person for person in people if person.left_ms - person.came_ms >= STAY_MS + 90_000]
    came_in = passed = always = 0
    for visit in visits(sightings):
        inside = [at for at, seen in visit if seen.is_inside]
        stay = inside[-1] - inside[0] if inside else 0
        if visit[-1][0] - visit[0][0] > STATIONARY_MS:
            always += 1
        elif stay >= STAY_MS:
            came_in += 1
        else:
            passed += 1

    assert 0.6 * len(stays) < came_in < 0.9 * len(people)
    assert passed > len(people)
    assert always >= 2


def test_a_device_inside_is_heard_every_half_to_whole_minute(sightings: list[tuple[int, Any]]) -> None:
    gaps = []
    for visit in visits(sightings):
        inside = [at for at, seen in visit if seen.is_inside]
        if visit[-1][0] - visit[0][0] < 2 * 3_600_000 and not visit[0][1].is_inside:
            gaps += [after - before for before, after in pairwise(inside)]

    assert len(gaps) > 1000
    assert min(gaps) >= 30_000
    assert max(gaps) <= 60_000


def test_most_addresses_are_made_up_and_walls_dampen(sightings: list[tuple[int, Any]]) -> None:
    devices = {seen.device: seen.is_randomized for _, seen in sightings}
    signals = defaultdict(list)
    for _, seen in sightings:
        signals[seen.is_inside].append(seen.signal_dbm)

    assert 0.6 < sum(devices.values()) / len(devices) < 0.8
    assert sum(signals[True]) / len(signals[True]) > sum(signals[False]) / len(signals[False]) + 10


def test_no_name_of_a_device_lives_longer_than_a_business_day(store: Store) -> None:
    everything = Simulation([store], DAY, date(2026, 3, 9), "1", ["wifi_sightings"], faults=False)
    salts = defaultdict(set)
    for _, seen in Read(everything.deliveries(), store).payloads("wifi_sightings"):
        salts[seen.device].add((seen.salt_id, seen.business_day))

    assert {len(each) for each in salts.values()} == {1}
    assert len({salt for each in salts.values() for salt in each}) == 3
