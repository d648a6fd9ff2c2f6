"""Airflow is part of a stack only where somebody asks for it, and then it knows the stack by its connections."""

import json
from pathlib import Path

import pytest

from deploy.airflow.component import airflow, connections
from deploy.local.stack import components
from deploy.settings import Settings
from master_dataset.errors import UnknownNameError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path / "home", airflow_port=18080, spark_master="yarn", spark_conf={"spark.yarn.queue": "q"}
    )


def test_airflow_starts_last_and_only_on_request(settings: Settings) -> None:
    assert "airflow" not in [each.name for each in components(settings)]
    assert [each.name for each in components(settings, airflow=True)][-1] == "airflow"
    assert [each.name for each in components(settings, ("kafka", "airflow"))] == ["kafka", "airflow"]


def test_an_unknown_component_is_refused_with_or_without_airflow(settings: Settings) -> None:
    with pytest.raises(UnknownNameError, match="air"):
        components(settings, ("air",))


def test_the_connections_say_every_setting_of_the_stack(settings: Settings) -> None:
    decoded = {name: json.loads(value) for name, value in connections(settings).items()}

    galatea, spark = decoded["AIRFLOW_CONN_GALATEA"], decoded["AIRFLOW_CONN_GALATEA_SPARK"]
    assert spark == {"conn_type": "spark", "host": "yarn", "extra": {"spark.yarn.queue": "q"}}
    own = {f"GALATEA_{name.upper()}": value for name, value in galatea["extra"].items()}
    assert own.keys() | {"GALATEA_SPARK_MASTER", "GALATEA_SPARK_CONF"} == settings.environment().keys()
    assert own["GALATEA_HOME"] == str(settings.home)


def test_what_airflow_is_started_with_holds_no_secret(settings: Settings) -> None:
    component = airflow(settings)
    component.prepare()

    secrets = [
        (settings.home / "airflow.password").read_text().strip(),
        *(
            line.split(" = ")[1]
            for line in (settings.home / "airflow" / "airflow.cfg").read_text().splitlines()
            if " = " in line
        ),
    ]
    shown = f"{component.command()} {component.environment} {component.where}"
    assert len(secrets) == 4
    assert [secret for secret in secrets if secret in shown] == []


def test_options_of_spark_survive_the_way_to_a_child_process(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)

    assert Settings() == settings
