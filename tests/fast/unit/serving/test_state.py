"""What there is: stores in the words of their file, freshness per partition."""

from datetime import date
from decimal import Decimal

from master_dataset.registry.stores import GroupVersion, Sensor, Store, Zone
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking


def test_a_store_is_shown_in_the_words_of_its_file() -> None:
    store = Store(
        id="1",
        timezone="Europe/Bratislava",
        name="Kosice",
        opening_hours={"mon": ("08:00-20:00",)},
        floor_m2=Decimal("812.5"),
        country="SK",
        day_starts_at="04:00",
        closed_on=(date(2026, 12, 25),),
        conversion_target=Decimal("32.5"),
        sensors=(Sensor("cam", "people_counts", "A", date(2026, 1, 1)),),
        zones=(Zone("shoes", Decimal(40)),),
        groups=(GroupVersion(None, {"region": "West"}), GroupVersion(date(2026, 6, 1), {"region": "East"})),
    )

    assert Asking(World(store)).body("/v1/stores")["stores"] == [
        {
            "id": "1",
            "name": "Kosice",
            "tenant": "default",
            "timezone": "Europe/Bratislava",
            "currency": "EUR",
            "opening_hours": {"mon": ["08:00-20:00"]},
            "floor_m2": 812.5,
            "open_since": None,
            "country": "SK",
            "subdivision": None,
            "day_starts_at": "04:00",
            "closed_on": ["2026-12-25"],
            "week_starts_on": "mon",
            "comp_start_date": None,
            "conversion_target": 32.5,
            "sensors": [{"id": "cam", "source": "people_counts", "place": "A", "from": "2026-01-01", "to": None}],
            "zones": [{"id": "shoes", "m2": 40}],
            "groups": {"region": "East"},
            "group_versions": [
                {"valid_from": None, "groups": {"region": "West"}},
                {"valid_from": "2026-06-01", "groups": {"region": "East"}},
            ],
        }
    ]


def test_freshness_shows_every_partition_of_both_layers() -> None:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=1), "2026-11-21T09:00:01Z")

    body = Asking(world).body("/v1/freshness", key=OPERATOR_KEY)

    assert body["speed"] == [
        {"topic": "pos_transactions", "partition": 0, "position": 1, "received_at": "2026-11-21T09:00:01Z"}
    ]
    assert (body["speed_as_of"], body["archive_lag_ms"]) == ("2026-11-21T09:00:01Z", 0)
