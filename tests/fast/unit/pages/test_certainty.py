"""How sure the page of alerts is of each: what REST says of it, in a word."""

from datetime import datetime

import pytest

from serving_layer.pages.alerts import AlertRow
from tests.support import World
from tests.support.alert_tables import WorldTold
from tests.support.asking import Asking
from tests.support.browsing import Browsing
from tests.support.watch import WorldWatch
from views.alerts.alert import Window

HOUR = Window("2026-11-21T07:00:00Z", "2026-11-21T08:00:00Z")


@pytest.mark.parametrize(
    ("cut", "end", "certainty"),
    [
        ("2026-11-21T09:01:59Z", "2026-11-21T09:00:00Z", "provisional"),
        ("2026-11-21T09:02:00Z", "2026-11-21T09:00:00Z", "final"),
        ("2026-11-21T08:30:00Z", "2026-11-21T08:00:00Z", "provisional"),
        ("2026-11-22T09:00:00Z", None, "provisional"),
    ],
)
def test_an_alert_is_final_once_a_publication_has_looked_at_its_window(
    cut: str, end: str | None, certainty: str
) -> None:
    told = WorldTold()
    id_ = told.raised("2026-11-21T08:40:00Z", window=Window("2026-11-21T07:00:00Z", end))

    line = AlertRow.of(told.rows[id_], {}, datetime.fromisoformat(cut))

    assert (line.certainty, line.store_name, line.zone) == (certainty, "1", "UTC")


@pytest.mark.parametrize(("looked_at", "certainty", "provisional"), [(0, "provisional", True), (1, "final", False)])
def test_the_page_and_rest_say_the_same_also_while_the_look_at_a_publication_is_put_off(
    world: World, looked_at: int, certainty: str, *, provisional: bool
) -> None:
    watch = WorldWatch(world)
    watch.looked_at = looked_at
    asking = Asking(world, watched=watch)
    asking.told.raised("2026-11-21T08:02:00Z", store="12", sentence="Too little was sold.", window=HOUR)

    page = Browsing(asking).words("/alerts")
    [over_rest] = asking.body("/v1/alerts")["alerts"]

    assert f"6, bound 4 {certainty} rule queue" in page
    assert over_rest["provisional"] is provisional
