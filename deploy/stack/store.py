"""Cassandra as a component: one node on loopback."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from deploy.cassandra import connect
from deploy.jars import jar_paths
from deploy.java import ONE_COMPILER, find_java
from deploy.schema import migrate
from deploy.stack.component import Component
from master_dataset.errors import StoreUnavailable
from views.core.pointer_row import PointerRow

if TYPE_CHECKING:
    from deploy.settings import Settings

_EXPORTS = (
    "java.base/jdk.internal.misc", "java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server", "java.sql/java.sql", "java.base/java.lang.ref", "jdk.unsupported/sun.misc",
    "jdk.attach/sun.tools.attach", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
)  # fmt: skip
_OPENS = (
    "java.base/java.lang.module", "java.base/jdk.internal.loader", "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect", "java.base/jdk.internal.math", "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar", "jdk.management/com.sun.management.internal", "java.base/sun.nio.ch",
    "java.base/java.io", "java.base/java.lang", "java.base/java.lang.reflect", "java.base/java.nio",
    "java.base/java.util", "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
)  # fmt: skip
_LOGGING = """\
<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d{ISO8601} %level %logger{0} %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
"""
_HEAP_MB = 512


def store(settings: "Settings") -> Component:
    """Single node, so a quorum is one; small memtables, because the machine is shared with Spark."""
    folder = settings.home / "cassandra"
    return Component(
        name="cassandra",
        command=lambda: _command(folder, settings),
        serves=lambda: _serves(settings),
        where={"address": f"127.0.0.1:{settings.cassandra_port}"},
        ports={
            settings.cassandra_port: "GALATEA_CASSANDRA_PORT",
            settings.cassandra_storage_port: "GALATEA_CASSANDRA_STORAGE_PORT",
        },
        prepare=lambda: _configure(folder, settings),
        once_ready=lambda: _create_tables(settings),
    )


def _command(folder: Path, settings: "Settings") -> list[str]:
    java = find_java()
    on_21 = ["-Djava.security.manager=allow"] if java.major > 17 else []  # noqa: PLR2004 - a Java version
    return [
        str(java.executable), f"-Xmx{_HEAP_MB}m", f"-Xms{_HEAP_MB // 2}m", "-XX:+UseSerialGC", ONE_COMPILER,
        "-XX:+ExitOnOutOfMemoryError", "-XX:MaxDirectMemorySize=256m", *on_21,
        *(flag for name in _EXPORTS for flag in ("--add-exports", f"{name}=ALL-UNNAMED")),
        *(flag for name in _OPENS for flag in ("--add-opens", f"{name}=ALL-UNNAMED")),
        "-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dcassandra.config=file:{folder / 'cassandra.yaml'}", f"-Dcassandra.storagedir={folder}",
        f"-Dlogback.configurationFile={folder / 'logback.xml'}", f"-Djava.io.tmpdir={folder / 'tmp'}",
        "-Dcassandra-foreground=yes", "-Dcassandra.ring_delay_ms=1", "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.shutdown_announce_in_ms=0",
        "-cp", ":".join(map(str, jar_paths("cassandra", settings))),
        "org.apache.cassandra.service.CassandraDaemon",
    ]  # fmt: skip


def _configure(folder: Path, settings: "Settings") -> None:
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "logback.xml").write_text(_LOGGING)
    internode = settings.cassandra_storage_port
    itself = {"seeds": f"127.0.0.1:{internode}"}
    seeds = [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [itself]}]
    config = {
        "cluster_name": "galatea", "num_tokens": 1, "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch", "listen_address": "127.0.0.1", "rpc_address": "127.0.0.1",
        "native_transport_port": settings.cassandra_port, "storage_port": internode, "seed_provider": seeds,
        "commitlog_sync": "periodic", "commitlog_sync_period": "1000ms",  # a crash of the process loses nothing
        "commitlog_segment_size": "16MiB", "commitlog_total_space": "256MiB",
        "memtable_heap_space": "96MiB", "memtable_offheap_space": "64MiB",
        "file_cache_size": "32MiB", "key_cache_size": "16MiB", "concurrent_compactors": 1,
        "batch_size_warn_threshold": "128KiB", "batch_size_fail_threshold": "1024KiB",
        "data_file_directories": [str(folder / "data")], "commitlog_directory": str(folder / "commitlog"),
        "saved_caches_directory": str(folder / "saved_caches"), "hints_directory": str(folder / "hints"),
        "cdc_raw_directory": str(folder / "cdc"),
    }  # fmt: skip
    (folder / "cassandra.yaml").write_text(yaml.safe_dump(config))


def _serves(settings: "Settings") -> bool:
    try:
        session = connect(["127.0.0.1"], settings.cassandra_port, None)
    except StoreUnavailable:
        return False
    session.cluster.shutdown()
    return True


def _create_tables(settings: "Settings") -> None:
    session = connect(["127.0.0.1"], settings.cassandra_port, None)
    try:
        migrate(session, settings.cassandra_address.keyspace or "")
        PointerRow(session).begin(datetime.now(UTC))
    finally:
        session.cluster.shutdown()
