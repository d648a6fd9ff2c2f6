"""Spark sessions: how every Spark process of Galatea is configured, on this machine and on a cluster."""

import hashlib
import os
import re
import stat
import sys
import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deploy.class_archive import archive_option
from deploy.jars import jar_paths, spark_parts
from deploy.java import ONE_COMPILER, java_home_for_spark
from deploy.local.nodes import LOOPBACK
from deploy.scratch import own_scratch
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import OAUTH_URLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from deploy.settings import Settings

ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Java options of every process that hands rows to Python: Spark itself checks bounds."""
_IN_THIS_PROCESS = re.compile(r"local(\[.*\])?")


def on_cluster(settings: "Settings") -> bool:
    """Whether the Spark master has executors in other processes."""
    return not _IN_THIS_PROCESS.fullmatch(settings.spark.master)


def executor_options(settings: "Settings") -> "Mapping[str, str]":
    """Return Spark's options for executors. In local mode the driver is the only one, and nobody can lose it."""
    if not on_cluster(settings):
        return _NEVER_LOST
    cores = str(settings.spark.cores)
    java = " ".join(filter(None, (ARROW, _oauth_option(settings))))
    return {
        "spark.cores.max": cores,  # else one application would take a whole standalone cluster
        "spark.default.parallelism": cores,  # else the number registered when a stream starts
        "spark.executor.memory": f"{settings.spark.executor_memory_mb}m",
        "spark.executor.defaultJavaOptions": java,  # `extraJavaOptions` stays free for `spark-defaults.conf`
        **{f"spark.executorEnv.{name}": value for name, value in _MALLOC.items()},
    }


def authentication_options(settings: "Settings") -> "Mapping[str, str]":
    """Return the options that require a secret of every process that connects to a driver in local mode.

    Without it, every user of the machine could stop the driver, and read what it broadcasts, passwords included. Spark
    creates the secret at each start. On a cluster the operator chooses it, because its daemons need it too.
    """
    if on_cluster(settings):
        return {}
    return {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def _oauth_option(settings: "Settings") -> str:
    """Return the option without which Java asks no identity provider for tokens; empty if none is used."""
    return f"-D{OAUTH_URLS}={settings.kafka.oauth_token_url}" if settings.kafka.oauth_token_url else ""


def object_store_options(settings: "Settings") -> "Mapping[str, str]":
    """Return the options of Spark's connector for S3; none if everything is in local folders.

    Spark only reads tables there, and keeps checkpoints: commits are delta-rs's. Credentials come from the chain of the
    AWS SDK for Java, which looks where botocore does.
    """
    if not settings.paths.remote:
        return {}
    from master_dataset.storage import region  # noqa: PLC0415 - local folders need no client of an object store

    store = settings.s3.store
    named = {
        "endpoint": store.endpoint,
        "endpoint.region": store.region or region(),
        "path.style.access": "true" if store.path_style else "false",
        "connection.ssl.enabled": "true" if store.is_encrypted else "false",
        "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        "connection.timeout": "30s",
        "connection.establish.timeout": "10s",
        "attempts.maximum": "5",
        # Vectored and prefetching streams of other vendors' jars are not on the class path, or not needed.
        "input.stream.type": "classic",
    }
    discovery = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "32"}  # each file is a request
    return discovery | {f"spark.hadoop.fs.s3a.{name}": value for name, value in named.items() if value}


def _holds_secret(name: str, value: str) -> bool:
    """Whether an option has a secret in it by its name, or passes one to Java. Names of files and references do not."""
    is_place = re.search(r"(?i)file$|\.secretKeyRef\.|\.secrets\.", name)
    has_secret = re.search(SECRETS, name) and not is_place
    return bool(has_secret or re.search(rf"(?i)-D\S*({SECRETS.removeprefix('(?i)')})\S*=", value))


def further_options(settings: "Settings", own: "Mapping[str, str]") -> "Mapping[str, str]":
    """Return GALATEA_SPARK_CONF. OperatorError if it names an option that Galatea sets, or one with a secret."""
    for name in (name for name in settings.spark.conf if name in own):
        message = f"GALATEA_SPARK_CONF names `{name}`, which Galatea sets to `{own[name]}` itself"
        raise OperatorError(message, do="leave it out; docs/reference/settings.md lists what can be chosen")
    for name in (name for name, value in settings.spark.conf.items() if _holds_secret(name, value)):
        # Spark's Python library passes every option to Java as an argument.
        message = f"GALATEA_SPARK_CONF names `{name}`, whose value every user of this machine could read with `ps`"
        raise OperatorError(message, do="put it into spark-defaults.conf: docs/how-to/spark-cluster.md")
    return settings.spark.conf


def executor_python(settings: "Settings") -> str:
    """Return the Python that executors start; in local mode, this one."""
    return (on_cluster(settings) and settings.spark.python) or sys.executable


def driver_host(settings: "Settings") -> str:
    """Return the address that a driver listens on: loopback if executors are here; "" leaves the choice to Spark."""
    first = urlsplit(settings.spark.master.split(",", 1)[0])
    if not on_cluster(settings):
        return LOOPBACK
    return settings.spark.driver_host or (LOOPBACK if first.hostname in {LOOPBACK, "localhost"} else "")


_NEVER_LOST = {"spark.storage.blockManagerHeartbeatTimeoutMs": "3650d"}
"""Otherwise Spark removes itself if the clock goes forward by two minutes, as after a suspend, and ends later.

Heartbeats are measured by the time of day, and a driver that has removed its own executor takes none from it any more.
"""
_MALLOC = {
    "MALLOC_ARENA_MAX": "2",  # glibc's default arenas cost each process some hundred MB
    # Otherwise glibc keeps up to 64 MB of what a worker's busiest moment needed.
    "MALLOC_MMAP_THRESHOLD_": "4194304",
    "MALLOC_TRIM_THRESHOLD_": "16777216",
}
"""How Spark's Python workers allocate memory, besides Arrow."""
_ENVIRONMENT = {
    **_MALLOC,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "PYSPARK_PIN_THREAD": "true",  # as the secret for calls of Java needs it
}
SECRETS = r"(?i)secret|password|passphrase|token|access[.]?key|account[.]key|jaas|keystore[.]?key|private key"
"""What Spark hides the values of, by names of options and by their values: Kafka's are in plans and event logs."""
_ALWAYS = {
    "spark.ui.enabled": "false",
    "spark.hadoop.fs.permissions.umask-mode": "077",  # Hadoop has a umask of its own
    "spark.redaction.regex": SECRETS,
    "spark.sql.redaction.options.regex": rf"{SECRETS}|(?i)url",  # Spark hides URLs by default
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics
    "spark.sql.parquet.compression.codec": "zstd",
    # Otherwise events would be missing without an error, depending on the defaults of the machine.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # A rebuild names local files one by one: to look at them is quicker than a job that does.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",  # of data files: a changed bit is no number
    "spark.python.worker.memory": "128m",
    "spark.python.daemon.module": "deploy.spark_daemon",
    # Hadoop's local file system starts a `chmod` process for every file that it creates.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}
_SHARED_CLASSES = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""Archived classes are mapped at the address that they were made for, so that processes share their pages."""
_JAVA_OPTIONS = f"-XX:+UseSerialGC {_SHARED_CLASSES} {ARROW}"
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=2400 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=160000"
)
"""Four times Java's thresholds: the second compiler compiles what runs long, and does not slow down the start."""

_YOUNG_OF_STREAMS = "-Xmn64m"
"""Java would take a third of the heap, and fill all of it before it collects what a micro-batch has left."""


_SOCKET_PATH_BYTES = 103
"""Longest path of a Unix socket on macOS; Linux has room for four more."""
_SOCKET_NAME_BYTES = len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
"""What Spark adds to the folder."""


class Work(Enum):
    """What a session is for: a stream, a computation of seconds, or one of minutes."""

    STREAM = "stream"
    SHORT = "short"
    LONG = "long"


_BATCH = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
}
_STREAMING = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8000",
    # Events may have a megabyte each, and a worker needs several times the bytes of a batch to parse it.
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.kafka.consumer.cache.capacity": "1024",  # a consumer for each partition of each topic
    # While nothing arrives: a single event waits 0.1 s on average. With 100 ms, an idle stack would be a third busier.
    "spark.sql.streaming.pollingDelay": "200ms",
    "spark.sql.codegen.cache.maxEntries": "500",
    "spark.sql.adaptive.enabled": "false",
    # Otherwise each micro-batch that is kept while it is written would make a session of its own. No table has buckets.
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    # Not by way of Hadoop's FileContext, which goes around `fs.file.impl`.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def socket_options(settings: "Settings", scratch: Path) -> "Mapping[str, str]":
    """Return the options that let Spark's Java and Python processes speak over Unix sockets instead of loopback ports.

    Any user of the machine can connect to a port. PySpark reads the secret of a connection without a time limit, so a
    silent one kept a stream from its accumulators, and every connection to the daemon forked a worker.

    On a cluster nothing changes: its executors have folders of their own, whose paths may be too long for sockets.

    Args:
        settings: Of the deployment.
        scratch: The private folder of this driver, where the sockets are if its path is short enough. Otherwise,
            drivers of one name share a folder for them.

    Raises:
        OperatorError: It is not, and there is no other private folder for them.
    """
    if on_cluster(settings):
        return {}
    enabled = {"spark.python.unix.domain.socket.enabled": "true"}
    if _has_room(scratch):
        return enabled  # in `java.io.tmpdir`
    name = f"galatea-{hashlib.sha256(os.fsencode(scratch.parent)).hexdigest()[:16]}"
    short = next(filter(_has_room, (Path(tempfile.gettempdir(), name), Path("/tmp", name))))  # noqa: S108 - checked below
    try:
        short.mkdir(mode=0o700, exist_ok=True)
        found = short.lstat()
        is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    except OSError as error:
        message = f"`{short}` cannot be created for the sockets of Spark: {error.strerror}"
        raise OperatorError(message, do="set GALATEA_HOME to a shorter path") from error
    if not is_private:
        message = f"`{short}` would hold the sockets of Spark, and others of this machine can use it"
        raise OperatorError(message, do="remove it, or set GALATEA_HOME to a shorter path")
    return {**enabled, "spark.python.unix.domain.socket.dir": str(short)}


def _has_room(folder: Path) -> bool:
    return len(os.fsencode(folder)) + _SOCKET_NAME_BYTES <= _SOCKET_PATH_BYTES


def spark_session(settings: "Settings", name: str, work: Work, *, memory_mb: int, partitions: int) -> "SparkSession":
    """Start a driver. Java is the machine's or the bundled one, and jars come from the verified cache.

    Args:
        settings: Of the deployment.
        name: Name of the application and of its scratch folder.
        work: What the session is for.
        memory_mb: Heap of the driver, in MB.
        partitions: Shuffle partitions.

    Raises:
        OperatorError: There is no suitable Java, or GALATEA_SPARK_CONF names an option that Galatea sets, or one with a
            secret.
    """
    os.environ.update(
        _ENVIRONMENT, PYSPARK_PYTHON=executor_python(settings), JAVA_HOME=str(java_home_for_spark(settings))
    )
    from pyspark import SparkContext  # noqa: PLC0415 - reads the environment when it starts Java
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    scratch = own_scratch(settings.home / "spark" / name)
    jars = [str(path) for part in spark_parts(settings) for path in jar_paths(part, settings)]
    compiler = _LATE_COMPILER if work is Work.LONG else ONE_COMPILER
    young = _YOUNG_OF_STREAMS if work is Work.STREAM else ""
    further = filter(None, (young, archive_option(jars), _oauth_option(settings)))
    java = " ".join((_JAVA_OPTIONS, compiler, f"-Dderby.system.home={scratch}", *further))
    options = {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": os.pathsep.join(jars),  # there already when Spark looks for its jars
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": f"{java} -Djava.io.tmpdir={scratch}",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **authentication_options(settings),
        **socket_options(settings, scratch),
        **executor_options(settings),
        **object_store_options(settings),
    }
    if host := driver_host(settings):
        os.environ["SPARK_LOCAL_IP"] = host
        options |= {"spark.driver.bindAddress": host, "spark.driver.host": host}
    own = {**_ALWAYS, **options, **(_STREAMING if work is Work.STREAM else _BATCH)}
    named = {"spark.app.name": f"galatea-{name}", "spark.master": settings.spark.master}
    every = {**further_options(settings, own), **own, **named}
    # Warnings also tell the user of a command that a cluster has no core left.
    shows_warnings = work is Work.STREAM or on_cluster(settings)
    if not shows_warnings and SparkContext._gateway is None:  # noqa: SLF001 - no other way to know
        _start_quietly(every, settings.home / "logs" / f"{name}-spark.log")
    builder = SparkSession.builder
    for key, value in every.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if work is Work.STREAM:
        _require_secret_for_callbacks()
    spark.sparkContext.setLogLevel("WARN" if shows_warnings else "ERROR")
    return spark


def _require_secret_for_callbacks() -> None:
    """Have Java send the secret that Python sends to Java when it calls a function of a stream in this process.

    PySpark listens for these calls without a secret, so everybody on the machine could make them, and play Java for the
    function that is called. Java's client has the secret, and loses it when PySpark tells it the port.
    """
    from py4j.java_gateway import JavaObject  # noqa: PLC0415 - only where Spark is used
    from pyspark import SparkContext  # noqa: PLC0415 - as above
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - likewise

    gateway = SparkContext._gateway  # noqa: SLF001 - no other way to the connection
    if gateway is None:
        raise RuntimeError("there is no Java yet")
    secret = gateway.java_parameters.auth_token
    gateway.python_parameters.auth_token = secret  # first, so that no connection is accepted without it
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()  # noqa: SLF001 - as PySpark does
    field = client.getClass().getSuperclass().getDeclaredField("authToken")
    field.setAccessible(True)
    field.set(client, secret)


def _start_quietly(options: "Mapping[str, str]", log: "Path") -> None:
    """Start Java with its output in a file, so that it does not tear the progress of a command.

    OperatorError if Java ends at once; the file says why.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - likewise
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - likewise

    conf = SparkConf().setAll(list(options.items()))
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    except PySparkRuntimeError as error:
        raise OperatorError("Java ended before Spark had started", do=f"read `{log}`") from error
    SparkContext(conf=conf, gateway=gateway)
