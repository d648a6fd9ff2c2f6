"""A recompute on demand: what the form was filled in with reaches the command, and nothing else does."""

import pytest

from tests.integration.dags.conftest import Airflow

NASTY = '"; touch /tmp/broken; $(id) `id` {{ 7 * 7 }}'


def test_every_field_of_the_form_reaches_the_command_as_one_word(airflow: Airflow) -> None:
    form = {
        "views": ["sales", "sales_by_till"],
        "from": "2026-11-01",
        "to": "2026-11-03",
        "stores": ["12", "--full"],
        "full": True,
        "mode": "publish",
        "reason": NASTY,
    }

    run = airflow.ask(run="recompute", conf=form)

    assert run["state"] == "success"
    assert airflow.words()[0] == [
        "recompute",
        "plan",
        "--json",
        "--from=2026-11-01",
        "--to=2026-11-03",
        "--store=12",
        "--store=--full",
        "--full",
        f"--why={NASTY}",
        "--by=airflow/dag_test",
        "--",
        run["id"],
        "sales",
        "sales_by_till",
    ]


def test_the_run_has_the_id_of_its_recompute(airflow: Airflow) -> None:
    run = airflow.ask(run="recompute", conf={"reason": "late invoices"})

    assert [words[-1] for words in airflow.words()] == [run["id"]] * 3
    assert "--dry-run" in airflow.words()[0]  # a form that does not say its mode is a preview


def test_a_preview_publishes_nothing_and_updates_no_view(airflow: Airflow) -> None:
    airflow.play(publish={"answer": {"state": "previewed"}})

    run = airflow.ask(run="recompute", conf={"reason": "what if", "mode": "preview"})

    assert "--dry-run" in airflow.words()[0]
    assert (run["state"], run["tasks"]["publish"], run["updated"]) == ("success", "success", {})


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ({}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": "typing error", "views": ["sale"]}, "views"),
        ({"reason": "wrong way to write a day", "from": "01.11.2026"}, "from"),
        ({"reason": "no such mode", "mode": "both"}, "mode"),
        ({"reason": "a word is no list", "stores": "12"}, "stores"),
    ],
)
def test_a_form_that_is_filled_in_wrongly_is_refused_by_name(
    airflow: Airflow, form: dict[str, object], named: str
) -> None:
    answer = airflow.ask(run="recompute", conf=form)

    assert named in answer["refused"]
    assert airflow.words() == []
