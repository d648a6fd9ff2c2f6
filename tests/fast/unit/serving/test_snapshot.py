"""What an answer rests on, and what serving does when a part of it is missing."""

from dataclasses import replace
from datetime import date

import pytest

from master_dataset.errors import CassandraUnavailableError
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import Asking

NET = "/v1/metrics/net_sales"
DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}


def published() -> World:
    """One sale, published."""
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def test_an_answer_says_what_it_rests_on() -> None:
    world = published()
    world.pass_time("2026-11-21T10:05:00.250Z")

    assert Asking(world).body(NET, **DAY)["as_of"] == {
        "publication": 1,
        "cut": "2026-11-21T10:00:00Z",
        "speed_as_of": "2026-11-21T10:05:00.250Z",
        "waiting_for_batch": 0,
        "layers": ["batch", "speed"],
    }


def test_without_a_generation_speed_is_missing_and_a_partial_answer_says_so() -> None:
    world = published()
    world.pointer = replace(world.pointer, generation=0)
    asking = Asking(world)

    refused = asking.refusal(NET, **DAY)
    partial = asking.body(NET, **DAY, partial="true")

    assert (refused["status"], refused["code"]) == (503, "speed_unavailable")
    assert (partial["as_of"]["layers"], partial["as_of"]["missing"]) == (["batch"], ["speed"])
    assert [(point["value"], point["final"]) for point in partial["series"][0]["points"]] == [(1.0, False)]


def test_a_cut_older_than_the_speed_rows_is_refused() -> None:
    world = published()
    world.pass_time("2026-11-27T10:00:00Z")
    asking = Asking(world)
    asking.body(NET, **DAY)

    world.pass_time("2026-11-27T10:00:01Z")
    response = asking.response(NET, **DAY)

    assert (response.status_code, response.json()["code"]) == (503, "speed_expired")
    assert response.headers["retry-after"] == "2"


def test_a_silent_week_is_refused_although_speed_has_read_nothing_since() -> None:
    world = published()
    asking = Asking(world)
    asking.body(NET, **DAY)

    world.stand_still("2026-11-27T10:00:01Z")

    assert asking.refusal(NET, **DAY)["code"] == "speed_expired"


def test_before_the_first_publication_rows_are_as_old_as_the_deployment() -> None:
    world = World()
    world.history = [replace(world.history[0], published_at=at("2026-11-21T08:00:00Z"))]
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    asking = Asking(world)

    assert asking.body(NET, **DAY)["as_of"]["layers"] == ["speed"]
    world.pass_time("2026-11-27T08:00:01Z")
    assert asking.refusal(NET, **DAY)["code"] == "speed_expired"


def test_a_view_that_changed_since_it_was_published_is_refused() -> None:
    world = published()
    world.pointer = replace(world.pointer, definitions={"sales": "another"})
    asking = Asking(world)

    assert asking.refusal(NET, **DAY)["code"] == "definition_not_published"
    assert asking.refusal("/v1/views/sales_by_sku/cells", **DAY)["code"] == "definition_not_published"


def test_before_anything_is_published_there_is_no_definition_to_contradict() -> None:
    world = World()
    world.pointer = replace(world.pointer, generation=0, definitions={})

    body = Asking(world).body(NET, **DAY, partial="true")

    assert (body["as_of"]["layers"], body["series"][0]["points"][0]["value"]) == ([], None)


@pytest.mark.parametrize("arguments", [{}, {"by": "total"}])
def test_before_the_first_publication_the_unknown_is_loading_and_not_zero(
    arguments: dict[str, str],
) -> None:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    two_days = {"store": "1", "from_": "2026-11-20", "to": "2026-11-22", **arguments}

    loading = Asking(world).body(NET, **two_days)
    world.rebuild("2026-11-21T10:00:00Z")
    loaded = Asking(world).body(NET, **two_days)

    assert [(each["value"], each.get("flags")) for each in loading["series"][0]["points"]] == [
        (None, ["loading"]),
        (1.0, None),
    ]
    assert [(each["value"], each.get("flags")) for each in loaded["series"][0]["points"]] == [(0, None), (1.0, None)]
    assert (loading["as_of"]["loading"], "loading" in loaded["as_of"]) == (True, False)


def test_speed_rows_of_another_definition_are_refused_before_the_first_publication_too() -> None:
    world = World()
    world.pointer = replace(world.pointer, definitions={"sales": "another"})

    assert Asking(world).refusal(NET, **DAY)["code"] == "definition_not_published"


def test_a_point_is_provisional_as_soon_as_one_of_its_windows_is() -> None:
    world = published()
    world.receive(receipt("2026-11-21T09:20:00Z", minor=100, number=2), "2026-11-21T10:00:00Z")

    body = Asking(world).body(NET, store="1", from_="2026-11-21T08:00Z", to="2026-11-21T10:00Z", grain="hour")

    assert [(point["value"], point["final"]) for point in body["series"][0]["points"]] == [(0, True), (2, False)]


def test_a_cell_that_the_manifest_names_and_that_is_absent_is_an_error_and_not_zero() -> None:
    world = published()
    del world.blocks["sales", "1", "run-1", date(2026, 11, 21)]

    assert Asking(world).refusal(NET, **DAY)["code"] == "cell_missing"


def test_serving_never_goes_back_behind_a_publication() -> None:
    world = published()
    asking = Asking(world)
    old = world.pointer
    world.rebuild("2026-11-21T11:00:00Z")
    asking.body(NET, **DAY)

    world.pointer = old

    assert asking.refusal(NET, **DAY)["code"] == "publication_behind"


def test_a_store_that_does_not_answer_is_503_with_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = Asking(published())

    async def silent() -> None:
        raise CassandraUnavailableError("Cassandra did not answer.", do="Ask again.")

    monkeypatch.setattr(asking.answers.readers.published, "pointer", silent)

    response = asking.response("/readyz")

    assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
    assert response.headers["retry-after"] == "2"
