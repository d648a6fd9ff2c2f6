"""Zeroes are trusted as far as sensors were alive: 95 % or a flag, 50 % or no value."""

import json
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from tests.support import World
from tests.support.world_api import Asking, Body

DOOR = Sensor("cam-1", "people_counts", "door-A")
ROUTER = Sensor("ap-2", "wifi_sightings")
NINE = datetime.fromisoformat("2026-03-07T09:00:00Z")
EIGHT_HOURS = {"store": "1", "from_": "2026-03-07T09:00:00Z", "to": "2026-03-07T17:00:00Z", "grain": "total"}
QUARTER = timedelta(minutes=15)


def store(*sensors: Sensor, **said: Any) -> Store:
    return Store(id="1", timezone="UTC", sensors=sensors, **said)


def count(world: World, at: datetime, line: str = "door-A", people_in: int = 1) -> None:
    said = {"people_in": people_in, "people_out": 0, "line": line, "sensor_id": "cam-1", "interval_ms": 900_000}
    value = json.dumps({"happened_at": at.isoformat(), "operation_id": "1", **said}).encode()
    world.receive(value, at + QUARTER, PEOPLE_COUNTS)


def beat(world: World, at: datetime) -> None:
    said = {"sensor_id": "ap-2", "source": "wifi_sightings", "interval_ms": 900_000}
    value = json.dumps({"happened_at": at.isoformat(), "operation_id": "1", **said}).encode()
    world.receive(value, at + QUARTER, SENSOR_HEARTBEATS)


def counted(windows: int, *sensors: Sensor, **said: Any) -> World:
    """So many windows of eight hours were counted, from the first on; speed has read until their end."""
    world = World(store(*sensors, **said))
    for number in range(windows):
        count(world, NINE + number * QUARTER)
    world.pass_time(NINE + 32 * QUARTER)
    return world


def point(world: World, metric: str, **more: object) -> Body:
    body = Asking(world).body(f"/v1/metrics/{metric}", **EIGHT_HOURS | more)
    found: Body = body["series"][0]["points"][0]
    return found


@pytest.mark.parametrize(
    ("windows", "value", "flags"),
    [
        (32, 32, None),
        (31, 31, None),
        (30, 30, ["low_coverage"]),
        (24, 24, ["low_coverage"]),
        (16, 16, ["low_coverage"]),
        (15, None, ["low_coverage", "masked"]),
    ],
)
def test_a_dead_door_is_flagged_below_95_percent_and_masked_below_50(
    windows: int, value: int | None, flags: list[str] | None
) -> None:
    found = point(counted(windows, DOOR), "traffic_in")

    assert (found["value"], found.get("flags")) == (value, flags)


def test_coverage_is_what_was_covered_of_what_registered_sensors_should_have() -> None:
    world = counted(24, DOOR, ROUTER)
    for number in range(32):
        beat(world, NINE + number * QUARTER)

    assert point(world, "coverage")["value"] == 87.5
    assert point(world, "coverage", only_covered="true")["value"] == 100.0


def test_a_sensor_is_expected_from_its_first_day_until_before_its_last() -> None:
    gone = Sensor("cam-0", "people_counts", "door-B", None, date(2026, 3, 7))
    coming = Sensor("cam-9", "people_counts", "door-C", date(2026, 3, 8))

    assert point(counted(24, DOOR, gone, coming), "coverage")["value"] == 75.0


def test_nothing_is_held_against_a_store_that_registers_no_sensor() -> None:
    found = point(counted(1), "traffic_in")

    assert (found["value"], found.get("flags")) == (1, None)
    assert point(counted(1), "coverage")["value"] is None


def test_a_metric_that_needs_no_coverage_is_neither_flagged_nor_masked() -> None:
    assert point(counted(1, DOOR), "group_traffic_in") == {
        "start": "2026-03-07T09:00:00Z",
        "date": "2026-03-07",
        "value": 0,
        "final": False,
    }


def test_a_running_window_is_not_held_against_its_sensor() -> None:
    world = World(store(DOOR))
    count(world, NINE)
    world.pass_time(NINE + QUARTER + timedelta(minutes=7))

    assert "flags" not in point(world, "traffic_in")


def test_only_covered_keeps_the_windows_in_which_every_source_was_alive() -> None:
    world = counted(24, DOOR)

    found = point(world, "traffic_in", only_covered="true")

    assert (found["value"], found.get("flags")) == (24, None)
    assert point(world, "avg_queue_length", only_covered="true")["value"] is None


@pytest.mark.parametrize(("windows", "left_out"), [(31, []), (30, ["low_coverage"])])
def test_a_store_whose_sensors_were_dead_is_not_comparable(windows: int, left_out: list[str]) -> None:
    world = counted(windows, DOOR, open_since=date(2020, 1, 1))

    body = Asking(world).body("/v1/metrics/traffic_in", comp="true", **EIGHT_HOURS)

    assert [each["reason"] for each in body["left_out"]] == left_out
    assert len(body["series"]) == 1 - len(left_out)


def test_both_sides_of_a_comparison_must_be_covered() -> None:
    world = World(store(DOOR, open_since=date(2020, 1, 1)))
    for number in range(32):
        count(world, NINE + number * QUARTER)
    world.pass_time(NINE + 32 * QUARTER)

    body = Asking(world).body("/v1/metrics/traffic_in", comp="true", compare="previous_week", **EIGHT_HOURS)

    assert body["left_out"] == [
        {"store": "1", "reason": "low_coverage", "detail": "Its sensors were alive for 0.0 % of the time."}
    ]


def test_without_registered_sensors_a_window_is_covered_if_any_was_alive() -> None:
    assert point(counted(24), "traffic_in", only_covered="true")["value"] == 24


@pytest.mark.parametrize(("windows", "value", "flag"), [(16, 32, "low_coverage"), (15, None, "masked")])
def test_a_counter_that_counts_at_two_lines_proves_once_that_it_is_alive(
    windows: int, value: int | None, flag: str
) -> None:
    world = World(store(Sensor("cam-1", "people_counts")))
    for number in range(windows):
        for line in ("A", "B"):
            count(world, NINE + number * QUARTER, line)
    world.pass_time(NINE + 32 * QUARTER)

    found = point(world, "traffic_in")

    assert (found["value"], flag in found["flags"]) == (value, True)


def test_what_is_not_registered_proves_nothing_of_what_is() -> None:
    world = counted(32, DOOR, Sensor("cam-2", "people_counts", "door-B"))
    for number in range(32):
        count(world, NINE + number * QUARTER, "door-C")
    world.pass_time(NINE + 32 * QUARTER)

    assert "low_coverage" in point(world, "traffic_in")["flags"]


@pytest.mark.parametrize("by", [{"store": "1"}, {"by": "total"}])
def test_nothing_is_known_of_an_hour_of_which_no_window_is_covered(by: dict[str, str]) -> None:
    hourly = {**EIGHT_HOURS, "grain": "hour", "only_covered": "true", "compare": "previous_week"} | by

    body = Asking(counted(4, DOOR)).body("/v1/metrics/traffic_in", **hourly)

    [first, second, *_] = body["series"][0]["points"]
    assert (first["value"], first.get("flags")) == (4, None)
    assert (second["value"], "masked" in second["flags"]) == (None, True)
    assert body["series"][0]["compared"]["now"]["hours"] == 1.0


def test_a_store_whose_sensors_were_dead_is_not_comparable_by_the_hours_in_which_they_were_not() -> None:
    world = World(store(DOOR, open_since=date(2020, 1, 1)))
    for number in range(32):
        count(world, NINE - timedelta(days=7) + number * QUARTER)
    for number in range(8):
        count(world, NINE + number * QUARTER)
    world.pass_time(NINE + 32 * QUARTER)
    comparable = {**EIGHT_HOURS, "comp": "true", "compare": "previous_week"}

    bodies = [
        Asking(world).body("/v1/metrics/traffic_in", **comparable, only_covered=each) for each in ("false", "true")
    ]

    assert [[each["reason"] for each in body["left_out"]] for body in bodies] == [["low_coverage"]] * 2
