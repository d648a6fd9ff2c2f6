"""A port that is taken is named before anything starts, with who has it and what to change."""

import os
import socket

import pytest

from deploy.local.ports import check_free, free_ports, is_free
from master_dataset.errors import OperatorError


def test_a_taken_port_names_its_holder_and_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            OperatorError, match=f"port `{port}` that kafka needs is held by process {os.getpid()}"
        ) as refused:
            check_free("kafka", {port: "GALATEA_KAFKA_PORT"})
    assert refused.value.do == "end that process, or set GALATEA_KAFKA_PORT to a free port"


def test_a_port_is_free_again_after_its_server_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


def test_free_ports_leave_the_one_behind_each_free_too() -> None:
    found = free_ports(4)
    assert len({port + offset for port in found for offset in (0, 1)}) == 8
    assert all(is_free(port) and is_free(port + 1) for port in found)
