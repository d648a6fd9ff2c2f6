"""Brokers for the experiments: one with a second listener behind a fault proxy, and three nodes that may be killed.

They have a home of their own below `GALATEA_HOME/prove`, free ports, and an empty log at every start.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.local.component import Component
from deploy.local.kafka import format_log, kafka_command, new_cluster, serves, write_properties
from deploy.local.nodes import LOOPBACK
from deploy.local.ports import free_ports, is_free
from deploy.local.records import Records
from deploy.local.supervisor import Supervisor
from lab.fault_proxy import FaultProxy
from master_dataset.kafka.connection import KafkaConnection

if TYPE_CHECKING:
    from deploy.settings import Settings

SILENCE_MS = 12_000
"""Time without heartbeat after which another node leads."""
CONTROLLER, FOLLOWER, LEADER = 1, 2, 3
_PROPERTIES = """\
process.roles={roles}
node.id={number}
controller.quorum.voters=1@{host}:{controller}
listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
unclean.leader.election.enable=false
broker.session.timeout.ms={silence_ms}
group.initial.rebalance.delay.ms=0
log.segment.bytes=16777216
"""


@dataclass(frozen=True)
class Cluster:
    """A controller and two brokers. `kafka`: both brokers. `running`: has started them."""

    kafka: KafkaConnection
    home: Path
    running: Supervisor

    def restart(self, number: int) -> None:
        """Start a node again that was killed, with the log that it had. OperatorError if it does not become ready."""
        self.running.restart(_name(number))

    def pid(self, number: int) -> int:
        """Return the pid of a node. Raises LookupError if it is not running."""
        pid = Records(self.home).pid(_name(number))
        if pid is None:
            raise LookupError(f"node {number} does not run")
        return pid


@contextmanager
def one_broker(settings: "Settings", home: Path) -> Iterator[tuple[KafkaConnection, KafkaConnection, FaultProxy]]:
    """Start a broker; yields the way to it, the way through the fault proxy, and the proxy."""
    port, behind, before, controller = free_ports(4)
    listeners = f"PLAINTEXT://{LOOPBACK}:{port},PROXY://{LOOPBACK}:{behind},CONTROLLER://{LOOPBACK}:{controller}"
    advertised = f"PLAINTEXT://{LOOPBACK}:{port},PROXY://{LOOPBACK}:{before}"
    more = f"advertised.listeners={advertised}\ninter.broker.listener.name=PLAINTEXT\n"
    properties = _properties(1, "broker,controller", listeners, controller, home) + more
    ports = {port: "a port of its own", behind: "a port of its own", controller: "a port of its own"}
    node = _component(1, properties, f"{LOOPBACK}:{port}", ports, (settings, home, new_cluster()))
    with Supervisor(home, [node]) as running:
        running.start()
        with FaultProxy(LOOPBACK, before, behind) as proxy:
            yield KafkaConnection(f"{LOOPBACK}:{port}"), KafkaConnection(f"{LOOPBACK}:{before}"), proxy


@contextmanager
def three_nodes(settings: "Settings", home: Path) -> Iterator[Cluster]:
    """Start three nodes, which are not restarted when they are killed, unless by `Cluster.restart`."""
    controller, *ports = free_ports(3)
    at = {number: f"{LOOPBACK}:{port}" for number, port in zip((FOLLOWER, LEADER), ports, strict=True)}
    made = (settings, home, new_cluster())
    own = _properties(CONTROLLER, "controller", f"CONTROLLER://{LOOPBACK}:{controller}", controller, home)
    nodes = [_component(CONTROLLER, own, "", {controller: "a port of its own"}, made)]
    for number, address in at.items():
        own = _properties(number, "broker", f"PLAINTEXT://{address}", controller, home)
        ports_of = {int(address.rpartition(":")[2]): "a port of its own"}
        nodes.append(_component(number, own, address, ports_of, made))
    with Supervisor(home, nodes) as running:
        running.start()
        yield Cluster(KafkaConnection(",".join(at.values())), home, running)


def broker_log(home: Path, topic: str) -> Path:
    """Return the file that holds partition 0 of a topic, as `one_broker` in this home stores it, if it is small."""
    return home / _name(1) / "data" / f"{topic}-0" / "00000000000000000000.log"


def _properties(number: int, roles: str, listeners: str, controller: int, home: Path) -> str:
    data = home / _name(number) / "data"
    place = {"number": number, "host": LOOPBACK, "controller": controller, "data": data, "silence_ms": SILENCE_MS}
    return _PROPERTIES.format(roles=roles, listeners=listeners, **place)


def _component(
    number: int, properties: str, address: str, ports: Mapping[int, str], made: tuple["Settings", Path, str]
) -> Component:
    settings, home, cluster = made
    folder = home / _name(number)
    is_made = False

    def prepare() -> None:
        """Make an empty log for the first start."""
        nonlocal is_made
        if not is_made:
            shutil.rmtree(folder, ignore_errors=True)
            write_properties(folder, properties)
            format_log(folder, cluster, settings)
            is_made = True

    def is_there() -> bool:
        return serves(number, KafkaConnection(address)) if address else not any(is_free(port) for port in ports)

    return Component(
        name=_name(number),
        command=lambda: kafka_command(folder, settings),
        serves=is_there,
        ports=ports,
        prepare=prepare,
        grace_seconds=5,
    )


def _name(number: int) -> str:
    return f"node-{number}"
