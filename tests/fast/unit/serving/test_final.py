"""A value is final if no event that was received can change it any more: those that wait for a publication can."""

from datetime import date
from typing import Any

import pytest

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.store.cells import WaitingEvents
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_sql import AskingSql
from views.core.local_time import STEP, Span, disjoint

NET = "/v1/metrics/net_sales"
DAYS = {"from_": "2026-03-19", "to": "2026-03-21"}


def sold(world: World, at: str, received_at: str, number: int, store: str = "1") -> None:
    world.receive(receipt(at, minor=100, store=store, number=number), received_at)


def world_with_a_late_receipt() -> World:
    """Two stores sold on two days. Of the second one, a receipt of the second day came a week later, and waits."""
    groups = (GroupVersion(None, {"region": "west"}), GroupVersion(date(2026, 3, 20), {"region": "east"}))
    world = World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", groups=groups))
    for number, day in enumerate((19, 20)):
        for store in world.stores:
            sold(world, f"2026-03-{day}T10:00:00Z", f"2026-03-{day}T10:00:01Z", number, store)
    world.rebuild("2026-03-27T00:00:00Z")
    sold(world, "2026-03-20T11:00:00Z", "2026-03-27T08:00:00Z", 7, "2")
    return world


def finals(body: Any) -> list[list[bool]]:
    return [[point["final"] for point in series["points"]] for series in body["series"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"store": "2"}, [[True, False]]),
        ({"store": ["1", "2"]}, [[True, True], [True, False]]),
        ({"by": "total"}, [[True, False]]),
        ({"by": "total", "hours": "all"}, [[True, False]]),
        ({"by": "group:region"}, [[False], [True], [True, True]]),
        ({"by": "store", "sort": "value"}, [[True, True], [True, False]]),
    ],
)
def test_a_value_that_a_waiting_event_will_change_is_not_final(
    query: dict[str, Any], expected: list[list[bool]]
) -> None:
    asking = Asking(world_with_a_late_receipt())

    body = asking.body(NET, **DAYS, **query)

    assert body["as_of"]["waiting_for_batch"] == 1
    assert finals(body) == expected


def test_the_hour_of_a_waiting_event_alone_is_not_final() -> None:
    body = Asking(world_with_a_late_receipt()).body(NET, store="2", **DAYS, grain="hour")

    [series] = body["series"]
    assert [point["start"] for point in series["points"] if not point["final"]] == ["2026-03-20T11:00:00Z"]


@pytest.mark.parametrize("rows", ["metrics where metric = 'net_sales'", "sales_day where true"])
def test_a_row_that_a_waiting_event_will_change_is_not_final(rows: str) -> None:
    world = world_with_a_late_receipt()
    statement = f"select store, day, final from {rows} order by store, day"  # noqa: S608 - of this test
    with AskingSql(world) as sql:
        before = sql.rows(statement)
        world.rebuild("2026-03-28T00:00:00Z")
        after = sql.rows(statement)

    assert [final for *_, final in before] == [True, True, True, False]
    assert [final for *_, final in after] == [True] * 4


def test_what_waits_changes_the_windows_that_it_touches_and_no_others() -> None:
    waiting = WaitingEvents(2, disjoint([Span(4 * STEP, 5 * STEP), Span(0, STEP), Span(STEP, 2 * STEP)]))

    assert waiting.touched == [Span(0, 2 * STEP), Span(4 * STEP, 5 * STEP)]
    changed = [number for number in range(7) if waiting.may_change(Span(number * STEP, (number + 1) * STEP))]
    assert changed == [0, 1, 4]
    assert waiting.may_change(Span(2 * STEP, 5 * STEP))
    assert not WaitingEvents().may_change(Span(0, STEP))
