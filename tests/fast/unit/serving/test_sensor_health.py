"""Sensor health: what cells tell of each registered sensor, and what they do not tell."""

import json
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from serving_layer.query import sensor_health
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking, Body

QUARTER = timedelta(minutes=15)
MIDNIGHT = datetime.fromisoformat("2026-03-07T00:00:00Z")
"""A Saturday; the stores here are in UTC unless they say otherwise."""
DOOR = Sensor("cam-1", "people_counts", "A")
ROUTER = Sensor("ap-1", "wifi_sightings")
OPEN = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat"), ("08:00-20:00",))
DAY = {"from_": "2026-03-07", "to": "2026-03-08"}


def store(*sensors: Sensor, **said: Any) -> Store:
    return Store(**{"id": "1", "timezone": "UTC", "sensors": sensors} | said)


def beat(world: World, at: datetime, sensor: str = "ap-1", of: str = "1") -> None:
    said = {"sensor_id": sensor, "source": "wifi_sightings", "interval_ms": 900_000}
    value = json.dumps({"happened_at": at.isoformat(), "operation_id": of, **said}).encode()
    world.receive(value, max(at + QUARTER, world.now()), SENSOR_HEARTBEATS)


def count(world: World, at: datetime, line: str = "A", people: tuple[int, int] = (1, 1)) -> None:
    said = {"sensor_id": "c", "line": line, "interval_ms": 900_000, "people_in": people[0], "people_out": people[1]}
    value = json.dumps({"happened_at": at.isoformat(), "operation_id": "1", **said}).encode()
    world.receive(value, max(at + QUARTER, world.now()), PEOPLE_COUNTS)


def published(*stores: Store) -> World:
    """A world whose first publication, of nothing, was before the day: since then nothing is loading."""
    world = World(*stores)
    world.rebuild(MIDNIGHT - timedelta(days=1))
    return world


def beaten(windows: int, *stores: Store, until: timedelta = timedelta(hours=24)) -> World:
    """So many windows of the day with a heartbeat, from midnight on; speed has read until then."""
    world = published(*stores)
    for number in range(windows):
        beat(world, MIDNIGHT + number * QUARTER)
    world.pass_time(MIDNIGHT + until)
    return world


def listed(world: World, **more: object) -> list[Body]:
    found: list[Body] = Asking(world).body("/v1/sensors", **DAY | more)["sensors"]
    return found


def states(world: World, **more: object) -> dict[str, str]:
    return {each["sensor"]: each["state"] for each in listed(world, **more)}


@pytest.mark.parametrize(
    ("windows", "percent", "state"), [(96, 100.0, "ok"), (95, 9500 / 96, "ok"), (94, 9400 / 96, "ok")]
)
def test_a_sensor_that_beats_is_ok_and_its_last_signal_is_known_to_the_window(
    windows: int, percent: float, state: str
) -> None:
    [found] = listed(beaten(windows, store(ROUTER)))

    assert (found["state"], found["coverage_percent"]) == (state, pytest.approx(percent))
    assert found["last_signal"] == (MIDNIGHT + (windows - 1) * QUARTER).isoformat().replace("+00:00", "Z")
    assert found["silent_minutes"] == 15 * (96 - windows)
    assert (found["measured_by"], found["shared"], "drift_percent" in found) == ("sensor", False, False)


def test_a_sensor_without_a_signal_for_longer_than_the_minutes_is_silent() -> None:
    world = beaten(93, store(ROUTER))

    assert states(world) == {"ap-1": "silent"}
    assert states(world, silent_after=45) == {"ap-1": "ok"}


def test_a_sensor_that_was_alive_for_less_than_95_percent_has_gaps() -> None:
    world = published(store(ROUTER))
    for number in range(6, 96):
        beat(world, MIDNIGHT + number * QUARTER)

    [found] = listed(world)

    assert (found["state"], found["coverage_percent"]) == ("gaps", 93.75)


def test_coverage_is_the_one_of_the_metric() -> None:
    world = beaten(90, store(ROUTER))
    [point] = Asking(world).body("/v1/metrics/coverage", store="1", **DAY)["series"][0]["points"]

    assert listed(world)[0]["coverage_percent"] == point["value"]


def test_a_sensor_that_never_sent_anything_says_so() -> None:
    [found] = listed(beaten(0, store(ROUTER)))

    assert (found["state"], found["last_signal"], found["coverage_percent"]) == ("never", None, 0)
    assert found["silent_minutes"] == 24 * 60


def test_of_what_is_not_known_nothing_is_zero() -> None:
    """History is loading; a source without cells of its sensors; a sensor of which no window is over."""
    loading = World(store(ROUTER))
    beat(loading, MIDNIGHT)
    world = beaten(
        0, store(Sensor("till", "pos_transactions"), Sensor("new", "wifi_sightings", since=date(2026, 3, 8)))
    )
    [first], [till, new] = listed(loading), listed(world, from_="2026-03-08", to="2026-03-09")

    assert [each["state"] for each in (first, till, new)] == ["unknown"] * 3
    assert [each["coverage_percent"] for each in (first, till, new)] == [None] * 3
    assert [each["silent_minutes"] for each in (first, till, new)] == [None] * 3
    assert first["last_signal"] == "2026-03-07T00:00:00Z"
    assert [each["measured_by"] for each in (till, new)] == [None, "sensor"]


def test_a_store_that_is_closed_makes_no_sensor_silent() -> None:
    """Its sensor was alive until it closed on Saturday; on Sunday it is closed all day."""
    world = beaten(80, store(ROUTER, opening_hours=OPEN), until=timedelta(hours=47))
    both = {"to": "2026-03-09"}

    assert listed(world, **both, hours="open")[0]["coverage_percent"] == 100
    assert states(world, **both, hours="open") == {"ap-1": "ok"}
    world.pass_time("2026-03-09T08:30:00Z")
    assert states(world, from_="2026-03-07", to="2026-03-10", hours="open") == {"ap-1": "ok"}
    world.pass_time("2026-03-09T08:31:00Z")
    assert states(world, from_="2026-03-07", to="2026-03-10", hours="open") == {"ap-1": "silent"}


def test_a_sensor_is_not_accused_of_a_day_on_which_the_store_was_closed() -> None:
    world = beaten(0, store(ROUTER, opening_hours=OPEN, closed_on=(date(2026, 3, 7),)))

    assert states(world) == {"ap-1": "unknown"}


def test_a_counter_is_measured_by_its_line_and_drifts_once_the_day_is_over() -> None:
    world = published(store(DOOR))
    for number in range(95):
        count(world, MIDNIGHT + number * QUARTER, people=(10, 9))
    [running] = listed(world)
    count(world, MIDNIGHT + 95 * QUARTER, people=(50, 95))
    [over] = listed(world)

    assert (running["measured_by"], running["drift_percent"], running["days"][0]["people_in"]) == ("line", None, None)
    assert (over["state"], over["drift_percent"]) == ("ok", pytest.approx(5.0))
    assert {name: over["days"][0][name] for name in ("people_in", "people_out")} == {
        "people_in": 1000,
        "people_out": 950,
    }


def test_the_store_says_how_far_all_its_doors_drift_together() -> None:
    """They come in by A and leave by B, so neither counter is wrong."""
    world = published(store(DOOR, Sensor("cam-2", "people_counts", "B")))
    for number in range(96):
        count(world, MIDNIGHT + number * QUARTER, people=(10, 0))
        count(world, MIDNIGHT + number * QUARTER, "B", people=(0, 10))

    body = Asking(world).body("/v1/sensors", **DAY)

    assert [each["drift_percent"] for each in body["sensors"]] == [100, None]
    assert [(each["drift_percent"], each["drift_high"]) for each in body["stores"]] == [(0, False)]


def test_a_sensor_that_was_replaced_answers_for_its_own_days_only() -> None:
    old, new = (
        Sensor("old", "people_counts", "A", until=date(2026, 3, 7)),
        Sensor("new", "people_counts", "A", date(2026, 3, 7)),
    )
    world = published(store(old, new))
    for number in range(-90, 48):
        count(world, MIDNIGHT + number * QUARTER, people=(2, 1))
    world.pass_time(MIDNIGHT + timedelta(hours=12))

    first, second = listed(world, from_="2026-03-06")

    assert [first["state"], second["state"]] == ["gaps", "ok"]
    assert [first["shared"], second["shared"]] == [False, False]
    assert first["last_signal"] == "2026-03-06T23:45:00Z"
    assert [[day["coverage_percent"] for day in each["days"]] for each in (first, second)] == [
        [93.75, None],
        [None, 100],
    ]
    assert (first["drift_percent"], second["drift_percent"]) == (50, None)


def test_sensors_before_and_after_the_range_are_not_listed() -> None:
    gone, coming = (
        Sensor("gone", "wifi_sightings", until=date(2026, 3, 7)),
        Sensor("coming", "wifi_sightings", since=date(2026, 3, 8)),
    )
    body = Asking(beaten(96, store(gone, ROUTER, coming))).body("/v1/sensors", **DAY)

    assert [each["sensor"] for each in body["sensors"]] == ["ap-1"]
    assert [each["sensors"] for each in body["stores"]] == [1]


def test_sensors_of_one_line_share_what_it_says_and_one_without_a_line_has_all_other_lines() -> None:
    sensors = DOOR, Sensor("cam-2", "people_counts", "A"), Sensor("cam-3", "people_counts")
    world = published(store(*sensors))
    for number in range(96):
        count(world, MIDNIGHT + number * QUARTER)
        count(world, MIDNIGHT + number * QUARTER, line="B")

    found = listed(world)

    assert [each["measured_by"] for each in found] == ["line", "line", "other_lines"]
    assert [each["shared"] for each in found] == [True, True, False]
    assert [each["coverage_percent"] for each in found] == [50, 50, 100]


@pytest.mark.parametrize(("lines", "percent"), [(("",), 50), (("", ""), 50), (("A", ""), 50)])
def test_several_lines_of_one_counter_do_not_hide_the_time_in_which_it_was_dead(
    lines: tuple[str, ...], percent: float
) -> None:
    counters = [Sensor(f"cam-{number}", "people_counts", line) for number, line in enumerate(lines)]
    world = published(store(*counters))
    for number in range(0, 96, 2):
        for line in ("A", "B", "C"):
            count(world, MIDNIGHT + number * QUARTER, line=line)
    world.pass_time(MIDNIGHT + timedelta(days=1))

    found = listed(world)

    assert [(each["state"], each["coverage_percent"]) for each in found] == [("gaps", percent)] * len(lines)
    assert {day["coverage_percent"] for each in found for day in each["days"]} == {percent}


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_day_of_23_or_25_hours_is_covered_as_a_whole(day: str, hours: int) -> None:
    world = World(store(ROUTER, timezone="Europe/Bratislava"))
    start = datetime.fromisoformat(f"{day}T00:00:00+01:00" if hours == 23 else f"{day}T00:00:00+02:00")
    world.rebuild(start - timedelta(days=1))
    for number in range(hours * 4):
        beat(world, start + number * QUARTER)
    world.pass_time(start + timedelta(hours=hours))

    [found] = listed(world, from_=day, to=(date.fromisoformat(day) + timedelta(days=1)).isoformat())

    assert (found["state"], found["coverage_percent"], len(found["days"])) == ("ok", 100, 1)


def test_both_layers_count_and_a_publication_changes_nothing() -> None:
    world = beaten(96, store(ROUTER))
    before = listed(world)
    world.rebuild(MIDNIGHT + timedelta(hours=12))
    half = listed(world)
    world.rebuild(MIDNIGHT + timedelta(hours=25))

    assert before == half == listed(world)
    assert before[0]["coverage_percent"] == 100


def test_the_last_seven_days_with_today_are_usual_and_31_are_the_most() -> None:
    asking = Asking(beaten(96, store(ROUTER), until=timedelta(hours=12)))
    days = asking.body("/v1/sensors")["sensors"][0]["days"]

    assert [days[0]["day"], days[-1]["day"], len(days)] == ["2026-03-02", "2026-03-08", 7]
    assert asking.refusal("/v1/sensors", from_="-31d")["code"] == "range_too_long"
    assert len(asking.body("/v1/sensors", from_="-30d")["sensors"][0]["days"]) == 31
    assert asking.refusal("/v1/sensors", to="2026-03-08")["code"] == "missing_argument"


@pytest.mark.parametrize(
    "argument",
    [{"state": "dead"}, {"silent_after": 14}, {"silent_after": 1441}, {"limit": 0}, {"limit": 101}, {"hours": "x"}],
)
def test_what_cannot_be_is_refused(argument: dict[str, object]) -> None:
    assert Asking(World()).refusal("/v1/sensors", **argument)["status"] == 422


def test_states_filter_the_sensors_and_stores_without_sensors_are_listed_as_such() -> None:
    world = beaten(96, store(ROUTER, Sensor("ap-2", "wifi_sightings")), store(id="2"))
    body = Asking(world).body("/v1/sensors", **DAY, state="never")

    assert [each["sensor"] for each in body["sensors"]] == ["ap-2"]
    assert [(each["store"], each["sensors"], each["drift_high"]) for each in body["stores"]] == [
        ("1", 2, None),
        ("2", 0, None),
    ]


def test_stores_come_in_pages_that_also_many_sensors_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world = published(*(store(ROUTER, id=f"{number:04}") for number in range(120)))
    asking = Asking(world)
    pages = [asking.body("/v1/sensors", **DAY, limit=50)]
    while pages[-1]["next"]:
        pages.append(asking.body("/v1/sensors", **DAY, limit=50, after=pages[-1]["next"]))
    monkeypatch.setattr(sensor_health, "MOST_SENSORS", 7)
    short = Asking(world).body("/v1/sensors", **DAY)
    following = Asking(world).body("/v1/sensors", **DAY, after=short["next"])

    assert [len(page["stores"]) for page in pages] == [50, 50, 20]
    assert [each["store"] for page in pages for each in page["sensors"]] == sorted(world.stores)
    assert [each["store"] for page in (short, following) for each in page["stores"]] == sorted(world.stores)[:14]


def test_sensors_of_another_tenant_are_not_there() -> None:
    world = beaten(96, store(ROUTER), store(Sensor("theirs", "wifi_sightings"), id="2", tenant="acme"))
    asking = Asking(world)

    assert [each["sensor"] for each in asking.body("/v1/sensors", **DAY)["sensors"]] == ["ap-1"]
    assert asking.refusal("/v1/sensors", **DAY, store="2")["code"] == "unknown_name"
    assert len(asking.body("/v1/sensors", **DAY, key=OPERATOR_KEY)["sensors"]) == 2
