"""The broker as a component: one Kafka node in KRaft mode, its own controller, on loopback."""

import base64
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.jars import jar_paths
from deploy.java import ONE_COMPILER, find_java
from deploy.stack.component import Component
from master_dataset.errors import OperatorError
from master_dataset.kafka import Topics
from master_dataset.sources import registered_sources

if TYPE_CHECKING:
    from deploy.settings import Settings

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
message.max.bytes=4194304
replica.fetch.max.bytes=4194304
group.initial.rebalance.delay.ms=0
log.segment.bytes=134217728
"""
_LOGGING = """\
<Configuration status="WARN"><Appenders><Console name="out" target="SYSTEM_OUT">
<PatternLayout pattern="%d{ISO8601} %p %c{1} %m%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


def broker(settings: "Settings") -> Component:
    """One node is one copy: what is acknowledged survives a crash of the process, not the loss of the disk."""
    folder = settings.home / "kafka"
    return Component(
        name="kafka",
        command=lambda: [*_command(folder, settings, "-Xmx256m"), "kafka.Kafka", str(folder / "server.properties")],
        serves=lambda: _serves(settings.kafka_bootstrap),
        where={"address": settings.kafka_bootstrap},
        ports={
            settings.kafka_port: "GALATEA_KAFKA_PORT",
            settings.kafka_controller_port: "GALATEA_KAFKA_CONTROLLER_PORT",
        },
        prepare=lambda: _format(folder, settings),
        once_ready=lambda: _create_topics(settings),
    )


def _command(folder: Path, settings: "Settings", heap: str) -> list[str]:
    jars = ":".join(map(str, jar_paths("kafka", settings)))
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}"
    java = [str(find_java().executable), heap, "-XX:+UseSerialGC", ONE_COMPILER, "-Djava.awt.headless=true"]
    return [*java, logging, "-cp", jars]


def _serves(bootstrap: str) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def _format(folder: Path, settings: "Settings") -> None:
    data = folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.xml").write_text(_LOGGING)
    properties = folder / "server.properties"
    ports = {"port": settings.kafka_port, "controller": settings.kafka_controller_port}
    properties.write_text(_PROPERTIES.format(**ports, data=data))
    if (data / "meta.properties").exists():
        return
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = [*_command(folder, settings, "-Xmx128m"), "kafka.tools.StorageTool"]
    done = subprocess.run(  # every argument is ours
        [*tool, "format", f"--cluster-id={cluster}", "-c", str(properties)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise OperatorError(f"the broker's folder `{data}` could not be formatted: {last}", do="galatea doctor")


def _create_topics(settings: "Settings") -> None:
    retention_ms = int(settings.retention.total_seconds() * 1000)
    Topics(settings.kafka_bootstrap).create(registered_sources(), settings.kafka_partitions, 1, retention_ms)
