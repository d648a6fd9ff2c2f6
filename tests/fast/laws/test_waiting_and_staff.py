"""Identities 8 to 11 of the metrics catalogue, asked of both layers: queues, staff and people inside."""

import json
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.examples import examples
from tests.support.sensors import source_of
from tests.support.world_api import Asking
from views.core.cut import floor_to

BEGIN = datetime.fromisoformat("2026-03-29T00:00:00+01:00")
END = BEGIN + timedelta(hours=23)
"""The business day in which clocks go forward."""
SPAN = {"store": "1", "from_": "2026-03-29", "to": "2026-03-30"}
PEOPLE = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(1, 10_000), st.sampled_from(["serve", "leave", "abandon"])),
    min_size=1,
    max_size=6,
    unique_by=lambda each: each[0],
)
"""Minute of joining, seconds of waiting, and what came of it."""
CUTS = st.none() | st.integers(0, 25 * 60)
FEW = settings(max_examples=examples(100), deadline=None)


def world_of(topic: str, said: list[tuple[datetime, dict[str, Any]]], cut: int | None) -> World:
    world = World(Store(id="1", timezone="Europe/Bratislava"))
    for at, fields in sorted(said, key=lambda each: each[0]):
        value = json.dumps({"happened_at": at.isoformat(), "operation_id": "1", **fields}).encode()
        world.receive(value, at + timedelta(seconds=1), source_of(topic))
    world.pass_time(END)
    if cut is not None:
        world.rebuild(floor_to(BEGIN + timedelta(minutes=cut), timedelta(minutes=5)))
    return world


def values(asking: Asking, metric: str, **more: object) -> list[Any]:
    [series] = asking.body(f"/v1/metrics/{metric}", **SPAN | more)["series"]
    return [point["value"] for point in series["points"]]


def queued(minute: int, seconds: int, ended: str) -> list[tuple[datetime, dict[str, Any]]]:
    """Every event of one person."""
    joined = BEGIN + timedelta(minutes=minute)
    start = joined + timedelta(seconds=seconds)
    who = {"sensor_id": "q", "queue": "Q1", "track": f"p{minute}", "joined_at": joined.isoformat()}
    if ended == "abandon":
        return [(joined, who | {"kind": "join"}), (start, who | {"kind": "abandon"})]
    left = who | {"kind": "leave", "service_started_at": start.isoformat()}
    served = [(joined, who | {"kind": "join"}), (start, who | {"kind": "service_start"})]
    return [*served, (start + timedelta(minutes=1), left)] if ended == "leave" else served


@FEW
@given(people=PEOPLE, cut=CUTS)
def test_9_and_10_a_line_is_as_long_as_people_come_times_how_long_they_wait(
    people: list[tuple[int, int, str]], cut: int | None
) -> None:
    asking = Asking(world_of("queue_events", [event for each in people for event in queued(*each)], cut))
    waits = [1000 * seconds for _, seconds, _ in people]
    lengths = asking.body("/v1/views/queue_length/cells", **SPAN)["cells"]
    counts = [cell["merged"] for cell in asking.body("/v1/views/queue/cells", **SPAN)["cells"]]

    assert sum(cell["merged"]["person_ms"] for cell in lengths) == sum(waits)
    assert values(asking, "avg_queue_length", grain="total") == [sum(waits) / (23 * 3_600_000)]
    assert all(of["joins"] >= of["served"] + of["abandoned"] for of in counts)
    assert all(of["services"] <= of["served"] >= of["within_target"] for of in counts)
    assert all(sum(of["wait"]["counts"]) == of["served"] for of in counts)


SEGMENTS = st.lists(
    st.tuples(st.integers(0, 600), st.integers(1, 700), st.booleans()), min_size=1, max_size=6, unique_by=lambda x: x[0]
)
"""Minute of the beginning, minutes, and whether it was taken back."""


@FEW
@given(segments=SEGMENTS, cut=CUTS)
def test_11_hours_over_windows_are_the_lengths_of_segments_and_a_reversal_takes_one_back(
    segments: list[tuple[int, int, bool]], cut: int | None
) -> None:
    said = []
    for minute, minutes, is_reversed in segments:
        started = BEGIN + timedelta(minutes=minute)
        of = {"staff": f"s{minute}", "kind": "worked", "role": "other", "started_at": started.isoformat()}
        ended = started + timedelta(minutes=minutes)
        said += [(ended, of)] + ([(ended, of | {"sign": -1, "revision": 1})] if is_reversed else [])
    asking = Asking(world_of("staff_hours", said, cut))
    lasted = sum(minutes for _, minutes, is_reversed in segments if not is_reversed)

    assert values(asking, "labor_hours", grain="total") == [lasted / 60]
    assert sum(values(asking, "staff_count", grain="total")) == lasted / (23 * 60)


FLOWS = st.dictionaries(st.integers(0, 91), st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=12)
"""Of some of the 92 windows of the day, how many came in and went out."""


@FEW
@given(flows=FLOWS, since=st.integers(0, 91), cut=CUTS)
def test_8_people_inside_do_not_depend_on_the_range_and_end_as_the_drift(
    flows: dict[int, tuple[int, int]], since: int, cut: int | None
) -> None:
    said = [
        (
            BEGIN + timedelta(minutes=15 * number),
            {
                "sensor_id": "c",
                "line": "A",
                "interval_ms": 900_000,
                "people_in": people_in,
                "people_out": people_out,
            },
        )
        for number, (people_in, people_out) in flows.items()
    ]
    asking = Asking(world_of("people_counts", said, cut))
    start = (BEGIN + timedelta(minutes=15 * since)).isoformat()
    day, later = values(asking, "occupancy", grain="15m"), values(asking, "occupancy", grain="15m", from_=start)
    drifts = [sum(a - b for at, (a, b) in flows.items() if at <= number) for number in range(92)]

    assert min(day) >= 0
    assert later == day[since:]
    assert values(asking, "occupancy_max", from_=start) == [max(later)]
    if min(drifts) >= 0:
        assert day[-1:] == values(asking, "count_drift")
