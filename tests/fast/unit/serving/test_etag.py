"""A client that has the answer gets 304, and nothing is computed, until its data changes."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import pytest

from master_dataset.registry.stores import Store
from serving_layer.caching import etag, if_none_match, matches_any
from serving_layer.store.readers import SpeedBlock
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_tables import WorldTables

DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
NET = "/v1/metrics/net_sales"
PATHS = {
    NET: DAY,
    "/v1/metrics/net_sales,total_transactions_count": DAY,
    "/v1/index/net_sales": DAY,
    "/v1/views/sales/cells": DAY,
    "/v1/sensors": DAY,
}
LISTED: dict[str, dict[str, str]] = {"/v1/metrics": {}, "/v1/stores": {}}


class CountedTables(WorldTables):
    """How often blocks of either layer were read."""

    reads = 0

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        self.reads += 1
        return await super().rows(view, store, received_day, generation, cut)

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        self.reads += 1
        return await super().blocks(view, store, run, days)


@pytest.fixture
def world() -> World:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


@pytest.mark.parametrize(("path", "question"), (PATHS | LISTED).items())
def test_a_caller_who_has_the_answer_gets_304_without_a_body(world: World, path: str, question: dict[str, str]) -> None:
    asking = Asking(world)
    first = asking.response(path, **question)

    again = asking.response(path, **question, known=first.headers["etag"])

    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    for response in (first, again):
        assert response.headers["etag"].startswith('W/"')
        assert response.headers["cache-control"] == "no-cache, private"
        assert response.headers["vary"] == "Authorization, Accept"


@pytest.mark.parametrize(("path", "question"), PATHS.items())
def test_a_tag_holds_for_another_process_and_nothing_is_read_for_it(
    world: World, path: str, question: dict[str, str]
) -> None:
    tag = Asking(world).response(path, **question).headers["etag"]
    tables = CountedTables(world)

    status = Asking(world, tables.readers).response(path, **question, known=tag).status_code

    assert (status, tables.reads) == (304, 0)


@pytest.mark.parametrize(("path", "question"), PATHS.items())
def test_a_tag_ends_with_whatever_the_answer_rests_on(world: World, path: str, question: dict[str, str]) -> None:
    asking = Asking(world)
    tags = [asking.response(path, **question).headers["etag"]]

    world.receive(receipt("2026-11-21T09:05:00Z", minor=5, number=2), "2026-11-21T10:05:00Z")
    tags.append(asking.response(path, **question).headers["etag"])
    world.rebuild("2026-11-21T11:00:00Z")
    tags.append(asking.response(path, **question).headers["etag"])
    world.stores["2"] = Store(id="2", timezone="UTC")
    tags.append(asking.response(path, **question).headers["etag"])

    assert len(set(tags)) == 4
    assert asking.response(path, **question, known=tags[0]).status_code == 200


def test_a_partial_answer_has_another_tag_than_a_whole_one(world: World) -> None:
    whole = Asking(world).response(NET, **DAY, partial="true").headers["etag"]
    world.stand_still("2026-12-24T00:00:00Z")

    partial = Asking(world).response(NET, **DAY, partial="true", known=whole)

    assert (partial.status_code, partial.json()["as_of"]["missing"]) == (200, ["speed"])
    assert partial.headers["etag"] != whole


def test_an_answer_of_an_old_publication_keeps_its_tag_until_its_cells_are_collected(world: World) -> None:
    asking = Asking(world)
    tag = asking.response(NET, **DAY, as_of=1).headers["etag"]
    world.receive(receipt("2026-11-21T09:05:00Z", minor=5, number=2), "2026-11-21T10:05:00Z")
    world.rebuild("2026-11-21T11:00:00Z")

    before = asking.response(NET, **DAY, as_of=1, known=tag).status_code
    world.collect(1)

    assert (before, asking.response(NET, **DAY, as_of=1, known=tag).status_code) == (304, 410)


def test_other_questions_forms_and_callers_have_other_tags(world: World) -> None:
    asking = Asking(world)

    tags = {
        asking.response(NET, **DAY).headers["etag"],
        asking.response(NET, **DAY, grain="hour").headers["etag"],
        asking.response(NET, **DAY, limit=1).headers["etag"],
        asking.response(NET, **DAY, format="csv").headers["etag"],
        asking.response(NET, **DAY, format="arrow").headers["etag"],
        asking.response(NET, **DAY, key=OPERATOR_KEY).headers["etag"],
        asking.response("/v1/metrics/gross_sales", **DAY).headers["etag"],
    }

    assert len(tags) == 7


def test_any_tag_matches_an_answer_and_no_refusal(world: World) -> None:
    asking = Asking(world)

    assert asking.response(NET, **DAY, known="*").status_code == 304
    assert asking.response("/v1/metrics/no_such_metric", **DAY, known="*").status_code == 404
    assert asking.response(NET, **DAY, known='"another"').status_code == 200


def test_a_refusal_has_no_tag_and_is_not_kept(world: World) -> None:
    headers = Asking(world).response("/v1/metrics/no_such_metric", **DAY).headers

    assert "etag" not in headers
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("sent", "is_known"),
    [
        ([], False),
        (['W/"a"'], True),
        (['"a"'], True),
        (['"b", W/"a"'], True),
        (['"b"', '"a"'], True),
        (['"b,c" ,, "a" ,'], True),
        (['"b,a"'], False),
        (["a"], False),
        (['"a" "b"'], False),
        (['w/"a"'], False),
        (["*"], False),
    ],
)
def test_lists_of_tags_are_read_as_rfc_9110_says(sent: list[str], *, is_known: bool) -> None:
    assert if_none_match(sent, 'W/"a"') is is_known


def test_an_asterisk_stands_alone() -> None:
    assert [matches_any(["*"]), matches_any([" * "]), matches_any(['*, "a"']), matches_any(["*", "*"])] == [
        True,
        True,
        False,
        False,
    ]


def test_every_part_of_what_an_answer_depends_on_is_in_its_tag() -> None:
    usual = (("metrics", "json"), "anybody", (1,), "0.1.0")
    others = [
        (("cells", "json"), "anybody", (1,), "0.1.0"),
        (("metrics", "csv"), "anybody", (1,), "0.1.0"),
        (("metrics", "json"), "tenant a", (1,), "0.1.0"),
        (("metrics", "json"), "anybody", (2,), "0.1.0"),
        (("metrics", "json"), "anybody", (1,), "0.2.0"),
    ]

    tags = {etag(*each) for each in [usual, *others]}

    assert len(tags) == 6
    assert etag(*usual) in tags
