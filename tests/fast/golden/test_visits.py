"""The example of visits, further: which layer knows what at 11:00, and what the next publication changes."""

from tests.fast.golden.examples import DAY, world_of
from tests.support import World
from tests.support.world_api import Asking

CUT = "2026-03-07T10:00:00Z"
VISITS = "/v1/views/wifi_visits/cells"
PARAMETERS = DAY | {"grain": "total"}


def world() -> World:
    return world_of("visits", CUT)


def added(asking: Asking, layer: str) -> tuple[int, int]:
    cells = [cell[layer] for cell in asking.body(VISITS, **DAY)["cells"] if cell[layer]]
    return sum(cell["outside"] for cell in cells), sum(cell["in_store"] for cell in cells)


def test_batch_knows_the_bundles_that_closed_before_the_cut_and_speed_the_others() -> None:
    asking = Asking(world())

    assert [added(asking, layer) for layer in ("batch", "speed", "merged")] == [(3, 1), (4, 3), (7, 4)]


def test_the_late_sighting_waits_for_the_next_publication() -> None:
    body = Asking(world()).body("/v1/metrics/outside_traffic", **PARAMETERS)

    assert body["as_of"]["waiting_for_batch"] == 1
    assert body["series"][0]["points"][0]["value"] == 7


def test_the_next_publication_counts_the_late_sighting_as_a_visit_of_its_own() -> None:
    after = world()
    after.rebuild("2026-03-07T12:00:00Z")
    asking = Asking(after)

    values = [
        asking.body(f"/v1/metrics/{metric}", **PARAMETERS)["series"][0]["points"][0]["value"]
        for metric in ("outside_traffic", "in_store_traffic", "capture_rate")
    ]
    [half_past] = [cell for cell in asking.body(VISITS, **DAY)["cells"] if cell["window"] == "2026-03-07T09:30:00Z"]

    assert values == [8, 4, 50.0]
    assert [half_past["merged"][name] for name in ("outside", "in_store", "stay_ms")] == [2, 0, 0]
    assert asking.body("/v1/metrics/outside_traffic", **PARAMETERS)["as_of"]["waiting_for_batch"] == 0
