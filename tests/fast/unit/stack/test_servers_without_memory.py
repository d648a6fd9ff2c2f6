"""A server that has run out of memory is started again."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.java import KILLED_WITHOUT_MEMORY
from deploy.local import cassandra, kafka
from tests.support.free_settings import settings_on_free_ports


@pytest.fixture(autouse=True)
def no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kafka, cassandra):
        monkeypatch.setattr(module, "find_java", lambda: SimpleNamespace(executable=Path("java"), major=17))
        monkeypatch.setattr(module, "jar_paths", lambda *_: [])


def test_servers_do_not_end_with_the_code_with_which_processes_ask_for_an_operator(tmp_path: Path) -> None:
    settings = settings_on_free_ports(tmp_path)
    servers = [*kafka.brokers(settings), *cassandra.cassandra_nodes(settings)]

    assert len(servers) == 2
    for command in [each.command() for each in servers]:
        assert KILLED_WITHOUT_MEMORY in command
        assert not [each for each in command if "ExitOnOutOfMemoryError" in each]
