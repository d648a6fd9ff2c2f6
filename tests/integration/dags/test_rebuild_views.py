"""A scheduled run: one recompute, one job for all views, one publication."""

from tests.integration.dags.conftest import Airflow
from views import registered_views

NEW = {"publication": 7, "cut": "2026-11-21T09:00:00Z"}


def test_a_run_plans_computes_all_views_in_one_job_and_publishes(airflow: Airflow) -> None:
    run = airflow.ask(run="rebuild_views")

    recompute = f"rebuild_views.{run['id']}"
    assert run["state"] == "success"
    assert airflow.words() == [
        ["recompute", "plan", "--json", "--why=scheduled", "--by=airflow/dag_test", "--", recompute],
        ["recompute", "compute", "--json", recompute],
        ["recompute", "publish", "--json", recompute],
    ]


def test_a_view_is_updated_by_a_publication_that_has_new_cells_of_it(airflow: Airflow) -> None:
    run = airflow.ask(run="rebuild_views")

    assert run["updated"] == {"galatea://views/sales": NEW}
    others = {view.name: "skipped" for view in registered_views() if view.name != "sales"}
    steps = dict.fromkeys(("choose_cut", "rebuild", "publish"), "success")
    assert run["tasks"] == {**steps, **others, "sales": "success"}


def test_a_run_that_finds_nothing_new_succeeds_and_publishes_nothing(airflow: Airflow) -> None:
    nothing = {"answer": {"state": "unchanged", "views": {}}}
    airflow.play(plan=nothing, compute=nothing, publish=nothing)

    run = airflow.ask(run="rebuild_views")

    assert run["state"] == "success"
    assert run["tasks"]["publish"] == "skipped"
    assert run["updated"] == {}


def test_settings_come_from_the_connections_and_the_task_is_named(airflow: Airflow) -> None:
    run = airflow.ask(run="rebuild_views")

    given = airflow.calls()[1]["variables"]
    assert {name: value for name, value in given.items() if name.startswith("GALATEA_")} == {
        "GALATEA_HOME": "/data/galatea",
        "GALATEA_KAFKA_PORT": "19092",
        "GALATEA_SPARK_MASTER": "spark://spark-1:7077",
        "GALATEA_SPARK_CONF": '{"spark.executor.instances": "4"}',
        "GALATEA_PARENT_WATCHDOG": "1",
    }
    assert (given["AIRFLOW_CTX_DAG_ID"], given["AIRFLOW_CTX_TASK_ID"]) == ("rebuild_views", "rebuild")
    assert given["AIRFLOW_CTX_DAG_RUN_ID"] == run["id"]


def test_a_fault_of_the_job_fails_the_run_before_anything_is_published(airflow: Airflow) -> None:
    airflow.play(compute={"exit": 1})

    run = airflow.ask(run="rebuild_views")

    assert (run["state"], run["tasks"]["rebuild"], run["tasks"]["publish"]) == ("failed", "failed", "upstream_failed")
    assert [words[1] for words in airflow.words()] == ["plan", "compute"]


def test_a_second_try_takes_up_the_same_recompute_and_publish_does_all_that_is_left(airflow: Airflow) -> None:
    words = airflow.ask(again="rebuild_views")

    assert words == {
        "choose_cut": ["recompute", "plan", "--json", "--why=scheduled", "--by=airflow", "--", "rebuild_views.run-1"],
        "rebuild": ["recompute", "compute", "--json", "rebuild_views.run-1"],
        "publish": ["rebuild", "--json", "--id=rebuild_views.run-1"],
    }
