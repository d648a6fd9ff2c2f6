"""Totals that are no sums of values: percentiles, distinct devices, and what depends on how long sensors were alive.

A total has to be what one store would answer to which everything happened: one histogram, one sketch, one sensor time.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from master_dataset.registry.stores import GroupVersion, Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from tests.fast.laws.test_totals import LABELS, group_of, same
from tests.support import World
from tests.support.chains import FIRST, LAST, ZONES, Chain, Sale, chains
from tests.support.examples import examples
from tests.support.rows import VALUES, histogram
from tests.support.world_api import Asking
from tests.support.xxh64 import xxh64
from views.core.aggregates import percentile
from views.core.sketch import estimate, sketch_of

SOME = settings(max_examples=examples(100), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
PERCENTS = {"median_basket_value": 50, "p90_basket_value": 90}


def percentile_of(baskets: Sequence[int], percent: int) -> Fraction | None:
    """From one histogram of all baskets; in the major unit."""
    if not baskets:
        return None
    rows = [histogram(VALUES, basket)[: len(VALUES)] for basket in baskets]
    counts = [sum(int(row[place] or 0) for row in rows) for place in range(len(VALUES))]
    found = percentile(VALUES, counts, min(baskets), max(baskets), percent)
    assert found is not None
    return found / 100


@SOME
@given(
    chain=chains(),
    metric=st.sampled_from(list(PERCENTS)),
    grain=st.sampled_from(["day", "week", "month", "total"]),
    is_by_region=st.booleans(),
)
def test_percentiles_of_totals_and_groups_are_of_one_histogram_of_all_receipts(
    chain: Chain,
    metric: str,
    grain: str,
    is_by_region: bool,  # noqa: FBT001 - drawn
) -> None:
    has_regions = any("region" in version.values for store in chain.stores for version in store.groups)
    by = "group:region" if is_by_region and has_regions else "total"
    query = {"by": by, "grain": grain, "from_": str(FIRST), "to": str(LAST)}

    body = Asking(chain.world()).body(f"/v1/metrics/{metric}", **query)

    def place_of(sale: Sale) -> tuple[object, ...]:
        store = chain.stores[sale.store]
        group = (group_of(store, "region", chain.day(sale), "as_then"),) if by != "total" else ()
        return store.currency.code, *group

    baskets: dict[tuple[tuple[object, ...], tuple[object, ...]], list[int]] = {}
    for sale in chain.sales:
        if sale.minor > 0:
            baskets.setdefault((place_of(sale), LABELS[grain](chain, sale)), []).append(sale.minor)
    found = {}
    for series in body["series"]:
        place = (body.get("currency") or series["currency"], *series["group"].values())
        for point in series["points"]:
            label = () if grain == "total" else (datetime.fromisoformat(point["date"]).date(),)
            if point["value"] is not None:
                found[place, label] = point["value"]
    assert set(found) == set(baskets)
    for key, value in found.items():
        assert same(value, float(percentile_of(baskets[key], PERCENTS[metric]) or 0)), (key, value, baskets[key])
    if by == "total":
        assert len(body["series"]) == len({store.currency.code for store in chain.stores})


# Distinct devices

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Visit(NamedTuple):
    """A device is heard twice inside a store, a few minutes apart."""

    store: int
    device: int
    minute: int


visits = st.builds(Visit, st.integers(0, 2), st.integers(0, 9), st.integers(0, 600))


def sighting(store: str, visit: Visit, at: datetime) -> bytes:
    said = {"device": f"{visit.device:032x}", "salt_id": "x", "zone": "inside", "sensor_id": "ap", "signal_dbm": -50}
    return json.dumps({"operation_id": store, "happened_at": at.isoformat(), "randomized": False, **said}).encode()


@SOME
@given(
    seen=st.lists(visits, max_size=30),
    cut=st.none() | st.integers(0, 144),
    metric=st.sampled_from(["unique_devices", "active_devices"]),
    by=st.sampled_from(["total", "group:region"]),
)
def test_devices_of_totals_and_groups_are_those_of_one_sketch_of_all_events(
    seen: list[Visit], cut: int | None, metric: str, by: str
) -> None:
    """A device that was in several stores counts once, also where batch knows one of them and speed the other."""
    regions = ("east", "east", "west")
    groups = [(GroupVersion(None, {"region": region}),) for region in regions]
    stores = [Store(id=str(number), timezone="UTC", groups=of) for number, of in enumerate(groups)]
    world = World(*stores)
    for visit, minutes in sorted(((each, later) for each in seen for later in (0, 3)), key=lambda each: each[0].minute):
        at = NOON + (visit.minute + minutes) * MINUTE
        world.receive(sighting(str(visit.store), visit, at), NOON + (visit.minute + 4) * MINUTE, WIFI_SIGHTINGS)
    world.pass_time("2026-03-29T00:00:00Z")
    if cut is not None:
        world.rebuild(NOON + 5 * cut * MINUTE)
    query = {"by": by, "grain": "total", "from_": "2026-03-27", "to": "2026-03-28"}

    body = Asking(world).body(f"/v1/metrics/{metric}", **query)

    found = {series["group"].get("region"): series["points"][0]["value"] or 0 for series in body["series"]}
    of = {None: range(3)} if by == "total" else {"east": range(2), "west": range(2, 3)}
    devices = {name: {each.device for each in seen if each.store in places} for name, places in of.items()}
    sketches = {name: sketch_of(xxh64(f"{device:032x}") for device in own) for name, own in devices.items()}
    wanted = {name: round(estimate(sketch)) if sketch else 0 for name, sketch in sketches.items()}
    assert {name: found.get(name, 0) for name in wanted} == wanted == {name: len(own) for name, own in devices.items()}


# Sensor coverage

QUARTERS = 16
STEP = timedelta(minutes=15)
Heard = Literal["whole", "part", "no"]
LASTED: Mapping[Heard, int] = {"whole": 15, "part": 10, "no": 0}
"""Minutes of a quarter of an hour in which the sensor was alive."""


class Door(NamedTuple):
    """A store whose people are counted, in each quarter of an hour or not. `sensor`: whether one is registered."""

    zone: str
    sensor: bool
    quarters: list[Heard]

    def store(self, number: int) -> Store:
        sensors = (Sensor("s", PEOPLE_COUNTS.topic, "door"),) if self.sensor else ()
        return Store(id=str(number), timezone=self.zone, sensors=sensors)

    @property
    def is_known(self) -> bool:
        """Nothing is known of a store that registers no sensor and sent nothing."""
        return self.sensor or any(each != "no" for each in self.quarters)

    def counted(self, *, only_covered: bool) -> list[int]:
        """The quarters that count. Without a registered sensor it is enough that any was alive."""
        enough = ("whole",) if self.sensor else ("whole", "part")
        return [number for number, each in enumerate(self.quarters) if not only_covered or each in enough]


mostly = st.sampled_from([("whole",), ("whole", "whole", "whole", "part"), ("whole", "no"), ("part", "no", "no")])
doors = st.builds(
    Door,
    st.sampled_from(ZONES),
    st.sampled_from([True, True, True, False]),
    mostly.flatmap(lambda of: st.lists(st.sampled_from(of), min_size=QUARTERS, max_size=QUARTERS)),
)


def people(store: int, quarter: int) -> int:
    return 1 + 100 * store + quarter


def world_of(chain: Sequence[Door]) -> World:
    world = World(*(door.store(number) for number, door in enumerate(chain)))
    for quarter in range(QUARTERS):
        for number, door in enumerate(chain):
            lasted = LASTED[door.quarters[quarter]]
            if lasted:
                at = NOON + quarter * STEP + (15 - lasted) * MINUTE
                said = {"people_in": people(number, quarter), "people_out": 0, "line": "door", "sensor_id": "s"}
                said |= {"interval_ms": lasted * 60_000, "happened_at": at.isoformat(), "operation_id": str(number)}
                world.receive(json.dumps(said).encode(), NOON + (quarter + 1) * STEP, PEOPLE_COUNTS)
    world.pass_time(NOON + (QUARTERS + 4) * STEP)
    return world


@SOME
@given(chain=st.lists(doors, min_size=1, max_size=4), only_covered=st.booleans())
def test_a_total_is_flagged_and_masked_by_the_sensor_time_of_all_its_stores_together(
    chain: list[Door],
    only_covered: bool,  # noqa: FBT001 - drawn
) -> None:
    query = {"by": "total", "grain": "total", "from_": NOON.isoformat(), "to": (NOON + QUARTERS * STEP).isoformat()}

    body = Asking(world_of(chain)).body(
        "/v1/metrics/traffic_in", **query, **({"only_covered": "true"} if only_covered else {})
    )

    known = [(number, door) for number, door in enumerate(chain) if door.is_known]
    [series] = body["series"]
    assert series["stores"]["counted"] == len(known)
    assert series["stores"]["missing"] == len(chain) - len(known)
    shares = {number: _alive(door, only_covered=only_covered) for number, door in known if door.sensor}
    of_all_windows = [Fraction(*_alive(door, only_covered=False)) for _, door in known if door.sensor]
    assert series["stores"]["poor"] == sum(share < Fraction(95, 100) for share in of_all_windows)
    alive, expected = (sum(each[place] for each in shares.values()) for place in range(2))
    share = Fraction(alive, expected) if expected else Fraction(1)
    if only_covered and known and not any(door.counted(only_covered=True) for _, door in known):
        share = Fraction(0)  # no window of any store counts
    flags = ["low_coverage"] * (share < Fraction(95, 100)) + ["masked"] * (share < Fraction(50, 100))
    value = sum(
        people(number, quarter)
        for number, door in known
        for quarter in door.counted(only_covered=only_covered)
        if door.quarters[quarter] != "no"
    )
    point: Mapping[str, Any] = series["points"][0]
    assert [flag for flag in point.get("flags", ()) if flag in ("low_coverage", "masked")] == flags
    if known:
        assert point["value"] == (None if "masked" in flags else value)


def _alive(door: Door, *, only_covered: bool) -> tuple[int, int]:
    """For how many minutes the sensor was alive, and should have been."""
    quarters = door.counted(only_covered=only_covered)
    return sum(LASTED[door.quarters[quarter]] for quarter in quarters), 15 * len(quarters)
