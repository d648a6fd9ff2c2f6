"""How many nodes the local stack of a home has: decided when the home is made, and kept in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from master_dataset.errors import OperatorError

LOOPBACK = "127.0.0.1"
"""All that the local stack listens on, but for further nodes."""
HOSTS = (LOOPBACK, "127.0.0.2", "127.0.0.3")
"""The loopback address of each node, so that all nodes of a kind share their ports."""
ONE, THREE = 1, 3
"""One node is one copy. Three is the least number of which a majority is left when one is lost."""
_FILE = "nodes.json"


class Nodes(NamedTuple):
    """The nodes of one home, ONE or THREE of each kind."""

    brokers: int = ONE
    cassandra: int = ONE


def recorded_nodes(home: Path) -> Nodes | None:
    """What this home was made with; None while neither a broker nor Cassandra has a folder in it."""
    if not any((home / kind).exists() for kind in ("kafka", "cassandra")):
        return None
    file = home / _FILE
    return Nodes(**orjson.loads(file.read_bytes())) if file.exists() else Nodes()


def record_nodes(home: Path, nodes: Nodes) -> None:
    """Write it down for a new home. OperatorError if the home was made with other numbers."""
    kept = recorded_nodes(home)
    if kept is not None and kept != nodes:
        made = f"was made with {kept.brokers} broker(s) and {kept.cassandra} Cassandra node(s)"
        message = f"the home `{home}` {made}, which no setting can change afterwards"
        raise OperatorError(message, do="leave the numbers out, or begin a new home: GALATEA_HOME=FOLDER galatea up")
    if kept is None:
        part = home / f"{_FILE}.part"
        part.write_bytes(orjson.dumps(nodes._asdict()))
        part.replace(home / _FILE)


def addresses(number: int, port: int) -> str:
    """host:port of the first so many nodes, separated by commas."""
    return ",".join(f"{host}:{port}" for host in HOSTS[:number])


class Node(NamedTuple):
    """One node of several: its number from 1, and where it listens. The first one has the name of the kind itself."""

    kind: str
    number: int

    @property
    def name(self) -> str:
        """As in `galatea status`, and of its folder."""
        return self.kind if self.number == 1 else f"{self.kind}-{self.number}"

    @property
    def host(self) -> str:
        """Its address."""
        return HOSTS[self.number - 1]


def nodes_of(kind: str, number: int) -> Sequence[Node]:
    """All nodes of a kind."""
    return [Node(kind, each) for each in range(1, number + 1)]
