"""Airflow's secrets are made once, and nobody else can read them."""

import json
from pathlib import Path

from deploy.airflow.component import AirflowHome


def contents(home: Path) -> dict[str, str]:
    return {path.relative_to(home).as_posix(): path.read_text() for path in home.rglob("*") if path.is_file()}


def test_password_and_keys_are_for_the_owner_alone(tmp_path: Path) -> None:
    AirflowHome(tmp_path).prepare("admin")

    assert {name: (tmp_path / name).stat().st_mode & 0o777 for name in contents(tmp_path)} == {
        "airflow.password": 0o600,
        "airflow/airflow.cfg": 0o600,
        "airflow/passwords.json": 0o600,
    }
    assert len((tmp_path / "airflow.password").read_text().strip()) > 20


def test_a_second_start_changes_neither_password_nor_keys(tmp_path: Path) -> None:
    AirflowHome(tmp_path).prepare("admin")
    before = contents(tmp_path)

    AirflowHome(tmp_path).prepare("admin")

    assert contents(tmp_path) == before


def test_a_password_that_was_changed_in_its_file_is_airflow_s_own(tmp_path: Path) -> None:
    AirflowHome(tmp_path).prepare("admin")
    (tmp_path / "airflow.password").write_text("another one\n")

    AirflowHome(tmp_path).prepare("admin")

    assert json.loads((tmp_path / "airflow" / "passwords.json").read_text()) == {"admin": "another one"}
