"""Recomputes over REST: asked for, and looked at."""

from dataclasses import replace
from datetime import date
from typing import Any

import msgspec
import pytest

from master_dataset.errors import BrokerUnavailableError, DependencyUnavailableError
from serving_layer.errors import TooBusyError
from serving_layer.responses.publications import RecomputeProblem, RecomputeProgress, RecomputeReport
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking, Body
from views.control.recompute import RecomputeRequest

PATH = "/v1/recomputes"
BECAUSE = {"reason": "a wrong price list"}


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.pass_time("2026-11-21T09:00:00Z")
    return Asking(world)


def refused(asking: Asking, said: Any) -> Body:
    return asking.refusal(PATH, method="POST", key=OPERATOR_KEY, said=said)


def test_a_recompute_gets_an_id_and_can_be_looked_at_at_once(asking: Asking) -> None:
    said = BECAUSE | {
        "views": ["sales", "sales", "sales_by_sku"],
        "from": "2026-11-01",
        "to": "2026-11-02",
        "stores": ["12", "77"],
        "full": True,
        "mode": "preview",
    }

    started = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=said)

    id_ = started.json()["id"]
    assert (started.status_code, started.headers["location"]) == (202, f"/v1/recomputes/{id_}")
    days = (date(2026, 11, 1), date(2026, 11, 2))
    assert asking.recomputing.requests == [
        RecomputeRequest(("sales", "sales_by_sku"), *days, ("12", "77"), full=True, mode="preview")
    ]
    expected = {name: value for name, value in said.items() if name != "reason"}
    expected |= {"views": ["sales", "sales_by_sku"], "wait": False}
    assert asking.body(f"{PATH}/{id_}", key=OPERATOR_KEY) == {
        "id": id_,
        "state": "asked",
        "asked": expected,
        "asked_by": "operator",
        "why": "a wrong price list",
        "asked_at": "2026-11-21T09:00:00Z",
        "updated_at": "2026-11-21T09:00:00Z",
        "ended_at": None,
        "progress": None,
        "publication": None,
        "problem": None,
        "report": None,
    }


def test_whatever_is_left_out_means_everything(asking: Asking) -> None:
    asking.response(PATH, method="POST", key=OPERATOR_KEY, said=BECAUSE)

    assert asking.recomputing.requests == [RecomputeRequest()]


def test_what_failed_says_why_and_what_was_taken_up_again_has_not_ended(asking: Asking) -> None:
    asking.response(PATH, method="POST", key=OPERATOR_KEY, said=BECAUSE)
    problem = {"code": "cut_not_reached", "message": "too slow", "do": "galatea lag"}
    progress = {"partitions": {"done": 3, "total": 12}, "working_on": "sales"}
    world = asking.world
    record = replace(
        world.recomputes["recompute-1"],
        ended_at=world.now(),
        problem=msgspec.convert(problem, RecomputeProblem),
        progress=msgspec.convert(progress, RecomputeProgress),
    )

    states = []
    for state in ("failed", "computing"):
        world.recomputes["recompute-1"] = replace(record, state=state)
        states.append(asking.body(f"{PATH}/recompute-1", key=OPERATOR_KEY))

    assert [(each["problem"], each["ended_at"]) for each in states] == [(problem, "2026-11-21T09:00:00Z"), (None, None)]
    assert [each["progress"] for each in states] == [progress, progress]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "missing_argument"),
        ({"reason": ""}, "bad_question"),
        ({"reason": " \t "}, "bad_question"),
        ({"reason": "x" * 501}, "bad_question"),
        ({"reason": "a\x00b"}, "bad_question"),
        ({"reason": 7}, "bad_question"),
        (BECAUSE | {"since": "2026-11-01"}, "unknown_argument"),
        (BECAUSE | {"views": ["sales"] * 101}, "bad_question"),
        (BECAUSE | {"views": "sales"}, "bad_question"),
        (BECAUSE | {"stores": [str(number) for number in range(1001)]}, "bad_question"),
        (BECAUSE | {"stores": [""]}, "bad_question"),
        (BECAUSE | {"stores": ["1\x002"]}, "bad_question"),
        (BECAUSE | {"stores": ["x" * 257]}, "bad_question"),
        (BECAUSE | {"from": "2026-11-31"}, "bad_question"),
        (BECAUSE | {"from": 0}, "bad_question"),
        (BECAUSE | {"from": "20261101"}, "bad_question"),
        (BECAUSE | {"from": "1761955200"}, "bad_question"),
        (BECAUSE | {"to": "yesterday"}, "bad_question"),
        (BECAUSE | {"from": "2026-11-02", "to": "2026-11-01"}, "bad_question"),
        (BECAUSE | {"mode": "dry"}, "bad_question"),
        (BECAUSE | {"full": "perhaps"}, "bad_question"),
        ([], "bad_question"),
        (b"", "missing_argument"),
        (b"{", "bad_question"),
        (b'{"reason": "\\ud800"}', "bad_question"),
        (b"\xff", "bad_question"),
        (b"[" * 60_000, "bad_question"),
    ],
)
def test_what_cannot_be_understood_is_refused(asking: Asking, said: object, code: str) -> None:
    problem = refused(asking, said)

    assert (problem["status"], problem["code"]) == (422, code)
    assert asking.recomputing.requests == []


def test_a_view_that_is_none_is_refused_with_the_nearest_name(asking: Asking) -> None:
    problem = refused(asking, BECAUSE | {"views": ["sales_by_skus"]})

    assert (problem["status"], problem["code"]) == (404, "unknown_name")
    assert "sales_by_sku" in problem["detail"]


def test_a_body_longer_than_64_kib_is_refused_and_one_of_64_kib_is_read(asking: Asking) -> None:
    shortest = b'{"reason": "a test"%s}'
    longest = shortest % (b" " * (64 * 1024 - len(shortest % b"")))

    problem = refused(asking, longest + b" ")
    started = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=longest)

    assert (problem["status"], problem["code"], started.status_code) == (413, "body_too_large", 202)


@pytest.mark.parametrize(
    "error",
    [
        TooBusyError("100 wait already.", do="Ask again."),
        BrokerUnavailableError("nobody takes it", do="galatea status"),
    ],
)
def test_whoever_cannot_take_it_now_is_a_503_with_retry_after(
    asking: Asking, error: DependencyUnavailableError
) -> None:
    asking.recomputing.refuses = error

    response = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=BECAUSE)

    assert (response.status_code, response.json()["code"]) == (503, error.code)
    assert response.headers["retry-after"] == "2"


@pytest.mark.parametrize("id_", ["recompute-2", "%20", "x" * 300])
def test_a_recompute_that_was_never_requested_is_unknown(asking: Asking, id_: str) -> None:
    problem = asking.refusal(f"{PATH}/{id_}", key=OPERATOR_KEY)

    assert (problem["status"], problem["code"]) == (404, "unknown_name")


def test_the_newest_recomputes_are_listed_first_up_to_a_limit(asking: Asking) -> None:
    for hour in (9, 10, 11):
        asking.world.pass_time(f"2026-11-21T{hour:02}:00:00Z")
        asking.response(PATH, method="POST", key=OPERATOR_KEY, said=BECAUSE)
    report = {"days": 3, "corrections": {"cells": 2}}
    asking.world.recomputes["recompute-3"] = replace(
        asking.world.recomputes["recompute-3"], state="previewed", report=msgspec.convert(report, RecomputeReport)
    )

    listed = asking.body(PATH, key=OPERATOR_KEY, limit=2)["recomputes"]

    assert [each["id"] for each in listed] == ["recompute-3", "recompute-2"]
    assert [(each["days"], each["cells"]) for each in listed] == [(3, 2), (None, None)]
    assert asking.refusal(PATH, key=OPERATOR_KEY, limit=101)["status"] == 422
    assert asking.response(PATH, key=asking.keys.make("default")).status_code == 403
