"""The nodes of the local stack. Their number is fixed when a home is created, and recorded in it."""

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from deploy.local.json_files import read_json, write_json
from master_dataset.errors import OperatorError

LOOPBACK = "127.0.0.1"
"""Address of the local stack, except for further nodes."""
HOSTS = (LOOPBACK, "127.0.0.2", "127.0.0.3")
"""Loopback address of each node. All nodes of a kind use the same ports."""
ONE, THREE = 1, 3
"""Three is the smallest number of nodes that keeps a majority when one is lost."""
_FILE = "nodes.json"


class Nodes(NamedTuple):
    """What a home was created with: how many nodes of each kind, ONE or THREE, and whether they are secured."""

    brokers: int = ONE
    cassandra: int = ONE
    secure: bool = False


def has_started(home: Path) -> bool:
    """Whether a broker or Cassandra ever started in it. A home in which none did decides nothing.

    Their logs say it as well as their folders, which are moved away where they are lost.
    """
    return any((home / kind).exists() or any((home / "logs").glob(f"{kind}*.log*")) for kind in ("kafka", "cassandra"))


def recorded_nodes(home: Path) -> Nodes | None:
    """Return what this home was created with; None if neither a broker nor Cassandra ever started in it."""
    if not has_started(home):
        return None
    recorded = read_json(home / _FILE, None, "delete the file: what the home was made with is seen in its folders")
    return _nodes_seen(home) if recorded is None else Nodes(**recorded)


def _nodes_seen(home: Path) -> Nodes:
    """What the folders of a home say: its record was lost, or an early release wrote none."""
    brokers, cassandra = (THREE if (home / f"{kind}-2").exists() else ONE for kind in ("kafka", "cassandra"))
    return Nodes(brokers, cassandra, (home / "secure").exists())


def record_nodes(home: Path, nodes: Nodes) -> None:
    """Record it for a new home. OperatorError if the home was created with something else."""
    if check_nodes(home, nodes) is None:
        write_json(home / _FILE, nodes._asdict())


def check_nodes(home: Path, nodes: Nodes) -> Nodes | None:
    """Return what the home was created with; None for a new one. OperatorError if that is something else."""
    kept = recorded_nodes(home)
    if kept is not None and kept != nodes:
        made = f"was created with {kept.brokers} broker(s) and {kept.cassandra} Cassandra node(s)"
        made += f", {'secured' if kept.secure else 'without security'}"
        message = f"the home `{home}` {made}, which no setting can change afterwards"
        raise OperatorError(message, do="leave the options out, or begin a new home: GALATEA_HOME=FOLDER galatea up")
    return kept


def addresses(hosts: Sequence[str], port: int) -> str:
    """Return host:port of each host, separated by commas."""
    return ",".join(f"{host}:{port}" for host in hosts)


class Node(NamedTuple):
    """One node: its kind, its number from 1, and the address that it listens on."""

    kind: str
    number: int
    host: str

    @property
    def name(self) -> str:
        """Name in `galatea status`, and of its folder. The first one is named as its kind."""
        return self.kind if self.number == 1 else f"{self.kind}-{self.number}"


def is_loopback(host: str) -> bool:
    """Whether what listens on this address can be reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_exposed(url: str) -> bool:
    """Whether what is sent to this URL can be read on the network: it leaves this machine without encryption."""
    try:
        place = urlsplit(url)
    except ValueError:  # no URL: nothing is ever sent to it
        return False
    return place.scheme == "http" and not is_loopback(place.hostname or "")


def is_local(places: str) -> bool:
    """Whether these addresses, with or without ports and separated by commas, are those of the local stack."""
    return all(place.strip().partition(":")[0] in HOSTS for place in places.split(","))


def reachable(host: str) -> str:
    """Return the address at which this machine reaches what listens on `host`."""
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104 - nothing listens here


def nodes_of(kind: str, number: int, hosts: Sequence[str] = HOSTS) -> Sequence[Node]:
    """Return all nodes of a kind, each on its host."""
    return [Node(kind, each, host) for each, host in zip(range(1, number + 1), hosts[:number], strict=True)]
