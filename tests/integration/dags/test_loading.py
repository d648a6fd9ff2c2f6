"""DAG files need Airflow and the views, and nothing else; what they give follows from the registered views."""

from pathlib import Path

import yaml

from tests.integration.dags.conftest import Airflow
from views import registered_views

DEPLOY = Path(__file__).parents[3] / "deploy"
VIEWS = [view.name for view in registered_views()]
ASSETS = [f"galatea://views/{view}" for view in VIEWS]


def test_every_dag_is_loaded_where_no_engine_and_no_driver_is_installed(airflow: Airflow) -> None:
    found = airflow.ask(load=True)

    assert found["errors"] == {}
    assert found["engines"] == []
    assert set(found["dags"]) == {
        "rebuild_views",
        "recompute",
        "compact_master",
        "collect_garbage",
        "verify_views",
        "export_views",
        "send_reports",
    }


def test_the_graph_shows_the_cut_every_view_and_the_publication(airflow: Airflow) -> None:
    dags = airflow.ask(load=True)["dags"]

    graph = {
        "choose_cut": ["rebuild"],
        "rebuild": sorted([*VIEWS, "publish"]),
        **{view: [] for view in VIEWS},
        "publish": [],
    }
    assert dags["rebuild_views"]["tasks"] == graph
    assert dags["recompute"]["tasks"] == graph


def test_each_task_of_a_recompute_is_tried_again_when_its_worker_is_gone(airflow: Airflow) -> None:
    dags = airflow.ask(load=True)["dags"]

    tries = {**dags["rebuild_views"]["tries"], **dags["recompute"]["tries"]}
    assert set(tries) == {"choose_cut", "rebuild", *VIEWS, "publish"}
    assert min(tries.values()) > 1


def test_a_task_that_hangs_ends_after_the_time_that_the_chart_and_systemd_give_it(airflow: Airflow) -> None:
    """Every DAG has one run at a time, so a task that hangs would keep all later ones out."""
    dags = airflow.ask(load=True)["dags"]
    chart = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text())["jobs"]["deadlineSeconds"]

    assert {name: set(dag["seconds"].values()) for name, dag in dags.items()} == {name: {chart} for name in dags}
    assert f"TimeoutStartSec={chart // 3600}h\n" in (DEPLOY / "systemd" / "galatea-job@.service").read_text()


def test_a_publication_waits_for_no_report_on_a_view(airflow: Airflow) -> None:
    dags = airflow.ask(load=True)["dags"]

    assert dags["rebuild_views"]["first"] == dags["recompute"]["first"] == "publish"


def test_each_view_is_an_asset_of_the_publication(airflow: Airflow) -> None:
    dags = airflow.ask(load=True)["dags"]

    assert dags["rebuild_views"]["assets"] == ASSETS
    assert dags["recompute"]["assets"] == ASSETS


def test_only_a_recompute_waits_for_a_request(airflow: Airflow) -> None:
    dags = airflow.ask(load=True)["dags"]

    assert {name: dag["schedule"] for name, dag in dags.items()} == {
        "rebuild_views": "0 * * * *",
        "recompute": None,
        "compact_master": "20 2 * * *",
        "export_views": "50 * * * *",
        "collect_garbage": "20 3 * * *",
        "send_reports": "10 6 * * *",
        "verify_views": "20 4 * * *",
    }
    assert {dag["zone"] for name, dag in dags.items() if name != "recompute"} == {"UTC"}
