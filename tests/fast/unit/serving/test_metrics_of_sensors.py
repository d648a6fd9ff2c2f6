"""Metrics that are more than a formula: people inside, power hours, sources that are missing, flags of a point."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources import registered_sources
from tests.support import World, receipt
from tests.support.world_api import Asking, Body

BAR = Store(id="1", timezone="Europe/Bratislava", day_starts_at="04:00")
LASTS = timedelta(minutes=15)


def counted(*flows: tuple[str, int, int], store: Store = BAR, **more: Any) -> World:
    """People in and out of the quarter hours that begin then, at door A unless `line` says another."""
    world = World(store)
    for at, people_in, people_out in flows:
        said = {"sensor_id": "c", "line": "A", "interval_ms": 900_000, "people_in": people_in, "people_out": people_out}
        send(world, "people_counts", at, said | more)
    return world


def send(world: World, topic: str, at: str, said: dict[str, Any]) -> None:
    value = json.dumps({"happened_at": at, "operation_id": "1", **said}).encode()
    world.receive(value, max(datetime.fromisoformat(at) + LASTS, world.now()), registered_sources()[topic])


def series(world: World, metric: str, start: str, end: str, **more: object) -> list[Body]:
    body = Asking(world).body(f"/v1/metrics/{metric}", store="1", from_=start, to=end, **more)
    return [each for of in body["series"] for each in of["points"]]


def values(world: World, metric: str, start: str, end: str, **more: object) -> list[Any]:
    return [point["value"] for point in series(world, metric, start, end, **more)]


NIGHT = (
    ("2026-03-07T03:45:00+01:00", 9, 0),
    ("2026-03-07T04:00:00+01:00", 1, 4),
    ("2026-03-07T04:15:00+01:00", 6, 2),
    ("2026-03-07T05:00:00+01:00", 0, 3),
)


def test_people_inside_are_counted_from_the_start_of_the_business_day_and_never_below_zero() -> None:
    world = counted(*NIGHT)
    span = ("2026-03-07T03:45:00+01:00", "2026-03-07T05:15:00+01:00")

    assert values(world, "occupancy", *span, grain="15m") == [9, 0, 4, 4, 4, 1]
    assert values(world, "occupancy_max", *span, grain="hour") == [9, 4, 1]


@pytest.mark.parametrize("start", ["04:00", "04:15", "04:45", "05:00"])
def test_people_inside_do_not_depend_on_where_the_question_begins(start: str) -> None:
    span = (f"2026-03-07T{start}:00+01:00", "2026-03-07T05:15:00+01:00")

    assert values(counted(*NIGHT), "occupancy", *span, grain="total") == [1]


def test_of_a_window_that_has_not_begun_nobody_knows_who_is_inside() -> None:
    span = ("2026-03-07T04:15:00+01:00", "2026-03-07T06:00:00+01:00")

    assert values(counted(*NIGHT), "occupancy", *span, grain="15m") == [4, 4, 4, 1, None, None, None]


def test_counters_that_disagree_by_more_than_5_percent_are_flagged_once_the_day_is_over() -> None:
    world = counted(*NIGHT)
    day = ("2026-03-07T04:00:00+01:00", "2026-03-08T04:00:00+01:00")
    running = [series(world, metric, *day)[0] for metric in ("occupancy", "count_drift")]
    world.pass_time("2026-03-08T03:00:00Z")
    over = [series(world, metric, *day)[0] for metric in ("occupancy", "count_drift")]

    assert [(point["value"], point.get("flags")) for point in running] == [(1, None), (-2, None)]
    assert [(point["value"], point.get("flags")) for point in over] == [(1, ["drift_high"]), (-2, ["drift_high"])]


def test_drift_is_counted_over_the_whole_business_days_that_a_question_touches() -> None:
    body = series(counted(*NIGHT), "count_drift", "2026-03-07T04:20:00+01:00", "2026-03-07T04:30:00+01:00")

    assert [(point["start"], point["value"]) for point in body] == [("2026-03-07T03:00:00Z", -2)]


def test_power_hours_are_the_fewest_that_hold_40_percent_and_the_earlier_of_equal_ones() -> None:
    world = counted(
        ("2026-03-06T17:00:00+01:00", 20, 0),
        ("2026-03-06T17:30:00+01:00", 5, 0),
        ("2026-03-07T10:00:00+01:00", 25, 0),
        ("2026-03-07T11:00:00+01:00", 25, 0),
        ("2026-03-13T18:00:00+01:00", 25, 0),
    )

    assert values(world, "power_hours", "2026-03-06", "2026-03-14") == [
        [
            {"weekday": 5, "hour": 17, "count": 25, "share": 25.0},
            {"weekday": 5, "hour": 18, "count": 25, "share": 25.0},
        ]
    ]


def test_a_share_of_a_door_is_one_of_all_doors() -> None:
    world = counted(("2026-03-07T10:00:00+01:00", 1, 0), line="A")
    said = {"sensor_id": "d", "line": "B", "interval_ms": 900_000, "people_in": 3, "people_out": 0}
    send(world, "people_counts", "2026-03-07T10:00:00+01:00", said)

    assert values(world, "entrance_share", "2026-03-07", "2026-03-08", by="line") == [25.0, 75.0]
    assert values(world, "entrance_share", "2026-03-07", "2026-03-08") == [100.0]


@pytest.mark.parametrize(
    "metric", ["traffic_in", "queue_joins", "unique_devices", "labor_hours", "passby_capture_rate"]
)
def test_what_a_store_cannot_know_is_no_zero(metric: str) -> None:
    world = World(BAR)
    world.receive(receipt("2026-03-07T10:00:00+01:00"), "2026-03-07T10:00:01+01:00")

    [point] = series(world, metric, "2026-03-07", "2026-03-08")

    assert (point["value"], point["flags"]) == (None, ["no_source"])


def test_a_registered_sensor_that_saw_nobody_says_zero_and_a_till_always_does() -> None:
    world = World(Store(id="1", timezone="UTC", sensors=(Sensor("q-1", "queue_events"),)))
    world.pass_time("2026-03-09T00:00:00Z")
    world.rebuild("2026-03-09T00:00:00Z")

    assert values(world, "queue_joins", "2026-03-07", "2026-03-08") == [0]
    assert values(world, "net_sales", "2026-03-07", "2026-03-08") == [0]


def test_planned_hours_are_not_worked_hours_and_only_worked_ones_count() -> None:
    world = World(BAR)
    said = {"staff": "s", "role": "checkout", "started_at": "2026-03-07T09:00:00+01:00"}
    send(world, "staff_hours", "2026-03-07T10:00:00+01:00", said | {"kind": "planned"})
    day = ("2026-03-07", "2026-03-08")
    [planned] = series(world, "labor_hours", *day)
    send(world, "staff_hours", "2026-03-07T10:00:00+01:00", said | {"kind": "worked"})
    [worked] = series(world, "labor_hours", *day)

    assert [(point["value"], point.get("flags")) for point in (planned, worked)] == [(0, ["planned_only"]), (1, None)]


def test_a_share_of_few_people_says_so_and_unknown_ones_are_left_out() -> None:
    world = World(BAR)
    for gender, people in (("female", 9), ("male", 20), ("unknown", 40)):
        said = {"sensor_id": "c", "interval_ms": 900_000, "age_band": "25-34", "gender": gender, "people": people}
        send(world, "demographics", "2026-03-07T10:00:00+01:00", said)

    [point] = series(world, "female_rate", "2026-03-07", "2026-03-08")

    assert (point["value"], point["flags"]) == (pytest.approx(900 / 29), ["small_sample"])


def test_a_sensor_that_does_not_know_staff_is_named() -> None:
    [point] = series(counted(NIGHT[0]), "staff_traffic_in", "2026-03-06", "2026-03-08", grain="total")

    assert (point["value"], point["flags"]) == (0, ["no_staff_split"])


def test_an_opportunity_below_zero_is_kept_and_flagged() -> None:
    store = Store(id="1", timezone="UTC", conversion_target=Decimal(10))
    world = counted(("2026-03-07T10:00:00Z", 4, 0), store=store)
    world.receive(receipt("2026-03-07T10:00:00Z", minor=100), "2026-03-07T10:30:00Z")

    [point] = series(world, "missed_sales", "2026-03-07", "2026-03-08")

    assert (point["value"], point["flags"]) == (-0.6, ["below_zero"])


def test_devices_of_several_days_are_counted_once_a_day_and_the_point_says_so() -> None:
    world = World(BAR)
    for day, device in (("2026-03-07", "a"), ("2026-03-08", "b")):
        for minute in ("00", "10"):
            said = {"sensor_id": "ap", "device": device * 32, "salt_id": day, "zone": "inside", "signal_dbm": -50}
            at = f"{day}T10:{minute}:00+01:00"
            value = json.dumps({"happened_at": at, "operation_id": "1", **said}).encode()
            world.receive(value, at, registered_sources()["wifi_sightings"])
    world.pass_time("2026-03-09T00:00:00Z")

    daily = series(world, "unique_devices", "2026-03-07", "2026-03-09")
    [both] = series(world, "unique_devices", "2026-03-07", "2026-03-09", grain="total")

    assert [(point["value"], point.get("flags")) for point in daily] == [(1, None), (1, None)]
    assert (both["value"], both["flags"]) == (2, ["device_days"])


def test_a_metric_without_a_grain_takes_the_first_that_has_a_meaning() -> None:
    asking = Asking(counted(NIGHT[1]))
    day = {"store": "1", "from_": "2026-03-07", "to": "2026-03-08"}

    grains = [asking.body(f"/v1/metrics/{metric}", **day)["grain"] for metric in ("productivity", "power_hours")]

    assert grains == ["hour_of_week", "total"]


def test_a_list_has_no_change_but_its_value_before() -> None:
    world = counted(("2026-03-07T10:00:00+01:00", 1, 0))

    [point] = series(world, "power_hours", "2026-03-07", "2026-03-08", compare="previous_week")

    assert (point["before"], point["change"]) == (None, None)
