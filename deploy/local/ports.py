"""Whether ports are free, and which process holds one that is not."""

import errno
import socket
from collections.abc import Mapping

import psutil

from deploy.local.nodes import HOSTS, LOOPBACK
from master_dataset.errors import OperatorError

_SHOWN = 60
"""Characters of a command that are shown."""


def check_free(component: str, ports: Mapping[int, str], host: str = LOOPBACK) -> None:
    """Check that a component can listen on its ports.

    OperatorError if a port is taken, with its holder and the setting to change, or if the machine lacks the address:
    Linux has all that begin with 127, macOS only the first.
    """
    for port, setting in ports.items():
        if not has_address(host):
            message = f"{component} needs the loopback address `{host}`, which this machine does not have"
            raise OperatorError(message, do=f"sudo ifconfig lo0 alias {host}")
        if not is_free(port, host):
            message = f"port `{port}` that {component} needs is held by {holder(port, host)}"
            raise OperatorError(message, do=f"end that process, or set {setting} to a free port")


def has_address(host: str) -> bool:
    """Whether this machine has that address."""
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def holder(port: int, host: str = LOOPBACK) -> str:
    """Describe the process that listens there."""
    try:
        listening = psutil.net_connections(kind="inet")
    except psutil.AccessDenied:
        return "a process of another user"
    elsewhere = {other for other in HOSTS if other != host}
    for connection in listening:
        if connection.laddr and connection.laddr.port == port and connection.pid:
            if connection.laddr.ip in elsewhere:
                continue  # the same port of another node
            try:
                words = psutil.Process(connection.pid).cmdline()
            except psutil.Error:
                words = []
            return f"process {connection.pid} (`{_shortened(words)}`)"
    return "another process"


def _shortened(words: list[str]) -> str:
    """Shorten a command to its program and its end: in between, Java has thousands of characters of class path."""
    line = " ".join(words)
    return line if len(line) <= _SHOWN else f"{words[0].rpartition('/')[2]} ... {line[-_SHOWN:]}"


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, as was the port after each: for tests and demos."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = probe.getsockname()[1]
        taken = {at + offset for at in found for offset in (0, 1)}
        if port + 1 < 65536 and is_free(port + 1) and not taken & {port, port + 1}:  # noqa: PLR2004 - the last port
            found.append(port)
    return found
