"""What a publication or a preview corrected, a page at a time, whatever form it is kept in."""

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from serving_layer.admin import corrections
from serving_layer.admin.ledger import Ledger
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.responses.publications import RecomputeState
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking, Body
from views.control.recompute import RecomputeRequest

PATH = "/v1/corrections"
FRIDAY, SATURDAY = date(2026, 11, 20), date(2026, 11, 21)
WINDOW = 1795255200  # 2026-11-21T10:00:00Z


def row(number: int, cause: str = "waited") -> dict[str, Any]:
    """One line as it is kept; windows of a quarter of an hour."""
    return {
        "window": WINDOW + 900 * number,
        "dimensions": {"currency": "EUR"},
        "state": "net_sales",
        "shown": None,
        "corrected": number,
        "difference": number,
        "cause": cause,
        "events": [f"identity {number}"],
        "events_total": 1,
    }


@pytest.fixture
def world() -> World:
    """Two publications; the second corrected six lines of two views and two stores, the third of them unexplained."""
    world = World()
    world.receive(receipt("2026-11-20T09:00:00Z", minor=100), "2026-11-20T09:00:01Z")
    world.rebuild("2026-11-20T10:00:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    totals = {"cells": 6, "rows": 6, "causes": {"waited": {"cells": 5}, "unexplained": {"cells": 1}}}
    world.ledgers["2"] = Ledger("2", "run-2", 1, at("2026-11-21T10:01:00Z"), totals)
    world.corrections["run-2", "sales"] = {
        ("1", FRIDAY): json.dumps([row(0), row(1)]),
        ("1", SATURDAY): json.dumps([row(2, "unexplained")]),
        ("2", FRIDAY): json.dumps([row(3), row(4)]),
    }
    world.corrections["run-2", "sales_by_till"] = {("1", FRIDAY): json.dumps([row(5)])}
    return world


def page(asking: Asking, **arguments: object) -> Body:
    return asking.body(PATH, key=OPERATOR_KEY, **arguments)


def numbers(body: Body) -> list[int]:
    return [each["corrected"] for each in body["corrections"]]


def refused(asking: Asking, **arguments: object) -> tuple[int, str]:
    problem = asking.refusal(PATH, key=OPERATOR_KEY, **arguments)
    return problem["status"], problem["code"]


def test_the_newest_publication_is_shown_by_view_store_and_day(world: World) -> None:
    body = page(Asking(world))

    assert numbers(body) == [0, 1, 2, 3, 4, 5]
    assert {name: body[name] for name in ("publication", "recompute", "base", "written_at", "pending", "next")} == {
        "publication": 2,
        "recompute": None,
        "base": 1,
        "written_at": "2026-11-21T10:01:00Z",
        "pending": False,
        "next": None,
    }
    assert body["totals"] == world.ledgers["2"].totals
    assert body["corrections"][0] == {
        "view": "sales",
        "store": "1",
        "window": "2026-11-21T10:00:00Z",
        "dimensions": {"currency": "EUR"},
        "state": "net_sales",
        "shown": None,
        "corrected": 0,
        "difference": 0,
        "cause": "waited",
        "events": ["identity 0"],
        "events_total": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"view": "sales"}, [0, 1, 2, 3, 4]),
        ({"view": "sales_by_sku"}, []),
        ({"store": "1"}, [0, 1, 2, 5]),
        ({"store": "77"}, []),
        ({"cause": "unexplained"}, [2]),
        ({"cause": "waited", "store": "2"}, [3, 4]),
        ({"cause": "miskeyed"}, []),
        ({"publication": 1}, []),
        ({"publication": 2}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_part_can_be_requested(world: World, arguments: dict[str, object], expected: list[int]) -> None:
    assert numbers(page(Asking(world), **arguments)) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("at_once", [1, 2, 16])
@pytest.mark.parametrize("arguments", [{}, {"store": "1"}, {"cause": "waited"}])
def test_pages_follow_each_other_without_a_gap(
    world: World, arguments: dict[str, object], at_once: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "READ_AT_ONCE", at_once)
    asking = Asking(world)
    whole = numbers(page(asking, **arguments))

    pages = [page(asking, limit=limit, **arguments)]
    while token := pages[-1]["next"]:
        pages.append(page(asking, limit=limit, after=token, **arguments))

    assert [number for each in pages for number in numbers(each)] == whole
    assert [len(numbers(each)) for each in pages[:-1]] == [limit] * (len(pages) - 1)


def test_a_page_ends_after_so_many_blocks_and_the_next_one_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "READ_AT_MOST", 1)
    asking = Asking(world)

    first = page(asking, cause="unexplained")
    second = page(asking, cause="unexplained", after=first["next"])

    assert (numbers(first), numbers(second)) == ([], [2])


def test_corrections_of_one_state_are_listed_from_the_views_that_have_it(world: World) -> None:
    world.corrections["run-2", "sales"]["1", SATURDAY] = json.dumps([row(2), row(6) | {"state": "gross_sales"}])
    asking = Asking(world)

    assert numbers(page(asking, state="gross_sales")) == [6]
    assert numbers(page(asking, state="net_sales")) == [5]  # which the view `sales` does not have
    assert numbers(page(asking, state="net_sales", view="sales_by_till")) == [5]
    assert refused(asking, state="gross_sale") == (404, "unknown_name")
    assert refused(asking, state="people_in", view="sales") == (404, "unknown_name")


def test_a_second_page_is_of_the_publication_that_was_the_newest_at_the_first(world: World) -> None:
    asking = Asking(world)
    first = page(asking, limit=4)

    world.rebuild("2026-11-21T11:00:00Z")

    assert numbers(page(asking, after=first["next"])) == [4, 5]
    assert page(asking)["publication"] == 3


def test_of_a_day_that_was_not_shown_before_every_value_is_new(world: World) -> None:
    new = {"whole": "waited", "run": "run-1", "events_total": 1}
    world.corrections = {("run-2", "sales_by_till"): {("1", FRIDAY): json.dumps(new)}}
    asking = Asking(world)

    body = page(asking, limit=2)
    rest = page(asking, limit=2, after=body["next"])

    rows = [*body["corrections"], *rest["corrections"]]
    assert [(each["state"], each["corrected"]) for each in rows] == [
        ("receipts", 1),
        ("sale_tx", 1),
        ("net_sales", 100),
    ]
    assert rows[0] == {
        "view": "sales_by_till",
        "store": "1",
        "window": "2026-11-20T09:00:00Z",
        "state": "receipts",
        "dimensions": {"currency": "EUR", "till": "123"},
        "shown": None,
        "corrected": 1,
        "difference": 1,
        "cause": "waited",
        "events": [],
        "events_total": 1,
    }
    assert numbers(page(asking, cause="unexplained")) == []


def test_of_a_new_day_whose_cells_were_collected_only_the_totals_are_left(world: World) -> None:
    new = {"whole": "waited", "run": "run-1", "events_total": 1}
    world.corrections = {("run-2", "sales_by_till"): {("1", FRIDAY): json.dumps(new)}}
    world.blocks = {}

    assert refused(Asking(world)) == (410, "publication_collected")
    assert page(Asking(world), view="sales")["totals"]["cells"] == 6


def test_of_a_new_day_whose_cells_were_made_by_another_definition_nothing_is_guessed(world: World) -> None:
    new = {"whole": "waited", "run": "run-1", "events_total": 1}
    world.corrections = {("run-2", "sales_by_till"): {("1", FRIDAY): json.dumps(new)}}
    world.blocks["sales_by_till", "1", "run-1", FRIDAY] = world.blocks["sales", "1", "run-1", FRIDAY]

    assert refused(Asking(world)) == (503, "definition_not_published")


def test_a_ledger_that_is_not_written_yet_is_pending(world: World) -> None:
    del world.ledgers["2"]

    assert page(Asking(world)) == {
        "publication": 2,
        "recompute": None,
        "base": None,
        "written_at": None,
        "pending": True,
        "totals": None,
        "corrections": [],
        "next": None,
    }


@pytest.mark.parametrize(
    ("state", "publication", "expected"),
    [
        ("previewed", None, [0, 1, 2, 3, 4, 5]),
        ("computing", None, []),
        ("unchanged", None, []),
        ("failed", None, []),
        ("published", 1, []),
        ("published", 2, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_recompute_leads_to_its_preview_or_to_what_it_published(
    world: World, state: RecomputeState, publication: int | None, expected: list[int]
) -> None:
    rest = (None, None, None, None)
    record = RecomputeRecord("mine", state, RecomputeRequest(), "operator", "a test", *rest, publication, None, None)
    world.recomputes["mine"] = replace(record)
    if state == "previewed":
        world.ledgers["mine"] = world.ledgers["2"]._replace(subject="mine")

    body = page(Asking(world), recompute="mine")

    assert (numbers(body), body["pending"], body["recompute"], body["publication"]) == (
        expected,
        state == "computing",
        "mine",
        publication,
    )


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ({"publication": 3}, 404, "unknown_name"),
        ({"publication": 0}, 404, "unknown_name"),
        ({"publication": 2**63}, 422, "bad_question"),
        ({"publication": "newest"}, 422, "bad_question"),
        ({"recompute": "nobody's"}, 404, "unknown_name"),
        ({"recompute": ""}, 404, "unknown_name"),
        ({"recompute": "mine", "publication": 2}, 422, "bad_question"),
        ({"view": "sale"}, 404, "unknown_name"),
        ({"cause": "bad luck"}, 422, "bad_question"),
        ({"limit": 0}, 422, "bad_question"),
        ({"limit": 1001}, 422, "bad_question"),
        ({"since": "2026-11-21"}, 422, "unknown_argument"),
        ({"after": "not base 64"}, 422, "bad_question"),
        ({"after": "bnVsbA=="}, 422, "bad_question"),
        ({"after": "WzFd"}, 422, "bad_question"),
    ],
)
def test_what_cannot_be_answered_is_refused(world: World, arguments: dict[str, object], status: int, code: str) -> None:
    assert refused(Asking(world), **arguments) == (status, code)


def test_a_token_of_another_question_is_refused(world: World) -> None:
    asking = Asking(world)
    token = page(asking, limit=5)["next"]

    others: list[dict[str, object]] = [{"view": "sales"}, {"store": "2"}, {"publication": 1}]

    assert [refused(asking, after=token, **other) for other in others] == [(422, "bad_question")] * 3
    assert numbers(page(asking, after=token)) == [5]
