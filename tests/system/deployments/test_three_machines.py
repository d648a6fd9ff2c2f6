"""Three machines with TLS between them: one after the other loses its network and gets it back.

A machine is a network namespace with an address of its own. Each has a broker and a Cassandra node; Galatea's processes
are spread over them, each with a user of its own, as docs/how-to/secured-clusters.md says. They share one file system,
as machines with a network mount do. Needs root.
"""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local.cassandra import cassandra_nodes
from deploy.local.component import Component
from deploy.local.kafka import brokers
from deploy.local.nodes import addresses
from deploy.local.security import OPERATOR, Security
from deploy.local.stack import api, layer
from deploy.local.supervisor import Supervisor
from deploy.secret_files import operator_key
from deploy.secrets_key import key_file
from deploy.settings import Settings
from galatea.client import Client
from galatea.client.errors import UnavailableError
from galatea.client.ingest import IngestInterruptedError
from tests.integration.conftest import Stack, settings_of, watched
from tests.system.deployments.test_three_nodes import PORTION, RepeatedQuery, receipts, wait_until

pytestmark = pytest.mark.nightly

HERE = "10.77.0.254"
"""Address of this process, in the network of the machines."""
MARK = b"Milk 1 l"
"""In every receipt."""
ANY_FRAME = 3
"""ETH_P_ALL of <linux/if_ether.h>."""
IP = shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "ip"


@dataclass(frozen=True)
class Machine:
    """A network namespace, connected by a virtual cable."""

    number: int

    @property
    def host(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def namespace(self) -> str:
        return f"galatea-{self.number}"

    @property
    def cable(self) -> str:
        return f"galatea-c{self.number}"

    def on(self, component: Component) -> Component:
        """The component as one that runs on this machine."""
        within = (IP, "netns", "exec", self.namespace)
        return replace(component, command=lambda: [*within, *component.command()], ports={}, start_seconds=900)


MACHINES = tuple(map(Machine, (1, 2, 3)))
HOSTS = tuple(machine.host for machine in MACHINES)
BRIDGE = "galatea-b"


def ip(*words: str) -> None:
    subprocess.run((IP, *words), check=True)


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """The machines and the network between them."""
    assert os.geteuid() == 0, "network namespaces need root"
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{HERE}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for machine in MACHINES:
            ip("netns", "add", machine.namespace)
            ip("link", "add", machine.cable, "type", "veth", "peer", "name", "eth0", "netns", machine.namespace)
            ip("link", "set", machine.cable, "master", BRIDGE, "up")
            ip("-n", machine.namespace, "address", "add", f"{machine.host}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                ip("-n", machine.namespace, "link", "set", link, "up")
        yield
    finally:
        for machine in MACHINES:
            subprocess.run((IP, "netns", "delete", machine.namespace), check=False)  # and with it, its cable
        subprocess.run((IP, "link", "delete", BRIDGE), check=False)


@contextmanager
def without_network(machine: Machine) -> Iterator[None]:
    """Its processes go on, and reach nobody."""
    ip("link", "set", machine.cable, "down")
    try:
        yield
    finally:
        ip("link", "set", machine.cable, "up")


def settings_on(machine: Machine, user: str, cluster: Settings, home: Path) -> tuple[Settings, dict[str, str]]:
    """Those of a process with this user, and the environment that says the same."""
    security = Security(cluster.home)
    password, authority = str(security.password_file(user)), str(security.authority)
    return settings_of(
        home,
        GALATEA_KAFKA_BOOTSTRAP=addresses(HOSTS, cluster.kafka.port),
        GALATEA_KAFKA_SECURITY_PROTOCOL="SASL_SSL",
        GALATEA_KAFKA_SASL_MECHANISM="SCRAM-SHA-512",
        GALATEA_KAFKA_USER=user,
        GALATEA_KAFKA_PASSWORD_FILE=password,
        GALATEA_KAFKA_CA_FILE=authority,
        GALATEA_CASSANDRA_CONTACT_POINTS=",".join(HOSTS),
        GALATEA_CASSANDRA_PORT=str(cluster.cassandra.port),
        GALATEA_CASSANDRA_USER=user,
        GALATEA_CASSANDRA_PASSWORD_FILE=password,
        GALATEA_CASSANDRA_CA_FILE=authority,
        GALATEA_API_HOST=machine.host,
        GALATEA_API_PORT=str(cluster.api.port),
        GALATEA_API_CA_FILE=authority,
        GALATEA_TLS_CERTIFICATE_FILE=str(security.certificate),
        GALATEA_TLS_KEY_FILE=str(security.key),
        GALATEA_SECRETS_KEY_FILE=str(key_file(cluster)),
    )


@pytest.fixture(scope="module")
def stacks(network: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Stack]]:  # noqa: ARG001
    """What the first two machines offer."""
    folder = tmp_path_factory.mktemp("machines")
    secured = {"GALATEA_SECURE": "true", "GALATEA_KAFKA_BROKERS": "3", "GALATEA_CASSANDRA_NODES": "3"}
    cluster, _ = settings_of(folder / "cluster", **secured)
    Security(cluster.home, HOSTS).prepare()
    nodes = [
        machine.on(node)
        for kind in (brokers(cluster, HOSTS), cassandra_nodes(cluster, HOSTS))
        for machine, node in zip(MACHINES, kind, strict=True)
    ]
    home = folder / "home"
    home.mkdir()
    operator_key(home / "operator.key")

    def process(machine: Machine, user: str, name: str) -> Component:
        settings, _ = settings_on(machine, user, cluster, home)
        return machine.on(api(settings, name) if user == "api" else layer(user, settings, 0, name))

    first, second, third = MACHINES
    galatea = [
        process(first, "archive", "archive"),
        process(first, "speed", "speed"),
        process(first, "api", "api"),
        process(second, "archive", "archive-2"),
        process(second, "speed", "speed-2"),
        process(second, "api", "api-2"),
        process(third, "alerts", "alerts"),
        process(third, "dispatcher", "dispatcher"),
    ]
    with Supervisor(cluster.home, nodes) as kept, watched(kept), Supervisor(home, galatea) as own, watched(own):
        yield [Stack(*settings_on(machine, OPERATOR, cluster, home)) for machine in (first, second)]


@dataclass
class Listener:
    """What passes through the network: how many frames, and whether one has a receipt in clear text."""

    frames: int = 0
    clear: int = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        done = threading.Event()

        def listen() -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ANY_FRAME)) as wire:
                wire.bind((BRIDGE, 0))
                wire.settimeout(0.5)
                while not done.is_set():
                    try:
                        frame = wire.recv(1 << 16)
                    except TimeoutError:
                        continue
                    self.frames += 1
                    self.clear += MARK in frame

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield
        finally:
            done.set()
            listening.join()


def send(stack: Stack, portion: int) -> None:
    """Send as a till does: again, until everything is accepted. Duplicates count once."""
    settings, events = stack.settings, receipts(portion).splitlines()

    def is_accepted() -> bool:
        try:
            return client.ingest("pos_transactions", events).accepted == PORTION
        except (IngestInterruptedError, UnavailableError):
            return False

    with Client(settings.api_url, key_file=settings.home / "operator.key", ca_file=settings.api.ca_file) as client:
        wait_until(is_accepted)


def test_each_machine_is_lost_and_comes_back_without_a_wrong_or_missing_number(stacks: Sequence[Stack]) -> None:
    wire, sent = Listener(), 0
    queries = [RepeatedQuery(stack) for stack in stacks]
    with wire.listening():
        for machine in MACHINES:
            others = [each for each, own in zip(queries, MACHINES, strict=False) if own != machine]
            with without_network(machine):
                send(others[0].stack, machine.number)
                sent += PORTION
                for query in queries:
                    query.sent = sent
                for query in others:
                    wait_until(query.is_whole)
            for query in queries:
                wait_until(query.is_whole)
        stacks[0].galatea("rebuild", "--wait")
        verdict = stacks[1].galatea("verify")
        for query in queries:
            wait_until(query.is_whole)

    print(f"{sent} receipts, {verdict['cells']} cells, {wire.frames} frames")  # noqa: T201
    assert verdict["differing"] == 0
    assert verdict["cells"] > 0
    assert wire.frames > PORTION
    assert wire.clear == 0


def test_nothing_on_a_machine_answers_without_encryption(stacks: Sequence[Stack]) -> None:
    settings = stacks[0].settings
    wire = Listener()
    with wire.listening(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:

        def is_seen() -> bool:
            plain.sendto(MARK, (HOSTS[0], settings.api.port))
            return wire.clear > 0

        wait_until(is_seen)  # the listener would have seen a receipt
    for bootstrap in settings.kafka.bootstrap.split(","):
        client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        with pytest.raises(KafkaException):
            client.list_topics(timeout=5)
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{HOSTS[0]}:{settings.api.port}/healthz", trust_env=False)
