"""The same DAGs work for every kind of Spark master: the connection alone says which."""

import json
from typing import Any

import pytest

from tests.integration.dags.conftest import Airflow

KUBERNETES = {"spark.kubernetes.container.image": "galatea:1", "namespace": "shops", "deploy-mode": "client"}


def connected(airflow: Airflow, galatea: dict[str, Any], spark: dict[str, Any]) -> Any:
    connections_given = {
        "AIRFLOW_CONN_GALATEA": {"conn_type": "generic", **galatea},
        "AIRFLOW_CONN_GALATEA_SPARK": spark,
    }
    return airflow.ask(connect={name: json.dumps(value) for name, value in connections_given.items()})


@pytest.mark.parametrize(
    ("spark", "master", "options"),
    [
        ({"host": "local[2]"}, "local[2]", None),
        ({"host": "spark-1", "port": 7077}, "spark://spark-1:7077", None),
        ({"host": "spark://spark-1:7077,spark-2:7077"}, "spark://spark-1:7077,spark-2:7077", None),
        (
            {"host": "k8s://https://cluster", "port": 6443, "extra": KUBERNETES},
            "k8s://https://cluster:6443",
            {"spark.kubernetes.container.image": "galatea:1", "spark.kubernetes.namespace": "shops"},
        ),
        ({"host": "yarn", "extra": {"queue": "night"}}, "yarn", {"spark.yarn.queue": "night"}),
    ],
)
def test_airflow_connection_sets_the_spark_master(
    airflow: Airflow, spark: dict[str, Any], master: str, options: dict[str, str] | None
) -> None:
    found = connected(airflow, {}, {"conn_type": "spark", **spark})["environment"]

    assert found["GALATEA_SPARK_MASTER"] == master
    assert json.loads(found.get("GALATEA_SPARK_CONF", "null")) == options


def test_the_command_may_lie_in_an_environment_of_its_own(airflow: Airflow) -> None:
    extra = {"command": "/opt/galatea/bin/galatea", "kafka_bootstrap": "kafka-1:9092"}

    found = connected(airflow, {"extra": extra}, {"conn_type": "spark", "host": "local[2]"})

    assert found["command"] == "/opt/galatea/bin/galatea"
    assert found["environment"] == {"GALATEA_KAFKA_BOOTSTRAP": "kafka-1:9092", "GALATEA_SPARK_MASTER": "local[2]"}


@pytest.mark.parametrize(
    ("galatea", "spark", "named"),
    [
        ({"extra": {"KAFKA": "x"}}, {"host": "local[2]"}, "`KAFKA`"),
        ({"extra": "home=/data"}, {"host": "local[2]"}, "no JSON object"),
        ({}, {"host": ""}, "names no master"),
        ({}, {"host": "yarn", "extra": {"deploy-mode": "cluster"}}, "deploy mode"),
    ],
)
def test_a_connection_that_cannot_be_used_is_refused_by_name(
    airflow: Airflow, galatea: dict[str, Any], spark: dict[str, Any], named: str
) -> None:
    assert named in connected(airflow, galatea, {"conn_type": "spark", **spark})["refused"]


def test_a_missing_connection_is_named(airflow: Airflow) -> None:
    assert "there is no connection `galatea`" in airflow.ask(connect={})["refused"]
