"""Context stands beside the points of an answer, and never in them."""

from master_dataset.registry.stores import Store
from serving_layer.compare.public_holidays import VERSION
from tests.support import World
from tests.support.world_api import Asking, Body

NET = "/v1/metrics/net_sales"


def body_of(*stores: Store, **arguments: object) -> Body:
    world = World(*stores)
    world.rebuild("2026-04-01T00:00:00Z")
    body = Asking(world).body(NET, from_="2026-04-03", to="2026-04-07", context="holidays", **arguments)
    return dict(body["context"]["holidays"])


def test_holidays_are_those_of_each_stores_country_on_its_local_dates() -> None:
    slovak, bavarian, american = (
        Store(id=country, timezone="UTC", country=country, subdivision=part)
        for country, part in (("SK", ""), ("DE", "DE-BY"), ("US", "US-NY"))
    )

    holidays = body_of(slovak, bavarian, american)

    assert [(row["store"], row["date"], row["names"]) for row in holidays["rows"]] == [
        ("DE", "2026-04-03", ["Karfreitag"]),
        ("DE", "2026-04-06", ["Ostermontag"]),
        ("SK", "2026-04-03", ["Veľký piatok"]),
        ("SK", "2026-04-06", ["Veľkonočný pondelok"]),
    ]
    assert (holidays["version"], holidays["category"], holidays["unknown"]) == (VERSION, "public", [])


def test_stores_whose_holidays_nobody_knows_are_listed() -> None:
    holidays = body_of(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", country="XX"))

    assert [(each["store"], each["reason"]) for each in holidays["unknown"]] == [
        ("1", "country_unknown"),
        ("2", "country_unknown"),
    ]
    assert holidays["rows"] == []


def test_the_points_are_the_same_with_and_without_context() -> None:
    world = World(Store(id="1", timezone="UTC", country="SK"))
    world.rebuild("2026-04-01T00:00:00Z")
    question = {"from_": "2026-04-03", "to": "2026-04-07"}

    beside, alone = (Asking(world).body(NET, **question, **more) for more in ({"context": "holidays"}, {}))

    assert beside["series"] == alone["series"]
    assert "context" not in alone
