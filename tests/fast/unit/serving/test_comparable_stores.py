"""Only stores that had settled are compared with their own past; the others are listed with the reason."""

from datetime import date

import pytest

from master_dataset.registry.stores import Store
from serving_layer.compare.comparable_stores import FirstDates, left_out
from tests.support import World, receipt
from tests.support.world_api import Asking

NET = "/v1/metrics/net_sales"
FROM, COMPARED_FROM = date(2026, 3, 7), date(2025, 3, 8)


def reason(store: Store, compared_since: date | None = COMPARED_FROM) -> str | None:
    """Why the store is left out."""
    found = left_out(store, FirstDates(FROM, compared_since))
    return found.reason if found else None


@pytest.mark.parametrize(
    ("open_since", "comp_start_date", "expected"),
    [
        (date(2025, 3, 8), None, None),  # 364 days before, and open on the first compared day
        (date(2025, 3, 9), None, "not_comparable_yet"),
        (date(2025, 3, 9), date(2026, 3, 7), "not_open_before"),
        (date(2020, 1, 1), date(2026, 3, 8), "not_comparable_yet"),  # rebuilt, so the operator says from when on
        (None, None, "open_since_unknown"),
        (None, date(2026, 3, 7), "open_since_unknown"),
    ],
)
def test_a_store_is_comparable_once_it_has_settled_and_was_open_before(
    open_since: date | None, comp_start_date: date | None, expected: str | None
) -> None:
    store = Store(id="1", timezone="UTC", open_since=open_since, comp_start_date=comp_start_date)

    assert reason(store) == expected


def test_without_a_comparison_a_store_has_only_to_have_settled() -> None:
    store = Store(id="1", timezone="UTC", comp_start_date=date(2026, 3, 7))

    assert reason(store, None) is None


def test_stores_that_are_left_out_are_listed_and_not_in_the_series() -> None:
    old, new = (Store(id=id_, timezone="UTC", open_since=date(year, 1, 1)) for id_, year in (("1", 2020), ("2", 2026)))
    world = World(old, new)
    for store in "12":
        world.receive(receipt("2026-03-07T10:00:00Z", minor=100, store=store), "2026-03-07T10:00:01Z")
    world.rebuild("2026-03-08T00:00:00Z")

    body = Asking(world).body(
        NET, from_="2026-03-07", to="2026-03-08", comp="true", compare="previous_year_454_restated"
    )

    assert [series["store"] for series in body["series"]] == ["1"]
    assert body["left_out"] == [
        {"store": "2", "reason": "not_comparable_yet", "detail": "It is comparable from 2026-12-31 on."}
    ]


def test_an_answer_in_which_all_stores_are_comparable_says_so_with_an_empty_list() -> None:
    world = World(Store(id="1", timezone="UTC", open_since=date(2020, 1, 1)))
    world.rebuild("2026-03-08T00:00:00Z")

    body = Asking(world).body(NET, from_="2026-03-07", to="2026-03-08", comp="true")

    assert body["left_out"] == []
