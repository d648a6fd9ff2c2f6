"""One Kafka node as a process: its Java, its folder, its properties, and how its log is made for the first time."""

import base64
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.jars import jar_paths
from deploy.java import ONE_COMPILER, find_java
from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from deploy.settings import Settings

PROPERTIES = "server.properties"
_LOGGING = """\
<Configuration status="WARN"><Appenders><Console name="out" target="SYSTEM_OUT">
<PatternLayout pattern="%d{ISO8601} %p %c{1} %m%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


def kafka_command(folder: Path, settings: "Settings") -> list[str]:
    """What runs the node of that folder."""
    return [*_java(folder, settings, "-Xmx256m"), "kafka.Kafka", str(folder / PROPERTIES)]


def write_properties(folder: Path, properties: str) -> None:
    """Make the folder, with what the node reads when it starts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.xml").write_text(_LOGGING)
    (folder / PROPERTIES).write_text(properties)


def format_log(folder: Path, cluster: str, settings: "Settings") -> None:
    """Make the empty log of a new node of this cluster. OperatorError if Kafka's own tool fails."""
    tool = [*_java(folder, settings, "-Xmx128m"), "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c"]
    done = subprocess.run(  # every argument is ours
        [*tool, str(folder / PROPERTIES)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise OperatorError(f"the broker's folder `{folder}` could not be formatted: {last}", do="galatea doctor")


def new_cluster() -> str:
    """The id of a new cluster."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def serves(number: int, address: str) -> bool:
    """Whether the node of this number has been taken in by the cluster, as the node at this address says."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        return number in AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2).brokers
    except KafkaException:
        return False


def _java(folder: Path, settings: "Settings", heap: str) -> list[str]:
    jars = ":".join(map(str, jar_paths("kafka", settings)))
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.xml'}"
    java = [str(find_java().executable), heap, "-XX:+UseSerialGC", ONE_COMPILER, "-Djava.awt.headless=true"]
    return [*java, logging, "-cp", jars]
