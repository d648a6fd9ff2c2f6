"""The daily commands, and how a task ends when its command does."""

import pytest

from tests.integration.dags.conftest import Airflow


@pytest.mark.parametrize(
    ("dag", "words"),
    [
        ("compact_master", ["compact", "--json"]),
        ("collect_garbage", ["gc", "--json"]),
        ("export_views", ["export", "--json"]),
        ("send_reports", ["send-reports", "--json"]),
        ("verify_views", ["verify", "--sample=3", "--json"]),
    ],
)
def test_upkeep_is_one_command(airflow: Airflow, dag: str, words: list[str]) -> None:
    run = airflow.ask(run=dag)

    assert run["state"] == "success"
    assert airflow.words() == [words]


def test_xcom_counts_recipients_and_has_no_addresses(airflow: Airflow) -> None:
    about = {"tenant": "acme", "period": "daily", "first": "2026-11-20", "last": "2026-11-20", "final": True}
    who = {"sent": ["anna@shop.example"], "already_sent": ["b@shop.example", "c@shop.example"], "refused": []}
    failed = {"tenant": "beta", "period": "weekly", "error": "refuses the recipient `d@shop.example`"}

    said = airflow.ask(shown="send_reports", answer={"reports": [about | who | {"deferred": []}, failed]})

    counts = {"sent": 1, "already_sent": 2, "refused": 0, "deferred": 0}
    nobody = dict.fromkeys(counts, 0)
    assert said == {"send": {"reports": [about | counts, {"tenant": "beta", "period": "weekly"} | nobody]}}


def test_a_difference_fails_the_run_that_verifies(airflow: Airflow) -> None:
    airflow.play(verify={"exit": 1, "answer": {"cells": 8064, "differing": 1}})

    run = airflow.ask(run="verify_views")

    assert (run["state"], run["tasks"]) == ("failed", {"verify": "failed"})


def test_a_command_ends_when_its_task_is_terminated(airflow: Airflow) -> None:
    assert airflow.ask(kill=True) == {"ended": -15}
