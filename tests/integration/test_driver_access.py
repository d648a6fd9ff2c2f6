"""A Spark driver requires a secret: others on the machine could read what it broadcasts, and stop it."""

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.records import Records
from tests.integration.conftest import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ENDPOINT = "HeartbeatReceiver"
PORTS = 2
"""A stream's process listens for calls of Java, and for whoever reads its metrics."""
RESULT, REFUSED = b"!", b""
"""How the answer to a call begins, also if the function fails; and what is said to who does not know the secret."""


class Stranger:
    """A program that speaks Spark's protocol, with the security manager that it is given."""

    def __init__(self, spark: "SparkSession", security: Any) -> None:
        self._java = spark.sparkContext._jvm.org.apache.spark  # type: ignore[union-attr]  # noqa: SLF001 - no other way to Java
        self._port = int(spark.sparkContext.getConf().get("spark.driver.port") or 0)
        conf = self._java.SparkConf(False)  # noqa: FBT003 - without the settings of this process
        conf.set("spark.rpc.askTimeout", "10s").set("spark.rpc.lookupTimeout", "10s")
        if security is None:
            defaults = [getattr(self._java.SecurityManager, f"$lessinit$greater$default${place}")() for place in (2, 3)]
            security = self._java.SecurityManager(conf, *defaults)
        self._own = self._java.rpc.RpcEnv.create("stranger", "127.0.0.1", 0, conf, security, True)  # noqa: FBT003 - a client

    def finds(self, endpoint: str) -> str:
        """The reference to an endpoint of the driver."""
        address = self._java.rpc.RpcAddress("127.0.0.1", self._port)
        return str(self._own.setupEndpointRef(address, endpoint).toString())

    def close(self) -> None:
        self._own.shutdown()


@pytest.fixture
def stranger(spark: "SparkSession") -> "Iterator[Stranger]":
    own = Stranger(spark, None)
    yield own
    own.close()


def test_spark_driver_needs_the_secret(spark: "SparkSession", stranger: Stranger) -> None:
    knows = Stranger(spark, spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().securityManager())  # type: ignore[union-attr]  # noqa: SLF001 - no other way to Java
    try:
        assert ENDPOINT in knows.finds(ENDPOINT)
    finally:
        knows.close()

    with pytest.raises(Py4JJavaError):
        stranger.finds(ENDPOINT)


def answer_to_a_call(port: int) -> bytes:
    """What a process says when a stranger calls the function of its first stream, as Java does; none if it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(ConnectionResetError):
        connection.sendall(b"c\np0\ncall\n" + 100 * b"e\n")  # as long as any secret that is waited for
        return connection.recv(1000)
    return b""


@pytest.mark.parametrize("component", ["archive", "speed"])
def test_stream_callbacks_need_the_secret(stack: Stack, component: str) -> None:
    pid = Records(stack.settings.home).pid(component)
    opened = psutil.Process(pid).net_connections("tcp")
    ports = {each.laddr.port for each in opened if each.status == psutil.CONN_LISTEN}
    answers = [answer_to_a_call(port) for port in ports]

    assert len(answers) == PORTS
    assert [answer for answer in answers if answer.startswith(RESULT)] == []
    assert REFUSED in answers


def test_no_port_of_a_stream_forks_a_worker(stack: Stack) -> None:
    pid, found, opened = Records(stack.settings.home).pid("speed"), 0, list[Any]()
    for each in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a worker may end meanwhile
            if "deploy.spark_daemon" in each.cmdline():
                opened += each.net_connections("tcp")
                found += 1

    assert found
    assert [each for each in opened if each.status == psutil.CONN_LISTEN] == []
