"""A recompute by a form: started, refused with what was filled in, watched until its report."""

import re
from dataclasses import replace
from datetime import date
from urllib.parse import urlencode

import msgspec
import pytest

from serving_layer.errors import TooBusyError
from serving_layer.pages.language import UNKNOWN
from serving_layer.responses.publications import RecomputeProblem, RecomputeProgress, RecomputeReport
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_clients import TOKEN, Browsing, words
from views.control.recompute import RecomputeRequest


@pytest.fixture
def operator(browsing: Browsing) -> Browsing:
    browsing.sign_in(OPERATOR_KEY)
    return browsing


def test_a_form_starts_a_recompute_and_leads_to_where_it_is_watched(operator: Browsing) -> None:
    token = TOKEN.search(operator.get("/recomputes"))
    assert token
    fields = [
        ("token", token[1]),
        ("views", "sales"),
        ("views", "traffic"),
        ("from", "2026-11-01"),
        ("to", "2026-11-02"),
        ("stores", "12"),
        ("stores", "acme-1"),
        ("other_stores", "77, 78"),
        ("full", "yes"),
        ("mode", "publish"),
        ("reason", " a wrong price list "),
    ]

    response = operator.post("/recomputes", urlencode(fields))

    days = date(2026, 11, 1), date(2026, 11, 2)
    expected = RecomputeRequest(("sales", "traffic"), *days, ("12", "acme-1", "77", "78"), full=True, mode="publish")
    assert operator.asking.recomputing.requests == [expected]
    assert (response.status_code, response.headers["location"]) == (303, "/recomputes/recompute-1")
    assert "a wrong price list" in operator.get("/recomputes/recompute-1")


def test_a_form_that_says_nothing_else_is_a_preview_of_everything(operator: Browsing) -> None:
    operator.send("/recomputes", form_of="/recomputes", reason="to see")

    assert operator.asking.recomputing.requests == [RecomputeRequest(mode="preview")]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "reason"),
        ({"reason": "x", "from": "tomorrow"}, "from"),
        ({"reason": "x", "from": "2026-11-03", "to": "2026-11-01"}, "Swap them."),
        ({"reason": "x", "views": "sale"}, "Did you mean sales?"),
        ({"reason": "x", "mode": "destroy"}, "mode"),
    ],
)
def test_what_is_wrong_is_said_above_the_form_as_it_was_filled_in(
    operator: Browsing, fields: dict[str, str], said: str
) -> None:
    response = operator.send("/recomputes", form_of="/recomputes", **fields, stores="12")

    assert response.status_code in {404, 422}
    assert said in words(response.text)
    assert 'value="12" checked' in response.text
    assert operator.asking.recomputing.requests == []


def test_a_refusal_of_who_would_do_it_is_said_too(operator: Browsing) -> None:
    operator.asking.recomputing.refuses = TooBusyError("Enough is under way.", do="Wait.")

    response = operator.send("/recomputes", form_of="/recomputes", reason="x")

    assert (response.status_code, "Enough is under way." in response.text) == (503, True)


def test_progress_is_shown_until_the_report(operator: Browsing) -> None:
    operator.send("/recomputes", form_of="/recomputes", reason="x")
    world = operator.asking.world
    progress = {
        "partitions": {"done": 3, "total": 12},
        "events": {"done": 1500, "total": 6000},
        "rows_per_second": 900.4,
        "seconds_left": 5.0,
        "working_on": "sales",
    }
    record = replace(
        world.recomputes["recompute-1"], state="computing", progress=msgspec.convert(progress, RecomputeProgress)
    )
    world.recomputes["recompute-1"] = record

    page = operator.get("/recomputes/recompute-1")
    assert "1,500 of 6,000 events, 900 per second; about 5 s left" in page
    assert "data-region" in page

    report = {"days": 14, "blocks": 6000, "corrections": {"cells": 1, "causes": {"waited": {"cells": 1}}}}
    world.recomputes["recompute-1"] = replace(
        record, state="published", publication=2, report=msgspec.convert(report, RecomputeReport)
    )
    page = operator.get("/recomputes/recompute-1")
    assert "publication 2" in page
    assert "6,000" in page
    assert "data-region" not in page


def test_a_preview_is_published_by_the_form_filled_with_the_same_request(operator: Browsing) -> None:
    fields = {"reason": "wrong prices", "views": "sales", "from": "2026-11-01", "stores": "12", "other_stores": "77"}
    operator.send("/recomputes", form_of="/recomputes", **fields)
    world = operator.asking.world
    assert "Publish this" not in operator.get("/recomputes/recompute-1")
    world.recomputes["recompute-1"] = replace(world.recomputes["recompute-1"], state="previewed")

    assert '<a class="button" href="/recomputes?like=recompute-1#form">Publish this</a>' in operator.get(
        "/recomputes/recompute-1"
    )
    form = operator.get("/recomputes?like=recompute-1")
    checked = re.findall(r'value="([^"]+)" checked', form)
    filled = re.findall(r'name="(?:from|other_stores|reason)"[^>]* value="([^"]+)"', form)

    assert checked == ["sales", "12", "publish"]
    assert filled == ["2026-11-01", "77", "wrong prices"]
    assert "There is no recompute other" in operator.words("/recomputes?like=other", status=404)


def test_the_history_lists_the_newest_recomputes_first(operator: Browsing) -> None:
    for reason in ("prices", "taxes"):
        operator.send("/recomputes", form_of="/recomputes", reason=reason)
        operator.asking.world.pass_time("2026-11-21T10:00:00Z")
    world = operator.asking.world
    report = {"days": 14, "corrections": {"cells": 1200}}
    world.recomputes["recompute-1"] = replace(
        world.recomputes["recompute-1"],
        state="previewed",
        ended_at=at("2026-11-21T09:33:05Z"),
        report=msgspec.convert(report, RecomputeReport),
    )

    page = operator.words("/recomputes")
    history = page[page.index("History") :]

    assert history.index("taxes") < history.index("prices")
    assert "21 Nov 2026, 09:31 Preview ready prices operator Preview 14 days 2 min 05 s 1,200" in history
    assert f"Waiting taxes operator Preview {UNKNOWN} {UNKNOWN} {UNKNOWN}" in history


def test_the_history_of_a_new_stack_is_empty(operator: Browsing) -> None:
    assert "No recompute yet." in operator.words("/recomputes")


def test_why_one_failed_is_said_with_the_next_step(operator: Browsing) -> None:
    operator.send("/recomputes", form_of="/recomputes", reason="x")
    world = operator.asking.world
    problem = RecomputeProblem("disk_full", "No room is left.", "Make some.")
    world.recomputes["recompute-1"] = replace(world.recomputes["recompute-1"], state="failed", problem=problem)

    page = operator.get("/recomputes/recompute-1")

    assert "No room is left." in page
    assert "Make some." in page


def test_one_that_was_never_requested_is_not_found(operator: Browsing) -> None:
    assert "There is no recompute other" in operator.words("/recomputes/other", status=404)
