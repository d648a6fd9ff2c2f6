"""Alerts over REST are provisional until a publication whose numbers they were compared with covers their window."""

import asyncio
import csv
from collections.abc import Mapping

import pytest

from serving_layer.alerts.history import audited_cut
from tests.support import World
from tests.support.process_metrics import WorldWatch
from tests.support.world_api import Asking
from tests.support.world_tables import WorldTables
from views.alerts.alert import Window
from views.core.cut import UNIX_EPOCH

PATH = "/v1/alerts"
HOUR = Window("2026-11-16T10:00:00Z", "2026-11-16T11:00:00Z")
RAISED = "2026-11-16T11:02:00Z"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def watch(world: World) -> WorldWatch:
    return WorldWatch(world)


@pytest.fixture
def asking(world: World, watch: WorldWatch) -> Asking:
    return Asking(world, watched=watch)


def listed(asking: Asking) -> Mapping[str, bool]:
    return {each["rule"]: each["provisional"] for each in asking.body(PATH)["alerts"]}


@pytest.mark.parametrize(
    ("cut", "raised", "provisional"),
    [
        ("2026-11-16T11:01:00Z", "2026-11-16T11:00:30Z", True),
        ("2026-11-16T11:02:00Z", "2026-11-16T11:00:30Z", False),
        ("2026-11-16T11:02:00Z", "2026-11-16T11:02:00Z", True),
        ("2026-11-16T12:00:00Z", "2026-11-16T12:00:00.001Z", True),
        ("2026-11-21T09:00:00Z", RAISED, False),
    ],
)
def test_an_alert_is_provisional_until_a_cut_lies_two_minutes_behind_its_window_and_behind_the_alert(
    world: World, asking: Asking, cut: str, raised: str, *, provisional: bool
) -> None:
    id_ = asking.alert_tables.raised(raised, window=HOUR)
    world.rebuild(cut)

    in_list = asking.body(PATH)["alerts"][0]
    alone = asking.body(f"{PATH}/{id_}")
    [row] = csv.DictReader(asking.response(PATH, format="csv").text.splitlines())

    assert (in_list["provisional"], alone["provisional"]) == (provisional, provisional)
    assert row["provisional"] == str(provisional).lower()
    assert [each["provisional"] for each in alone["records"]] == [True]


def test_an_alert_stays_provisional_while_it_was_not_yet_compared_with_the_publication(
    world: World, watch: WorldWatch, asking: Asking
) -> None:
    asking.alert_tables.raised(RAISED, window=HOUR)
    world.rebuild("2026-11-16T11:00:00Z")
    world.rebuild("2026-11-16T12:00:00Z")

    watch.looked_at = 0
    never = listed(asking)
    watch.looked_at = 1
    put_off = listed(asking)
    watch.looked_at = 2
    done = listed(asking)

    assert (never, put_off, done) == ({"queue": True}, {"queue": True}, {"queue": False})


def test_a_window_that_is_published_no_more_after_a_rollback_makes_its_alert_provisional_again(
    world: World, watch: WorldWatch, asking: Asking
) -> None:
    asking.alert_tables.raised(RAISED, window=HOUR)
    world.rebuild("2026-11-16T11:00:00Z")
    world.rebuild("2026-11-16T12:00:00Z")
    watch.looked_at = 2

    before = listed(asking)
    world.restore(1)
    after = listed(asking)

    assert (before, after) == ({"queue": False}, {"queue": True})


def test_what_has_no_window_that_ends_stays_provisional_unless_a_publication_takes_it_back(
    world: World, asking: Asking
) -> None:
    asking.alert_tables.raised(RAISED, rule="level")
    silence = asking.alert_tables.raised(RAISED, rule="silence")
    asking.alert_tables.followed(silence, "resolved", "2026-11-16T11:10:00Z", reason="heard")
    wrong = asking.alert_tables.raised(RAISED, rule="wrong")
    asking.alert_tables.followed(wrong, "retracted", "2026-11-16T12:00:00Z", reason="late")
    world.rebuild("2026-11-21T09:00:00Z")

    found = listed(asking)

    assert found == {"level": True, "silence": True, "wrong": False}


def test_what_a_publication_said_itself_is_never_provisional(asking: Asking) -> None:
    late = asking.alert_tables.raised(RAISED, rule="late", window=HOUR, late=True, provisional=False, publication=1)
    asking.alert_tables.followed(late, "resolved", RAISED)
    wrong = asking.alert_tables.raised(RAISED, rule="wrong", window=HOUR)
    asking.alert_tables.followed(wrong, "resolved", RAISED)
    asking.alert_tables.followed(wrong, "retracted", "2026-11-16T12:00:00Z", reason="late")

    found = listed(asking)

    assert found == {"late": False, "wrong": False}


def test_what_later_events_took_back_is_provisional_until_a_publication_covers_that_too(
    world: World, asking: Asking
) -> None:
    id_ = asking.alert_tables.raised("2026-11-16T10:30:00Z", window=HOUR)
    asking.alert_tables.followed(id_, "resolved", "2026-11-16T12:30:00Z", reason="corrected")

    world.rebuild("2026-11-16T12:00:00Z")
    before = listed(asking)
    world.rebuild("2026-11-16T13:00:00Z")
    after = listed(asking)

    assert (before, after) == ({"queue": True}, {"queue": False})


def test_nothing_is_covered_where_the_publication_that_was_looked_at_is_unknown(
    world: World, watch: WorldWatch
) -> None:
    world.rebuild("2026-11-16T12:00:00Z")
    watch.looked_at = 7

    cut = asyncio.run(audited_cut(watch, WorldTables(world)))

    assert cut == UNIX_EPOCH
