"""Floor plans in real Cassandra: saved by compare-and-set, apart for each tenant, up to 2 MB."""

import pytest
from cassandra.cluster import Session

from master_dataset.errors import FloorPlanChangedError, UnknownNameError
from master_dataset.registry.floor_plans import FloorPlanTables, PlanImage
from master_dataset.registry.floor_plans_file import MOST_BYTES, read_lines

LARGE = PlanImage("image/png", 800, 600, bytes(range(256)) * (MOST_BYTES // 256))
SMALL = PlanImage("image/webp", 400, 300, b"RIFF")
ZONES = read_lines("shoes 10 20 30 25\nhats 10,50 40,50 40,90", ())


def test_a_plan_is_saved_in_parts_and_removed(shared_cassandra: Session) -> None:
    tables = FloorPlanTables(shared_cassandra)
    with pytest.raises(UnknownNameError, match="no floor plan of store `12`"):
        tables.save("plans", "12", zones=ZONES)

    first = tables.save("plans", "12", image=LARGE, seen="")
    second = tables.save("plans", "12", zones=ZONES, seen=first.version)
    third = tables.save("plans", "12", image=SMALL)

    assert (first.zones, second.zones, third.zones) == ((), ZONES, ZONES)
    assert (second.width, second.bytes, third.width, third.bytes) == (800, len(LARGE.content), 400, 4)
    assert tables.read("plans", "12") == third
    assert tables.image("plans", "12") == SMALL
    assert tables.read("others", "12") is None
    assert tables.image("plans", "13") is None
    tables.remove("plans", "12", seen=third.version)
    assert tables.read("plans", "12") is None
    assert tables.save("plans", "12", image=LARGE).zones == ()
    assert tables.image("plans", "12") == LARGE


def test_nobody_overwrites_what_they_have_not_seen(shared_cassandra: Session) -> None:
    tables = FloorPlanTables(shared_cassandra)
    first = tables.save("plans", "seen", image=SMALL)
    second = tables.save("plans", "seen", zones=ZONES)

    for late in ("", first.version):
        with pytest.raises(FloorPlanChangedError):
            tables.save("plans", "seen", zones=(), seen=late)
        with pytest.raises(FloorPlanChangedError):
            tables.remove("plans", "seen", seen=late)
    assert tables.read("plans", "seen") == second
