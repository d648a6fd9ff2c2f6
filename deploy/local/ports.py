"""Whether the ports are free, and who holds one that is not."""

import errno
import socket
from collections.abc import Mapping

import psutil

from deploy.local.nodes import HOSTS, LOOPBACK
from master_dataset.errors import OperatorError

_SHOWN = 60
"""How many characters of a command are shown."""


def check_free(component: str, ports: Mapping[int, str], host: str = LOOPBACK) -> None:
    """OperatorError that names the holder and the setting to change, for the first port that is taken.

    Another one if the machine has no such address: Linux has all that begin with 127, macOS only the first.
    """
    for port, setting in ports.items():
        if not has_address(host):
            message = f"{component} needs the loopback address `{host}`, which this machine does not have"
            raise OperatorError(message, do=f"sudo ifconfig lo0 alias {host}")
        if not is_free(port, host):
            message = f"port `{port}` that {component} needs is held by {holder(port, host)}"
            raise OperatorError(message, do=f"end that process, or set {setting} to a free port")


def has_address(host: str) -> bool:
    """Whether a server of this machine could listen at that address at all."""
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen there now, on loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def holder(port: int, host: str = LOOPBACK) -> str:
    """The process that listens there, as a person would name it."""
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
    """Show a command as its program and its end: in between a Java has thousands of characters of class path."""
    line = " ".join(words)
    return line if len(line) <= _SHOWN else f"{words[0].rpartition('/')[2]} ... {line[-_SHOWN:]}"


def free_ports(count: int) -> list[int]:
    """Ports that nobody held a moment ago, each with the port behind it free as well: for stacks of tests and demos."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = probe.getsockname()[1]
        taken = {at + offset for at in found for offset in (0, 1)}
        if port + 1 < 65536 and is_free(port + 1) and not taken & {port, port + 1}:  # noqa: PLR2004 - the last port
            found.append(port)
    return found
