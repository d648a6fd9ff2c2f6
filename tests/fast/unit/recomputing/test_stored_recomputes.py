"""Records of recomputes that another release wrote: read as far as possible, never an exception."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from master_dataset.errors import UnknownNameError
from views.control.publication import PointerRow, RunStats, ViewCounts
from views.control.recompute import (
    PlanNumber,
    PortionCounts,
    Problem,
    Recompute,
    RecomputeRequest,
    Recomputes,
    Report,
    StoredPlan,
    read_stored_plan,
)

NOON = datetime(2026, 11, 21, 12)  # noqa: DTZ001 - as the driver returns it
PLAN = {
    "number": 3,
    "run": "mine#3",
    "base": {
        "publication": 4,
        "cut": "2026-11-21T11:00:00Z",
        "manifest": "run-4",
        "generation": 1,
        "definitions": {"sales": "a"},
    },
    "cut": "2026-11-21T12:00:00Z",
    "generation": 1,
    "work": {"sales": ["2026-11-20"]},
    "whys": {"sales": "new events"},
    "masters": {"pos_transactions": ["/m", 7]},
    "master_versions": {"pos_transactions": 7},
    "definitions": {"sales": "a"},
    "alarms": [],
    "read_at": None,
}


class OneRow:
    """A session whose every statement returns this row."""

    def __init__(self, **columns: Any) -> None:
        self._row = SimpleNamespace(**columns)

    def prepare(self, query: str) -> Any:
        return SimpleNamespace(query=query)

    def execute(self, *_: object) -> Any:
        return SimpleNamespace(one=lambda: self._row)


def record(**columns: Any) -> Recompute:
    row = {
        "asked": '{"views":["sales"]}',
        "asked_by": "operator",
        "why": "a test",
        "asked_at": NOON,
        "state": "failed",
        "updated_at": NOON,
        "publication": None,
    }
    rest: dict[str, Any] = dict.fromkeys(("plan", "progress", "portions", "problem", "report"))
    return Recomputes(OneRow(**row | rest | columns)).find("mine")


def test_an_empty_id_is_unknown_and_never_reaches_cassandra() -> None:
    with pytest.raises(UnknownNameError):
        Recomputes(OneRow()).find("")  # whose row has no column that could be read


def without(*names: str) -> str:
    return json.dumps({name: value for name, value in PLAN.items() if name not in names})


def test_a_plan_of_this_release_is_read_whole() -> None:
    assert isinstance(read_stored_plan(json.dumps(PLAN)), StoredPlan)


def test_fields_that_this_release_does_not_have_are_ignored() -> None:
    plan = read_stored_plan(json.dumps(PLAN | {"priority": {"high": True}}))
    assert plan == read_stored_plan(json.dumps(PLAN))


@pytest.mark.parametrize("name", sorted(PLAN.keys() - {"number"}))
def test_a_plan_that_lacks_something_is_made_again_under_the_next_number(name: str) -> None:
    assert read_stored_plan(without(name)) == PlanNumber(3)


@pytest.mark.parametrize(("run", "number"), [("mine", 1), ("mine#2", 2), ("mine#12", 12)])
def test_the_number_of_a_plan_without_one_is_that_of_its_run(run: str, number: int) -> None:
    assert read_stored_plan(json.dumps({"run": run, "cut": "2026-11-21T12:00:00Z"})) == PlanNumber(number)


def test_an_unreadable_number_is_replaced_by_that_of_the_run() -> None:
    plan = read_stored_plan(json.dumps(PLAN | {"number": "three"}))
    assert plan == PlanNumber(3)


def test_a_plan_of_neither_number_nor_run_was_the_first() -> None:
    assert read_stored_plan("{}") == PlanNumber(1)


def test_a_record_without_a_plan_has_none() -> None:
    assert read_stored_plan(None) is None


def test_every_column_is_read_as_far_as_it_can_be() -> None:
    found = record(
        plan=without("masters"),
        progress='{"partitions": 3}',
        portions={
            0: '{"run": "mine#3", "repeats": 2, "blocks": 1, "views": {"sales": {"days": 1}}, "skew": 0.5}',
            1: '{"run": "mine#3", "blocks": "many"}',
            2: "[]",
        },
        problem='{"code": "interrupted", "message": "it stopped"}',
        report='{"base": 4, "cut": 12, "days": 9, "why": ["sales"], "corrections": {"cells": 1}, "run": "mine#3"}',
    )

    assert found.request == RecomputeRequest(views=("sales",))
    assert found.plan == PlanNumber(3)
    assert found.progress is None
    assert found.portions == {0: PortionCounts(repeats=2, blocks=1, views={"sales": ViewCounts(days=1)}, run="mine#3")}
    assert found.problem == Problem("interrupted", "it stopped", "")
    assert found.report == Report(base=4, days=9, run="mine#3")
    assert found.report is not None
    assert found.report.cut is msgspec.UNSET


def test_statistics_of_an_older_publication_are_read_as_far_as_they_can_be() -> None:
    row = {
        "publication": 4,
        "cut": NOON,
        "manifest": "run-4",
        "generation": 1,
        "published_at": NOON,
        "published_by": "operator",
        "why": "",
        "definitions": {},
        "master_versions": {},
        "collected_at": None,
        "stats": '{"blocks": 3, "views": ["sales"], "read_at": "yesterday", "restores": 2}',
    }

    found = PointerRow(OneRow(**row)).publication(4)

    assert found is not None
    assert found.stats == RunStats(blocks=3, restores=2)
    assert found.cut == NOON.replace(tzinfo=UTC)
