"""An old publication stays what it was, whatever came after it, until its cells are collected."""

from dataclasses import replace

import pytest

from tests.support import World, receipt
from tests.support.world_api import Asking

NET = "/v1/metrics/net_sales"
CELLS = "/v1/views/sales/cells"
DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
HOURS = {"store": "1", "from_": "2026-11-21T08:00Z", "to": "2026-11-21T12:00Z", "grain": "hour"}


@pytest.fixture
def world() -> World:
    """1.00 before the first cut, 0.20 more before the second, and 0.03 that only speed has."""
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    world.receive(receipt("2026-11-21T09:05:00Z", minor=20, number=2), "2026-11-21T10:30:00Z")
    world.rebuild("2026-11-21T11:00:00Z")
    world.receive(receipt("2026-11-21T09:07:00Z", minor=3, number=3), "2026-11-21T11:30:00Z")
    return world


def value(asking: Asking, **arguments: object) -> float:
    found: float = asking.body(NET, **DAY, **arguments)["series"][0]["points"][0]["value"]
    return found


def test_each_publication_says_what_was_received_before_its_cut(world: World) -> None:
    asking = Asking(world)

    assert [value(asking, as_of=1), value(asking, as_of=2), value(asking)] == [1.0, 1.2, 1.23]


def test_it_rests_on_batch_alone_and_nothing_waits(world: World) -> None:
    old = receipt("2026-11-19T09:00:00Z", minor=1, number=9)
    world.receive(old, "2026-11-21T11:40:00Z")
    asking = Asking(world)
    three_days = DAY | {"from_": "2026-11-19"}

    assert asking.body(NET, **three_days)["as_of"]["waiting_for_batch"] == 1
    assert asking.body(NET, **three_days, as_of=1)["as_of"] == {
        "publication": 1,
        "cut": "2026-11-21T10:00:00Z",
        "speed_as_of": None,
        "waiting_for_batch": 0,
        "layers": ["batch"],
    }


def test_points_are_final_by_the_cut_of_that_publication(world: World) -> None:
    points = Asking(world).body(NET, **HOURS, as_of=1)["series"][0]["points"]

    assert [(point["value"], point["final"]) for point in points] == [
        (0, True),
        (1.0, True),
        (None, False),
        (None, False),
    ]


def test_cells_of_an_old_publication_have_no_speed(world: World) -> None:
    [cell] = Asking(world).body(CELLS, **DAY, as_of=2)["cells"]

    assert (cell["batch"]["gross_sales"], cell["speed"], cell["merged"]) == (120, None, cell["batch"])


def test_the_answer_is_the_same_after_a_rollback_and_later_publications(world: World) -> None:
    asking = Asking(world)
    before = [asking.response(path, **DAY, as_of=2).content for path in (NET, CELLS)]

    world.restore(1)
    world.rebuild("2026-11-21T12:00:00Z")

    assert [asking.response(path, **DAY, as_of=2).content for path in (NET, CELLS)] == before
    assert [Asking(world).response(path, **DAY, as_of=2).content for path in (NET, CELLS)] == before
    assert value(asking, as_of=3) == value(asking, as_of=1) == 1.0


def test_it_needs_no_speed_layer(world: World) -> None:
    world.pointer = replace(world.pointer, generation=0)
    world.stand_still("2026-12-24T00:00:00Z")

    assert value(Asking(world), as_of=2) == 1.2


@pytest.mark.parametrize("path", [NET, CELLS])
@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (0, 404, "unknown_name"),
        (3, 404, "unknown_name"),
        (2**63 - 1, 404, "unknown_name"),
        (2**63, 422, "bad_question"),
        (-1, 422, "bad_question"),
        ("1.5", 422, "bad_question"),
        ("newest", 422, "bad_question"),
    ],
)
def test_a_publication_that_never_was_is_refused(
    world: World, path: str, number: object, status: int, code: str
) -> None:
    problem = Asking(world).refusal(path, **DAY, as_of=number)

    assert (problem["status"], problem["code"]) == (status, code)


@pytest.mark.parametrize("path", [NET, CELLS])
def test_a_collected_publication_is_gone_even_if_its_answer_was_remembered(world: World, path: str) -> None:
    asking = Asking(world)
    asking.body(path, **DAY, as_of=1)

    world.collect(1)

    problem = asking.refusal(path, **DAY, as_of=1)
    assert (problem["status"], problem["code"]) == (410, "publication_collected")
    assert value(asking, as_of=2) == 1.2


@pytest.mark.parametrize("path", [NET, CELLS])
def test_cells_that_are_collected_while_they_are_read_are_never_an_answer(
    world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(world)
    read = asking.answers.readers.published.manifest

    async def collected_meanwhile(name: str) -> object:
        world.collect(1)
        return await read(name)

    monkeypatch.setattr(asking.answers.readers.published, "manifest", collected_meanwhile)

    assert [asking.refusal(path, **DAY, as_of=1)["code"] for _ in range(2)] == ["publication_collected"] * 2


@pytest.mark.parametrize("path", [NET, CELLS])
def test_a_publication_of_other_definitions_is_refused_and_named(world: World, path: str) -> None:
    world.history = [replace(each, definitions={"sales": "another"}) for each in world.history]

    problem = Asking(world).refusal(path, **DAY, as_of=1)

    assert (problem["status"], problem["code"]) == (503, "definition_not_published")
    assert "published as `another` in publication `1`" in problem["title"]
