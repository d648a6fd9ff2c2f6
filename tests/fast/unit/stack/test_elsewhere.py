"""What the doctor says of a Spark master and of folders that are not in the home."""

import socket
from pathlib import Path

from deploy.checks.environment import remote_findings
from deploy.local.ports import free_ports
from deploy.settings import Settings


def found(settings: Settings) -> dict[str, bool]:
    return {finding.check: finding.ok for finding in remote_findings(settings)}


def test_there_is_nothing_to_find_while_all_is_local(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)

    assert found(settings) == {}


def test_a_spark_master_answers_if_one_of_its_places_does(tmp_path: Path) -> None:
    [closed] = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = server.getsockname()[1]
        both = Settings(home=tmp_path, spark_master=f"spark://127.0.0.1:{closed},127.0.0.1:{listening}")
        none = Settings(home=tmp_path, spark_master=f"spark://127.0.0.1:{closed}")

        assert (found(both), found(none)) == ({"spark": True}, {"spark": False})


def test_a_folder_outside_of_the_home_has_to_be_one_that_can_be_written(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", master_uri=str(tmp_path / "lake"))

    assert found(settings) == {"GALATEA_MASTER_URI": True}
