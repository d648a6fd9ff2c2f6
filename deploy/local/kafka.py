"""The brokers as components: one or three Kafka nodes in KRaft mode, each its own controller, on loopback."""

import base64
import re
import subprocess
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.jars import FORMER_KAFKA, KAFKA, jar_paths, locked_jars
from deploy.java import KILLED_WITHOUT_MEMORY, ONE_COMPILER, find_java
from deploy.local.component import Component, require_free_disk
from deploy.local.nodes import HOSTS, ONE, THREE, Node, addresses, nodes_of
from deploy.local.security import BROKER, OPERATOR, Security
from deploy.secret_files import write_private
from master_dataset.errors import OperatorError
from master_dataset.kafka.client_settings import majority
from master_dataset.kafka.connection import KafkaConnection, PasswordLogin

if TYPE_CHECKING:
    from deploy.settings import Settings

PROPERTIES = "server.properties"
_LOGGING = """\
<Configuration status="WARN"><Appenders><Console name="out" target="SYSTEM_OUT">
<PatternLayout pattern="%d{ISO8601} %p %c{1} %m%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


_PROPERTIES = """\
process.roles=broker,controller
node.id={number}
controller.quorum.voters={voters}
listeners={protocol}://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners={protocol}://{host}:{port}
inter.broker.listener.name={protocol}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor={copies}
min.insync.replicas={enough}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=4
offsets.retention.minutes={offsets_minutes}
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={enough}
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={enough}
unclean.leader.election.enable=false
broker.session.timeout.ms={session_ms}
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
group.initial.rebalance.delay.ms=0
log.segment.bytes=134217728
"""
_SECURED = """\
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={login}
listener.name.controller.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/,DEFAULT
ssl.keystore.type=PEM
ssl.keystore.location={key_and_certificate}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{operator};User:{broker}
"""
"""Clients log in with SCRAM, controllers with their certificate, and who has no rights by a rule has none."""
_FLUSH_EACH = "log.flush.interval.messages=1\n"
"""With one copy, a record is on disk before it is acknowledged. With more, the operating system writes at any time."""
_SESSION_MS = {ONE: 9000, THREE: 6000}
"""Broker session timeout by the number of brokers: how long a producer waits for another leader."""
_OFFSETS_OUTLIVE = timedelta(days=30)
"""How much longer committed offsets are kept than records. A group whose offsets expire starts at the earliest record,
and none of the records that it has read is left by then.
"""
_SNAPPY = "snappy-*-libsnappyjava.so*"
"""What Java unpacks, and leaves behind if it is killed."""
_META = "meta.properties"
"""Kafka writes this file into a folder that is formatted."""
_FORMATTED_BY = "formatted-by"
"""This file in a broker's folder says which version of Kafka formatted it. Earlier releases ran 4.3 and wrote none."""


def brokers(settings: "Settings", hosts: Sequence[str] = HOSTS) -> Sequence[Component]:
    """Return the brokers; each is a controller too. A record has a copy on every node, and a majority acknowledges it.

    `hosts`: the address of each node.

    With one node, acknowledged records survive a crash and a power failure, but not the loss of the disk. Of three
    nodes, one may lose what it has not written to disk: they are not expected to lose power at once.
    """
    nodes = nodes_of("kafka", settings.kafka.brokers, hosts)
    return [_component(node, nodes, settings) for node in nodes]


def _component(node: Node, nodes: Sequence[Node], settings: "Settings") -> Component:
    folder, address = settings.home / node.name, f"{node.host}:{settings.kafka.port}"
    return Component(
        name=node.name,
        command=lambda: kafka_command(folder, settings),
        serves=lambda: serves(node.number, replace(settings.kafka.connection, bootstrap=address)),
        where={"address": address},
        ports={
            settings.kafka.port: "GALATEA_KAFKA_PORT",
            settings.kafka.controller_port: "GALATEA_KAFKA_CONTROLLER_PORT",
        },
        host=node.host,
        prepare=lambda: _format(node, nodes, settings),
        start_seconds=settings.stack.start_seconds,
        once_ready=(lambda: _create_topics(nodes, settings)) if node == nodes[-1] else lambda: None,
    )


def _format(node: Node, nodes: Sequence[Node], settings: "Settings") -> None:
    folder = settings.home / node.name
    require_free_disk(folder)
    for left in folder.glob(_SNAPPY):
        left.unlink()
    data = folder / "data"
    voters = ",".join(f"{each.number}@{each.host}:{settings.kafka.controller_port}" for each in nodes)
    copies = {"copies": len(nodes), "enough": majority(len(nodes)), "session_ms": _SESSION_MS[len(nodes)]}
    kept = {"offsets_minutes": (settings.kafka.retention + _OFFSETS_OUTLIVE) // timedelta(minutes=1)}
    ports = {"port": settings.kafka.port, "controller": settings.kafka.controller_port}
    place = {"number": node.number, "host": node.host, "voters": voters, "data": data}
    secured = settings.stack.secure
    protocol = {"protocol": "SASL_SSL" if secured else "PLAINTEXT"}
    properties = _PROPERTIES.format(**place, **ports, **copies, **kept, **protocol)
    properties += _secured(Security(settings.home)) if secured else ""
    write_properties(folder, properties + (_FLUSH_EACH if len(nodes) == ONE else ""))
    if (data / _META).exists():
        return
    _refuse_without_log(nodes, settings)
    users = {user: Security(settings.home).password(user) for user in (OPERATOR, BROKER)} if secured else {}
    format_log(folder, _cluster_of(settings.home / each.name / "data" / _META for each in nodes), settings, users)


def _secured(security: Security) -> str:
    login = PasswordLogin("SCRAM-SHA-512", BROKER, security.password(BROKER))
    return _SECURED.format(
        login=login.java()["sasl.jaas.config"],
        key_and_certificate=security.key_and_certificate(BROKER),
        authority=security.authority,
        operator=OPERATOR,
        broker=BROKER,
    )


def _refuse_without_log(nodes: Sequence[Node], settings: "Settings") -> None:
    """Refuse to create topics again: their offsets would start at 0, below the positions that this home has recorded.

    One node of three may come back empty, because the others have everything and are the majority.
    """
    from master_dataset.storage import exists

    complete = sum((settings.home / each.name / "data" / _META).exists() for each in nodes)
    if complete < majority(len(nodes)) and exists(f"{settings.paths.checkpoint_uri}/archive"):
        data = settings.home / nodes[0].name / "data"
        message = f"the broker has lost its log, `{data}`, which the archive has read from"
        raise OperatorError(message, do="put the folder back, or begin a new log: docs/how-to/disaster-recovery.md")


def _cluster_of(files: Iterable[Path]) -> str:
    """Return the cluster id of a formatted node of this home; a new one for the first node."""
    for file in files:
        found = re.search("^cluster.id=(.+)$", file.read_text(), re.MULTILINE) if file.exists() else None
        if found:
            return found[1]
    return new_cluster()


def _create_topics(nodes: Sequence[Node], settings: "Settings") -> None:
    from deploy.local.rights import create_kafka_users
    from deploy.migration import TopicMigration
    from master_dataset.sources import registered_sources

    own = replace(settings.kafka.connection, bootstrap=addresses([node.host for node in nodes], settings.kafka.port))
    topics = TopicMigration(settings, own, len(nodes))
    topics.apply(topics.plan())
    if settings.stack.secure:
        create_kafka_users(own, Security(settings.home).passwords(), list(registered_sources()))


def kafka_command(folder: Path, settings: "Settings") -> list[str]:
    """Return the command of the node of that folder."""
    # Its code for snappy would be unpacked into /tmp, where it may not be allowed to run.
    snappy = f"-Dorg.xerial.snappy.tempdir={folder}"
    return [*_java(folder, settings, "-Xmx256m"), snappy, "kafka.Kafka", str(folder / PROPERTIES)]


def write_properties(folder: Path, properties: str) -> None:
    """Create the folder of a node, with its configuration, which may contain a password."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.xml").write_text(_LOGGING)
    write_private(folder / PROPERTIES, properties)


def format_log(folder: Path, cluster: str, settings: "Settings", users: Mapping[str, str] | None = None) -> None:
    """Format the log of a new node of this cluster, and flush it to the disk. OperatorError if Kafka's tool fails.

    The tool leaves its files to the operating system. After a power cut within half a minute, the file of the cluster's
    first metadata would be empty, and the broker would not start, whatever it had acknowledged by then.

    `users`: passwords of users that exist from the start. They are passed in a file, which is deleted afterwards.
    """
    from master_dataset.delta.fsync import fsync_files

    tool = [*_java(folder, settings, "-Xmx128m"), "kafka.tools.StorageTool"]
    arguments = ["format", f"--cluster-id={cluster}", "-c", str(folder / PROPERTIES)]
    for user, password in (users or {}).items():
        arguments += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]"]
    if kafka_part(folder.parent) == KAFKA:
        (folder / _FORMATTED_BY).write_text(kafka_version())
    file = folder / "format.arguments"
    write_private(file, "\n".join(arguments))
    try:
        done = subprocess.run([*tool, f"@{file}"], capture_output=True, text=True, check=False)
    finally:
        file.unlink()
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise OperatorError(f"the broker's folder `{folder}` could not be formatted: {last}", do="galatea doctor")
    written = [*(folder / "data").rglob("*"), folder / _FORMATTED_BY]
    fsync_files([file for file in written if file.is_file()], folder)


def new_cluster() -> str:
    """Return a new cluster id."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def kafka_part(home: Path) -> str:
    """Return the part of the lock with the jars of this home's brokers, which keep the version that formatted them.

    It is 4.2 for a new home. After a power cut, 4.3 may skip the end of a transaction (docs/explanation/drills.md), and
    4.2 cannot read a log that 4.3 has formatted.
    """
    formatted = [file.parents[1] for file in home.glob(f"*/data/{_META}")]
    return KAFKA if all((folder / _FORMATTED_BY).exists() for folder in formatted) else FORMER_KAFKA


def kafka_version(part: str = KAFKA) -> str:
    """Return the version of Kafka in a part of the lock; without one, that of new homes."""
    return next(jar.version for jar in locked_jars(part) if jar.artifact == "kafka_2.13")


def serves(number: int, kafka: KafkaConnection) -> bool:
    """Whether the node at this address reports the node of this number as part of the cluster."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return number in AdminClient({**kafka.client(), "log_level": 0}).list_topics(timeout=2).brokers
    except KafkaException:
        return False


def _java(folder: Path, settings: "Settings", heap: str) -> list[str]:
    jars = ":".join(map(str, jar_paths(kafka_part(folder.parent), settings)))
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}"
    java = [str(find_java().executable), heap, "-XX:+UseSerialGC", ONE_COMPILER, "-Djava.awt.headless=true"]
    java.append(KILLED_WITHOUT_MEMORY)
    return [*java, logging, "-cp", jars]
