"""Several processes of the REST interface on one machine: their names, their port, and what they must not share."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploy.local.ports import is_free
from deploy.local.stack import components
from deploy.recompute_runner import Runner
from deploy.secret_files import operator_key
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from serving_layer.http.server import bound_sockets
from tests.fast.unit.recomputing.memory_recomputes import MemoryRecomputes

LOOPBACK = "127.0.0.1"


def test_each_process_is_a_component_with_a_name_and_a_metrics_port_of_its_own(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, api_processes=3, api_port=8100, api_metrics_port=9100)

    found = [each for each in components(settings) if each.name.startswith("api")]

    assert [(each.name, list(each.ports)) for each in found] == [
        ("api", [8100, 9100]),
        ("api-2", [9101]),
        ("api-3", [9102]),
    ]
    assert {each.where["url"] for each in found} == {"http://127.0.0.1:8100"}
    assert [list(each.command())[-2:] for each in found][1] == ["deploy.services.api", "api-2"]


def test_one_process_is_the_default(tmp_path: Path) -> None:
    assert [each.name for each in components(Settings(home=tmp_path)) if "api" in each.name] == ["api"]
    with pytest.raises(InvalidSettingsError, match="GALATEA_API_PROCESSES"):
        Settings(home=tmp_path, api_processes=0)


def test_a_process_settles_its_own_recomputes_alone(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    kept.ask("one", "computing")
    runners = {name: Runner(kept, tmp_path, {}, process=name) for name in ("api", "api-2")}
    (tmp_path / "run" / "recomputes.json").write_text('["one"]')

    runners["api-2"].start()
    runners["api-2"].wait()
    assert kept.find("one").state == "computing"

    runners["api"].start()
    runners["api"].wait()
    assert kept.find("one").state == "failed"


def test_all_processes_of_a_new_home_have_one_operator_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: operator_key(tmp_path / "operator.key"), range(8)))

    assert keys == {(tmp_path / "operator.key").read_text()}
    assert [each.name for each in tmp_path.iterdir()] == ["operator.key"]


def test_processes_that_share_a_port_all_get_connections() -> None:
    async def answered() -> tuple[set[str], set[str], bool]:
        [one] = bound_sockets(LOOPBACK, 0, is_shared=True)
        port = one.getsockname()[1]
        [other] = bound_sockets(LOOPBACK, port, is_shared=True)
        [bound] = bound_sockets(LOOPBACK, port, is_shared=True)  # it does not listen, so it gets nothing
        servers = [await _answering(name, made) for name, made in (("one", one), ("other", other))]
        both = {await _ask(port) for _ in range(64)}
        servers[0].close()
        left = {await _ask(port) for _ in range(16)}
        is_shared = not is_free(port)
        servers[1].close()
        bound.close()
        return both, left, is_shared

    both, left, is_taken = asyncio.run(answered())

    assert both == {"one", "other"}
    assert left == {"other"}
    assert is_taken


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_port_of_a_process_that_does_not_share_it_is_refused(*, is_shared: bool) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken, pytest.raises(OSError, match="in use"):
        bound_sockets(LOOPBACK, taken.getsockname()[1], is_shared=is_shared)


async def _answering(name: str, made: socket.socket) -> asyncio.Server:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name.encode())
        writer.close()

    return await asyncio.start_server(answer, sock=made)


async def _ask(port: int) -> str:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
