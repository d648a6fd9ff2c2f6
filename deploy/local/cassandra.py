"""Cassandra as components: one node on loopback, or a ring of three."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.clusters import KEYSPACE
from deploy.jars import jar_paths
from deploy.java import KILLED_WITHOUT_MEMORY, ONE_COMPILER, find_java
from deploy.local.component import Component, require_free_disk
from deploy.local.nodes import HOSTS, ONE, THREE, Node, addresses, nodes_of
from deploy.local.security import CASSANDRA, Security
from master_dataset.errors import CassandraUnavailableError, OperatorError

if TYPE_CHECKING:
    from deploy.cassandra import Address
    from deploy.settings import Settings

_EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "java.base/java.lang.ref",
    "jdk.unsupported/sun.misc",
    "jdk.attach/sun.tools.attach",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
)
_OPENS = (
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
    "java.base/sun.nio.ch",
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
)
_LOGGING = """\
<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d{ISO8601} %level %logger{0} %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
"""
_MEMORY_MB = {ONE: (512, 256), THREE: (384, 160)}
"""Heap and direct memory of each node, by the number of nodes."""
_COMMIT_LOG = {
    ONE: {"commitlog_sync": "batch"},
    THREE: {"commitlog_sync": "periodic", "commitlog_sync_period": "1000ms"},
}
"""A crash loses nothing. With one node, a row is on disk before it is acknowledged; of three nodes, one may lose the
last second in a power failure.
"""
_CLOCK_MS = 20
"""How often the clock by which requests time out is updated. The default is 2 ms, even when idle."""
_TIMER_SLACK = timedelta(milliseconds=1)
"""After a request, a thread polls for the next one for about 10 ms, sleeping 10 us at a time. With the slack it wakes
up a tenth as often; a request may wait up to 1 ms longer.
"""
_FIRST = "cassandra"
"""User and password that Cassandra is delivered with, until the operator has a role."""
_TOKENS = 1 << 64
_LEAST_TOKEN = -(1 << 63)


def cassandra_nodes(settings: "Settings", hosts: Sequence[str] = HOSTS) -> Sequence[Component]:
    """Return the nodes. A row has a copy on every node, and a majority reads and writes it.

    Memtables are small, because the machine is shared with Spark. `hosts`: the address of each node.
    """
    nodes = nodes_of("cassandra", settings.cassandra.nodes, hosts)
    return [_component(node, nodes, settings) for node in nodes]


def _component(node: Node, nodes: Sequence[Node], settings: "Settings") -> Component:
    folder = settings.home / node.name
    return Component(
        name=node.name,
        command=lambda: _command(folder, len(nodes), settings),
        serves=lambda: _serves(node, settings),
        where={"address": f"{node.host}:{settings.cassandra.port}"},
        ports={
            settings.cassandra.port: "GALATEA_CASSANDRA_PORT",
            settings.cassandra.storage_port: "GALATEA_CASSANDRA_STORAGE_PORT",
        },
        host=node.host,
        prepare=lambda: _configure(node, nodes, settings),
        # They share the machine, and the last one waits for the tables.
        start_seconds=settings.stack.start_seconds * len(nodes),
        timer_slack=_TIMER_SLACK,
        once_ready=(lambda: _create_tables(nodes, settings)) if node == nodes[-1] else lambda: None,
    )


def _command(folder: Path, nodes: int, settings: "Settings") -> list[str]:
    java = find_java()
    heap, direct = _MEMORY_MB[nodes]
    on_21 = ["-Djava.security.manager=allow"] if java.major > 17 else []  # noqa: PLR2004 - a Java version
    return [
        str(java.executable),
        f"-Xmx{heap}m",
        f"-Xms{heap // 2}m",
        "-XX:+UseSerialGC",
        ONE_COMPILER,
        KILLED_WITHOUT_MEMORY,
        f"-XX:MaxDirectMemorySize={direct}m",
        *on_21,
        "-Dcassandra.superuser_setup_delay_ms=0",
        f"-Dcassandra.approximate_time_precision_ms={_CLOCK_MS}",
        *(flag for name in _EXPORTS for flag in ("--add-exports", f"{name}=ALL-UNNAMED")),
        *(flag for name in _OPENS for flag in ("--add-opens", f"{name}=ALL-UNNAMED")),
        "-Djdk.attach.allowAttachSelf=true",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Dcassandra.config=file:{folder / 'cassandra.yaml'}",
        f"-Dcassandra.storagedir={folder}",
        f"-Dlogback.configurationFile={folder / 'logback.xml'}",
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        "-Dcassandra-foreground=yes",
        "-Dcassandra.ring_delay_ms=1",
        "-Dcassandra.skip_wait_for_gossip_to_settle=0",
        "-Dcassandra.shutdown_announce_in_ms=0",
        "-cp",
        ":".join(map(str, jar_paths("cassandra", settings))),
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def _configure(node: Node, nodes: Sequence[Node], settings: "Settings") -> None:
    _refuse_without_data(node, nodes, settings)
    folder = settings.home / node.name
    require_free_disk(folder)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "logback.xml").write_text(_LOGGING)
    internode = settings.cassandra.storage_port
    known = {"seeds": addresses([each.host for each in nodes], internode)}
    seeds = [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [known]}]
    import yaml

    config = {
        **(_secured(Security(settings.home)) if settings.stack.secure else {}),
        "cluster_name": "galatea",
        "num_tokens": 1,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "listen_address": node.host,
        "rpc_address": node.host,
        "native_transport_port": settings.cassandra.port,
        "storage_port": internode,
        "seed_provider": seeds,
        **_COMMIT_LOG[len(nodes)],
        "commit_failure_policy": "die",
        "disk_failure_policy": "die",  # the supervisor restarts it once there is space
        "commitlog_disk_access_mode": "mmap",  # of all modes, the only one that notices every write that a disk refuses
        "commitlog_segment_size": "16MiB",
        "commitlog_total_space": "256MiB",
        "memtable_heap_space": "96MiB",
        "memtable_offheap_space": "64MiB",
        "file_cache_size": "32MiB",
        "key_cache_size": "16MiB",
        "concurrent_compactors": 1,
        "batch_size_warn_threshold": "128KiB",
        "batch_size_fail_threshold": "1024KiB",
        "data_file_directories": [str(folder / "data")],
        "commitlog_directory": str(folder / "commitlog"),
        "saved_caches_directory": str(folder / "saved_caches"),
        "hints_directory": str(folder / "hints"),
        "cdc_raw_directory": str(folder / "cdc"),
    }
    if len(nodes) > ONE:
        config |= _in_ring(node, len(nodes))
    (folder / "cassandra.yaml").write_text(yaml.safe_dump(config))


def _refuse_without_data(node: Node, nodes: Sequence[Node], settings: "Settings") -> None:
    """Refuse a node without its data: with it, a majority could have forgotten what it acknowledged."""
    data = {each.name: settings.home / each.name / "data" for each in nodes}
    complete = any((place / KEYSPACE).exists() for place in data.values())
    if complete and not (data[node.name] / "system").exists():
        message = f"{node.name} has lost its data, `{data[node.name]}`, and would answer as if it had never had any"
        raise OperatorError(message, do="put the folder back, or restore a backup: docs/how-to/disaster-recovery.md")


def _in_ring(node: Node, nodes: int) -> dict[str, Any]:
    """Make every node a seed with a fixed token, so that an empty ring starts at once and a lost node can be missing.

    Until the loss is known, after about 15 s, half of the scans ask the lost node. Short timeouts leave time to retry.
    """
    place = _LEAST_TOKEN + (node.number - 1) * _TOKENS // nodes
    timeouts = {"read_request_timeout": "4000ms", "range_request_timeout": "4000ms"}
    return {"initial_token": str(place), "auto_bootstrap": False, **timeouts}


def _secured(security: Security) -> dict[str, Any]:
    files = {
        "keystore": str(security.key_and_certificate(CASSANDRA)),
        "truststore": str(security.authority),
        "ssl_context_factory": {"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"},
    }
    return {
        "authenticator": "PasswordAuthenticator",
        "authorizer": "CassandraAuthorizer",
        "role_manager": "CassandraRoleManager",
        "client_encryption_options": {"enabled": True, "optional": False, **files},
        "server_encryption_options": {"internode_encryption": "all", "require_client_auth": True, **files},
    }


def _serves(node: Node, settings: "Settings") -> bool:
    from deploy.cassandra import Login

    own = replace(settings.cassandra.address, contact_points=(node.host,), keyspace=None)
    # Until the first start is complete, the operator has no role.
    first = [replace(own, login=Login(_FIRST, _FIRST))] if settings.stack.secure else []
    return any(map(_lets_in, (own, *first)))


def _lets_in(address: "Address") -> bool:
    from deploy.cassandra import connect

    try:
        connect(address).cluster.shutdown()
    except CassandraUnavailableError:
        return False
    return True


def _create_tables(nodes: Sequence[Node], settings: "Settings") -> None:
    from deploy.cassandra import Login, connect
    from deploy.local.rights import create_operator, create_roles
    from deploy.schema import migrate
    from deploy.secrets_key import register_first
    from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
    from views.control.publication import PointerRow

    hosts = tuple(node.host for node in nodes)
    address = replace(settings.cassandra.address, contact_points=hosts, keyspace=None)
    if settings.stack.secure:
        create_operator(address, Login(_FIRST, _FIRST), len(nodes))
    session = connect(address)
    try:
        known = len(session.cluster.metadata.all_hosts())
        if known < len(nodes):  # the others would not learn of a table
            message = f"the ring has {known} of {len(nodes)} nodes so far"
            raise CassandraUnavailableError(message, do="galatea status")
        migrate(session, KEYSPACE, settings.cassandra.replication or len(nodes))
        register_first(settings, session)
        PointerRow(session).begin(datetime.now(UTC))
        if settings.stack.secure:
            create_roles(session, KEYSPACE, Security(settings.home).passwords())
    except CASSANDRA_UNAVAILABLE as error:
        raise CassandraUnavailableError(f"the tables could not be created: {error}", do="galatea status") from error
    finally:
        session.cluster.shutdown()
