"""The page of sensors: problems first, what is known of each, and filters in its address."""

import json
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS
from serving_layer.pages import sensors
from tests.support import World
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

TODAY = datetime.fromisoformat("2026-11-21T00:00:00+01:00")
QUARTER = timedelta(minutes=15)


def register(world: World, store: str, *registered: Sensor) -> None:
    world.stores[store] = replace(world.stores[store], sensors=registered)


@pytest.fixture
def with_sensors(world: World) -> World:
    """One beats until now, one stopped at 08:15, one was never heard of, and one of another tenant."""
    register(
        world,
        "12",
        Sensor("ap-1", "wifi_sightings", since=date(2026, 11, 21)),
        Sensor("ap-2", "wifi_sightings", since=date(2026, 11, 21)),
        Sensor("q-1", "queue_events", "Q1", since=date(2026, 11, 21), until=date(2027, 1, 1)),
    )
    register(world, "acme-1", Sensor("canary", "wifi_sightings"))
    for number in range(42):
        for sensor in ("ap-1", "ap-2") if number < 33 else ("ap-1",):
            said = {"sensor_id": sensor, "source": "wifi_sightings", "interval_ms": 900_000}
            at = TODAY + number * QUARTER
            value = json.dumps({"happened_at": at.isoformat(), "operation_id": "12", **said}).encode()
            world.receive(value, max(at + QUARTER, world.now()), SENSOR_HEARTBEATS)
    return world


@pytest.mark.usefixtures("with_sensors")
def test_sensors_with_problems_come_first_with_their_last_signal_in_the_time_of_the_store(browsing: Browsing) -> None:
    page = browsing.words("/sensors")

    silent, never, fine = (page.index(text) for text in ("ap-2 Kosice", "q-1 Kosice", "ap-1 Kosice"))
    assert silent < never < fine
    assert "1 silent 1 no signal 1 ok" in page
    assert "ap-2 Kosice silent 2 h 16 min ago Sat 21 Nov, 08:00\N{EN DASH}08:15 78.6 %" in page
    assert "q-1 Kosice no signal none 0.0 %" in page
    assert "Q1 since 21 Nov 2026 until 1 Jan 2027 Queue sensors" in page
    assert "ap-1 Kosice ok 1 min ago Sat 21 Nov, 10:15\N{EN DASH}10:30 100.0 %" in page
    assert "Coverage by day: Sun not known, Mon not known" in browsing.get("/sensors")
    assert "Without registered sensors: Ginza" in page
    assert "canary" not in page


@pytest.mark.usefixtures("with_sensors")
def test_filters_stand_in_the_address_and_lead_to_the_same_in_rest(browsing: Browsing) -> None:
    page = browsing.get("/sensors?state=problems&store=12&days=14")

    assert "ap-1" not in page
    assert "ap-2" in page
    assert '<option value="problems" selected>' in page
    rest = "/v1/sensors?store=12&amp;from=-13d&amp;state=silent&amp;state=never&amp;state=gaps"
    assert f'href="{rest}"' in page
    assert '<a href="/sensors?days=14">Show all</a>' in page
    assert browsing.response("GET", rest.replace("&amp;", "&")).status_code == 200
    assert "No sensor is in this state." in browsing.words("/sensors?state=gaps")


def test_where_nothing_is_registered_the_page_says_what_would_fill_it(browsing: Browsing) -> None:
    assert "No sensor is registered Next: list the sensors of each store in stores.yaml" in browsing.words("/sensors")


def test_before_the_first_publication_coverage_is_not_known() -> None:
    world = World(Store(id="12", timezone="UTC", sensors=(Sensor("ap-1", "wifi_sightings"),)))
    world.pass_time("2026-11-21T09:00:00Z")

    page = Browsing(Asking(world)).words("/sensors")

    assert "History is loading until the first publication" in page
    assert "ap-1 12 not known none \N{EN DASH}" in page


@pytest.mark.usefixtures("with_sensors")
@pytest.mark.parametrize(
    ("query", "status"),
    [("store=acme-1", 404), ("store=nobody", 404), ("state=dead", 422), ("days=8", 422), ("after=x", 422)],
)
def test_what_cannot_be_shown_is_a_page_that_says_why(browsing: Browsing, query: str, status: int) -> None:
    browsing.get(f"/sensors?{query}", status=status)


@pytest.mark.usefixtures("with_sensors")
def test_more_stores_are_a_page_further(browsing: Browsing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "STORES_PER_PAGE", 1)

    first = browsing.get("/sensors?state=problems")
    following = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")

    assert "state=problems&after=" in following
    assert "No sensor is registered here" in browsing.words(following)


def test_a_name_of_a_sensor_is_text(browsing: Browsing, world: World) -> None:
    register(world, "12", Sensor("<script>alert(1)</script>", "wifi_sightings", "<b>"))

    page = browsing.get("/sensors")

    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
