"""Any stores in any groups with any targets: those of the series of an answer add up to those that were loaded."""

from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import GroupVersion, Store
from tests.support import World
from tests.support.examples import examples
from tests.support.world_api import Asking

FIRST = date(2026, 3, 26)  # clocks change on the 29th
DAYS = [FIRST + timedelta(days=number) for number in range(9)]
NET = "/v1/metrics/net_sales"
REGIONS = st.none() | st.sampled_from(["North", "South"])
STORES = st.tuples(
    st.sampled_from(["UTC", "Europe/Bratislava", "America/New_York", "Asia/Kathmandu"]),
    st.sampled_from(["00:00", "04:00"]),
    REGIONS,
    st.none() | st.tuples(st.sampled_from(DAYS), REGIONS),
    st.dictionaries(st.sampled_from(DAYS), st.integers(-1000, 10**6), max_size=9),
)
"""Time zone, start of the day, region, another one from a day on, and targets in cents."""


def registered(number: int, drawn: Any) -> Store:
    timezone, starts_at, region, later, _ = drawn
    versions = [GroupVersion(None, {"region": region})] if region else []
    versions += [GroupVersion(later[0], {"region": later[1]} if later[1] else {})] if later else []
    return Store(id=str(number), timezone=timezone, day_starts_at=starts_at, groups=tuple(versions))


@pytest.mark.parametrize("grain", ["day", "week", "weekday", "total"])
@settings(max_examples=examples(100), deadline=None)
@given(
    drawn=st.lists(STORES, min_size=1, max_size=4),
    span=st.tuples(st.integers(0, 8), st.integers(1, 9)),
    attributes=st.sampled_from(["as_then", "current"]),
)
def test_targets_of_stores_groups_and_the_total_add_up_to_those_loaded(
    grain: str, drawn: list[Any], span: tuple[int, int], attributes: str
) -> None:
    stores = [registered(number, each) for number, each in enumerate(drawn)]
    world = World(*stores)
    world.pass_time("2026-04-10T00:00:00Z")
    asking = Asking(world)
    loaded = {
        str(n): {"net_sales": {day: cents * 10_000 for day, cents in each[-1].items()}} for n, each in enumerate(drawn)
    }
    asking.targets.load("default", loaded)
    days = DAYS[span[0] :][: span[1]]
    chosen = [cents for each in drawn for day, cents in each[-1].items() if day in days]
    question = {
        "from_": str(days[0]),
        "to": str(days[-1] + timedelta(days=1)),
        "grain": grain,
        "attributes": attributes,
        "compare": "target",
    }
    has_groups = any(each.group_names for each in stores)

    for by in ("store", "total", *(["group:region"] if has_groups else [])):
        series = asking.body(NET, by=by, **question)["series"]
        points = [point for each in series for point in each["points"]]

        assert sum(Fraction(str(point["before"])) for point in points if point["before"] is not None) * 100 == sum(
            chosen
        )
        assert sum(each["targets"]["found"] for each in series) == len(chosen)
        assert sum(each["targets"]["missing"] for each in series) == len(stores) * len(days) - len(chosen)
        assert all((point["before"] is None) == ("no_target" in point.get("before_flags", ())) for point in points)
