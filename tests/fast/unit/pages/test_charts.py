"""Charts of pages: up to when their points are known, and by which clock they are drawn."""

import re

from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

UNTIL = re.compile(r'data-until="([^"]+)"')


def test_a_quiet_store_is_known_up_to_the_cut_where_that_is_later_than_its_last_event() -> None:
    world = World(
        Store(id="1", timezone="UTC", tenant="acme", name="Quiet"), Store(id="2", timezone="UTC", tenant="other")
    )
    world.receive(receipt("2026-11-21T12:00:00Z", minor=1000, store="1"), "2026-11-21T12:00:01Z")
    world.rebuild("2026-11-23T06:00:00Z")
    world.receive(receipt("2026-11-23T06:10:00Z", store="2"), "2026-11-23T06:10:01Z")
    asking = Asking(world)
    browsing = Browsing(asking)
    browsing.sign_in(asking.keys.make("acme"))

    known = {path: UNTIL.findall(browsing.get(path)) for path in ("/?range=last_7_days", "/stores/1?range=last_7_days")}

    assert all(known.values())
    assert {until for found in known.values() for until in found} == {"2026-11-23 06:00:00+00:00"}
