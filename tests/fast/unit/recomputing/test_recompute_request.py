"""One recompute request from REST, the command line and Airflow to the job: no form of it loses anything."""

from datetime import date
from itertools import product

import pytest
from typer.testing import CliRunner

from galatea.cli import main, recompute
from master_dataset.errors import RequestError
from views.control.recompute import RecomputeMode, RecomputeRequest

EVERYTHING = RecomputeRequest()
CHOSEN = RecomputeRequest(
    ("sales", "traffic"), date(2026, 11, 1), date(2026, 11, 3), ("12", "--full"), full=True, wait=True, mode="preview"
)
MODES: tuple[RecomputeMode, ...] = ("publish", "preview")
DAYS = (None, date(2026, 11, 1)), (None, date(2026, 11, 3))
REQUESTS = [
    RecomputeRequest(views, first, last, stores, full=full, mode=mode)
    for views, first, last, stores, full, mode in product(
        ((), ("sales",)), *DAYS, ((), ("12", "a b")), (False, True), MODES
    )
]


@pytest.mark.parametrize("request_", [EVERYTHING, CHOSEN, *REQUESTS])
def test_what_is_kept_is_read_back(request_: RecomputeRequest) -> None:
    assert RecomputeRequest.from_json(request_.to_json()) == request_


def test_it_is_kept_under_the_names_of_rest() -> None:
    assert EVERYTHING.to_json() == (
        '{"views":[],"from":null,"to":null,"stores":[],"full":false,"wait":false,"mode":"publish"}'
    )
    assert CHOSEN.to_json() == (
        '{"views":["sales","traffic"],"from":"2026-11-01","to":"2026-11-03","stores":["12","--full"],"full":true,'
        '"wait":true,"mode":"preview"}'
    )


@pytest.mark.parametrize("request_", REQUESTS)
def test_the_form_of_the_scheduler_is_read_back(request_: RecomputeRequest) -> None:
    assert RecomputeRequest.from_form({**request_.to_form(), "reason": "late invoices"}) == request_


def test_a_scheduled_run_without_a_form_asks_for_everything() -> None:
    assert RecomputeRequest.from_form({}) == EVERYTHING


@pytest.mark.parametrize("request_", [EVERYTHING, CHOSEN, *REQUESTS])
def test_the_command_line_reads_what_it_is_given(request_: RecomputeRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[RecomputeRequest] = []
    monkeypatch.setattr("deploy.batch.create_recompute", lambda _, requested, **__: kept.append(requested))
    monkeypatch.setattr(recompute, "_step", lambda *_, **__: None)

    words = ["recompute", "plan", *request_.options(), "--", "mine", *request_.views]
    done = CliRunner().invoke(main.app, words)

    assert done.exit_code == 0, done.output
    assert kept == [request_]


def test_days_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(RequestError):
        RecomputeRequest((), date(2026, 11, 3), date(2026, 11, 1))


@pytest.mark.parametrize(
    ("request_", "is_partial"),
    [
        (EVERYTHING, False),
        (RecomputeRequest(full=True, wait=True, mode="preview"), False),
        (RecomputeRequest(views=("sales",)), True),
        (RecomputeRequest(first=date(2026, 11, 1)), True),
        (RecomputeRequest(last=date(2026, 11, 1)), True),
        (RecomputeRequest(stores=("12",)), True),
    ],
)
def test_it_is_partial_if_views_days_or_stores_are_chosen(request_: RecomputeRequest, is_partial: bool) -> None:  # noqa: FBT001 - a case
    assert request_.is_partial is is_partial
