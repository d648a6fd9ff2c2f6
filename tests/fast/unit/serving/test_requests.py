"""Requests are counted by route and status, never by what was asked for."""

from prometheus_client import REGISTRY

from tests.support import World
from tests.support.world_api import Asking


def counted(route: str, status: str) -> float:
    return REGISTRY.get_sample_value("galatea_request_seconds_count", {"route": route, "status": status}) or 0


def test_a_request_counts_under_the_pattern_of_its_route_and_a_path_of_nobody_under_none() -> None:
    asking, day = Asking(World()), {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
    expected = [("/v1/metrics/{metric}", "200"), ("/v1/metrics/{metric}", "404"), ("none", "404")]
    before = [counted(*each) for each in expected]

    for path in ("/v1/metrics/net_sales", "/v1/metrics/no_such_metric", "/v1/stores/of/nobody"):
        asking.response(path, **day)

    assert [counted(*each) - was for each, was in zip(expected, before, strict=True)] == [1, 1, 1]
