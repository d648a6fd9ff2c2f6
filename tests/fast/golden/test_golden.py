"""The worked examples of the metrics catalogue: events in, cells and numbers out, all worked out by hand.

A folder is an example of store 1 on Saturday 2026-03-07: `example.json` (the store, the question, the cuts), the events
of each source as they were sent, `cells.json` (every cell of that day) and `metrics.json` (metric and what else is
asked, to the values of all points). Where nothing else is said, an event is received a second after it ended. States
that are sketches are written as the number that they stand for, counts of flags only where they are above zero.
"""

from typing import Any

import pytest

from tests.fast.golden.examples import DAY, EXAMPLES, read, world_of
from tests.support.world_api import Asking
from views.core.aggregates import CountDistinct
from views.metrics import registered_metrics
from views.registry import registered_views


def cuts() -> list[tuple[str, str | None]]:
    """Speed alone, several splits, batch alone."""
    return [(example, cut) for example in EXAMPLES for cut in (None, *read(example, "example")["cuts"])]


def cells_of(asking: Asking, view: str) -> list[dict[str, Any]]:
    cells = asking.body(f"/v1/views/{view}/cells", **DAY)["cells"]
    return [{name: cell[name] for name in ("window", "dimensions", "merged")} for cell in cells]


@pytest.mark.parametrize(("example", "cut"), cuts())
def test_the_cells_are_those_worked_out_by_hand_wherever_the_cut_lies(example: str, cut: str | None) -> None:
    asking, expected = Asking(world_of(example, cut)), read(example, "cells")

    for view in registered_views():
        shown = cells_of(asking, view.name)
        for cell in shown:
            for name, metric in view.metrics.items():
                if isinstance(metric, CountDistinct):
                    cell["merged"][name] = metric.present((cell["merged"][name],))
                if name.startswith("flag_") and cell["merged"][name] == 0:
                    del cell["merged"][name]
        assert shown == expected.get(view.name, []), view.name


@pytest.mark.parametrize(("example", "cut"), cuts())
def test_the_metrics_are_those_worked_out_by_hand_wherever_the_cut_lies(example: str, cut: str | None) -> None:
    asking, said = Asking(world_of(example, cut)), read(example, "example")
    span = {"store": "1", "from_": said["from"], "to": said["to"], "grain": "total"}

    for query, expected in read(example, "metrics").items():
        metric, _, more = query.partition("?")
        body = asking.body(f"/v1/metrics/{metric}", **span | dict(each.split("=") for each in more.split("&") if each))
        values = [point["value"] for series in body["series"] for point in series["points"]]
        assert (values if "15m" in more or "by=" in more else values[0]) == expected, query


def test_every_view_and_every_metric_is_part_of_an_example() -> None:
    cells = {view for example in EXAMPLES for view in read(example, "cells")}
    metrics = {query.partition("?")[0] for example in EXAMPLES for query in read(example, "metrics")}

    assert cells == {view.name for view in registered_views()}
    assert metrics == set(registered_metrics())
